"""Saved models: they come back as they were, and nothing else is taken for one."""

import json
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from labelclean.errors import ConfigError, DataError, OutputError
from labelclean.models.backbones import build_backbone, weights_digest
from labelclean.models.classifier import PictureClassifier, feature_width
from labelclean.models.embedder import Embedder
from labelclean.models.head import FeatureScaling, Head
from labelclean.models.onnx import Whole, export_onnx
from labelclean.models.saved import SavedModel, _file_digest, load_model, save_model

CLASSES = ("ant", "bee", "cat")
SIZE = 32


def make(mode: str, name: str | None, *, hidden: int = 0, attention: bool = False) -> SavedModel:
    """Build a model with random weights of its own."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        backbone, width = None, 7
        if name is not None:
            backbone = build_backbone(name, pretrained=name == "lite0", image_size=SIZE)
            width = feature_width(backbone) if mode != "head" else Embedder(backbone, 2).width
        head = Head(width, len(CLASSES), hidden=hidden, attention=attention)
        scaling = FeatureScaling(width) if mode == "head" else None
        if scaling is not None:
            scaling.mean.copy_(torch.randn(width))
    model = head if backbone is None or mode == "head" else PictureClassifier(backbone, head)
    pretrained = name == "lite0"
    return SavedModel(CLASSES, mode, model.eval(), scaling, backbone, 2, pretrained, {"a": 1})


def samples(saved: SavedModel, count: int = 2) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    if saved.backbone is None:
        return torch.randn(count, 7, generator=generator)
    pictures = torch.randint(0, 256, (count, SIZE, SIZE, 3), generator=generator)
    return pictures.to(torch.uint8)


def answer(saved: SavedModel) -> torch.Tensor:
    with torch.inference_mode():
        return Whole(saved).eval()(samples(saved))


@pytest.mark.parametrize(
    ("mode", "name", "options"),
    [
        ("head", None, {}),
        ("head", None, {"hidden": 5, "attention": True}),
        ("head", "test_resnet", {}),
        ("head", "lite0", {}),
        ("finetune", "test_vit", {"attention": True}),
        ("scratch", "resnet20", {"hidden": 4}),
    ],
)
def test_a_model_comes_back_as_it_was(tmp_path, mode, name, options):
    saved = make(mode, name, **options)
    save_model(saved, tmp_path, b"card")
    assert {path.name for path in tmp_path.iterdir()} == {
        "README.md", "config.json", "model.safetensors",
    }  # fmt: skip
    found = load_model(tmp_path)
    assert (found.classes, found.mode, found.stages) == (CLASSES, mode, 2)
    assert found.notes == {"a": 1}
    assert torch.equal(answer(found), answer(saved))
    names = set(load_file(tmp_path / "model.safetensors"))
    stored = any(name.startswith("backbone.") for name in names)
    assert stored == (name is not None and not (name == "lite0" and mode == "head"))
    if saved.backbone is not None and mode == "head":
        # The key of the feature cache: without it predict would compute everything again.
        assert weights_digest(found.backbone.network) == saved.backbone.weights
        assert found.backbone.weights == saved.backbone.weights
        assert found.backbone.spec == saved.backbone.spec


def test_a_hub_is_never_asked_for_a_stored_network(tmp_path, monkeypatch):
    saved = make("head", "test_resnet")
    save_model(saved, tmp_path, b"card")
    edit(tmp_path, lambda config: config["labelclean"].update(backbone="hf-hub:some/model"))
    monkeypatch.setattr("labelclean.models.backbones._require_hub", None)
    assert load_model(tmp_path).name == "hf-hub:some/model"
    edit(tmp_path, lambda config: config.update(architecture="hf-hub:some/model"))
    with pytest.raises(DataError, match="does not know"):
        load_model(tmp_path)


def edit(folder: Path, change) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config))


@pytest.fixture
def folder(tmp_path) -> Path:
    save_model(make("head", None), tmp_path, b"card")
    return tmp_path


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c.update(label_names=["ant", "bee"]), "num_classes"),
        (lambda c: c.update(label_names=["ant", "bee", 3]), "label_names"),
        (lambda c: c.update(label_names=["ant", "ant", "bee"]), "label_names"),
        (lambda c: c.update(num_features=10**9), "num_features"),
        (lambda c: c.update(num_features=8), "does not fit"),
        (lambda c: c["labelclean"].update(hidden=4), "head.body.0.weight is missing"),
        (lambda c: c["labelclean"].update(attention=True), "head.attention.weight is missing"),
        (lambda c: c["labelclean"].update(mode="finetune"), "labelclean.mode"),
        (lambda c: c["labelclean"].update(mode="melt", stages=-1), "mode, labelclean.stages"),
        (lambda c: c["labelclean"].update(schema=99), "this version"),
        (lambda c: c["labelclean"].update(model_sha256="0" * 64), "damaged or belongs to another"),
        (lambda c: c.pop("labelclean"), "this version"),
    ],
)
def test_a_config_that_lies_is_refused(folder, change, words):
    edit(folder, change)
    with pytest.raises(DataError, match=words):
        load_model(folder)


def test_pictures_need_a_sound_input_size(tmp_path):
    save_model(make("head", "test_resnet"), tmp_path, b"card")
    for size in ([3, 10**6, 10**6], [3, 32, 33], [3, 32], "32", None):
        edit(tmp_path, lambda config, size=size: config["pretrained_cfg"].update(input_size=size))
        with pytest.raises(DataError, match="pretrained_cfg"):
            load_model(tmp_path)


def test_damaged_and_foreign_files_are_refused(folder):
    path = folder / "model.safetensors"
    whole = path.read_bytes()

    def put(content: bytes, *, honest: bool) -> None:
        path.write_bytes(content)
        if honest:
            digest = _file_digest(path)
            edit(folder, lambda config: config["labelclean"].update(model_sha256=digest))

    put(whole[:-3], honest=False)
    with pytest.raises(DataError, match="damaged"):
        load_model(folder)
    for content in (whole[:-3], b"", b"\x80\x04K\x01.", b"\xff" * 64):
        put(content, honest=True)
        with pytest.raises(DataError, match="no safetensors file"):
            load_model(folder)
    save_file({"body.weight": torch.zeros(2)}, path)
    put(path.read_bytes(), honest=True)
    with pytest.raises(DataError, match="no part of our models"):
        load_model(folder)
    path.unlink()
    with pytest.raises(DataError, match="missing"):
        load_model(folder)
    (folder / "config.json").write_text("[" * 100_000)
    with pytest.raises(DataError, match="not valid JSON"):
        load_model(folder)
    (folder / "config.json").unlink()
    with pytest.raises(DataError, match="cannot be read"):
        load_model(folder)


@pytest.mark.parametrize(("mode", "name"), [("head", None), ("head", "test_resnet")])
def test_onnx_answers_as_pytorch(tmp_path, mode, name):
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    saved = make(mode, name)
    save_model(saved, tmp_path / "model", b"card")
    target = tmp_path / "model.onnx"
    assert export_onnx(tmp_path, target) < 1e-4
    content = target.read_bytes()
    assert str(Path(torch.__file__).parent).encode() not in content
    described = {entry.key: entry.value for entry in onnx.load(target).metadata_props}
    assert json.loads(described["labels"]) == list(CLASSES)
    session = runtime.InferenceSession(content)
    given = {session.get_inputs()[0].name: samples(saved, 1).numpy()}
    (found,) = session.run(["probabilities"], given)
    with torch.inference_mode():
        assert torch.allclose(torch.from_numpy(found), Whole(saved)(samples(saved, 1)), atol=1e-4)


@pytest.fixture
def foreign_runtime(monkeypatch):
    """Stand in for the packages of the extra: a runtime whose answers are off by `error`.

    The extra is in no default environment; that its runtime may be wrong can be played without.
    """

    def install(saved: SavedModel, error: float) -> None:
        def run(_names, given):
            with torch.inference_mode():
                probs = Whole(saved).eval()(torch.from_numpy(*given.values())).numpy()
            probs[-1] += (error, -error, 0.0)  # one row is enough
            return [probs]

        graph = SimpleNamespace(node=(), metadata_props=[], doc_string="")
        network = SimpleNamespace(graph=graph, functions=())
        onnx = SimpleNamespace(
            load=lambda _: network,
            save=lambda _, path: path.write_bytes(b"a network"),
            helper=SimpleNamespace(set_model_props=lambda *_: None),
            checker=SimpleNamespace(check_model=lambda _: None),
        )
        session = SimpleNamespace(run=run)
        runtime = SimpleNamespace(
            SessionOptions=SimpleNamespace, InferenceSession=lambda *_, **__: session
        )
        for name, module in {"onnx": onnx, "onnxruntime": runtime, "onnxscript": runtime}.items():
            module.__spec__ = ModuleSpec(name, None)
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setattr(torch.onnx, "export", lambda *parts, **_: parts[2].write_bytes(b""))

    return install


@pytest.mark.parametrize(("error", "refused"), [(1e-6, False), (1e-3, True), (np.nan, True)])
def test_onnx_refuses_a_file_that_answers_otherwise(tmp_path, foreign_runtime, error, refused):
    saved = make("head", None)
    save_model(saved, tmp_path / "model", b"card")
    foreign_runtime(saved, error)
    target = tmp_path / "model.onnx"
    if refused:
        with pytest.raises(OutputError, match="answers otherwise"):
            export_onnx(tmp_path, target)
    else:
        assert export_onnx(tmp_path, target) == pytest.approx(error, rel=0.1)
    assert {path.name for path in tmp_path.iterdir()} - {"model"} == (
        set() if refused else {target.name}
    )


def test_onnx_names_the_extra_that_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxscript", None)  # as if it were not installed
    with pytest.raises(ConfigError, match=r"onnxscript.*pip install 'labelclean\[onnx\]'"):
        export_onnx(tmp_path, tmp_path / "model.onnx")
