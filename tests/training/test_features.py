"""Extraction: overlapped, cached by content, the same bits whatever the blocks."""

import numpy as np
import pytest
import torch
from PIL import Image

from labelclean.data.sources import ArrayImages
from labelclean.errors import DataError, OutputError
from labelclean.models.backbones import InputSpec, build_backbone
from labelclean.models.embedder import Embedder
from labelclean.training import features as module
from labelclean.training.cache import FeatureCache
from labelclean.training.features import (
    Extractor,
    GivenFeatures,
    find_features,
    fit_scaling,
    scaled_features,
)
from labelclean.training.pictures import Augmentation, Pictures, square
from labelclean.training.runtime import Runtime, start_runtime

COUNT = 21


@pytest.fixture(scope="module")
def pictures() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (COUNT, 24, 20, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def extractor() -> Extractor:
    backbone = build_backbone("lite0", pretrained=True, image_size=32)
    return Extractor(Embedder(backbone, 3), backbone, Runtime(torch.device("cpu")), threads=2)


def digest(source: ArrayImages) -> np.ndarray:
    return np.stack([np.frombuffer(source.load(row)[1], np.uint8) for row in range(len(source))])


def extract(extractor, pictures, folder, rows=None) -> np.ndarray:
    source = ArrayImages(pictures)
    rows = np.arange(len(pictures)) if rows is None else rows
    store = FeatureCache(folder, extractor.key, extractor.embedder.width, 1e9)
    found = find_features(extractor, source, rows, digest(source)[rows], store)
    return found.read(np.arange(len(rows)))


def test_features_are_those_of_the_network(extractor, pictures, tmp_path):
    features = extract(extractor, pictures, tmp_path)
    spec = extractor.backbone.spec
    one = torch.from_numpy(square(pictures[7], spec).copy())[None]
    with torch.inference_mode():
        assert torch.allclose(extractor.embedder(one)[0], torch.from_numpy(features[7]), 1e-3, 1e-3)


def test_order_company_and_shards_never_change_a_bit(extractor, pictures, tmp_path, monkeypatch):
    many = np.concatenate([pictures, 255 - pictures, pictures[:, ::-1], pictures[:, :, ::-1]])
    whole = extract(extractor, many, tmp_path / "whole")
    monkeypatch.setattr(module, "_SHARD", 4)
    order = np.random.default_rng(1).permutation(len(many))
    assert np.array_equal(extract(extractor, many, tmp_path / "cut", order), whole[order])
    alone = extract(extractor, many, tmp_path / "alone", np.array([7]))
    assert np.array_equal(alone[0], whole[7])


def test_a_changed_picture_recomputes_only_itself(extractor, pictures, tmp_path, monkeypatch):
    before = extract(extractor, pictures, tmp_path)
    computed = []
    stream = Extractor.stream

    def watched(self, source, samples):
        computed.extend(samples.tolist())
        return stream(self, source, samples)

    monkeypatch.setattr(Extractor, "stream", watched)
    changed = pictures.copy()
    changed[5] = 255 - changed[5]
    after = extract(extractor, changed, tmp_path)
    assert computed == [5]
    fresh = extract(extractor, changed, tmp_path / "elsewhere")
    assert np.array_equal(after, fresh)
    assert not np.array_equal(after[5], before[5])


def test_the_same_picture_twice_is_computed_once(extractor, pictures, tmp_path):
    twice = np.concatenate([pictures[:3], pictures[:3]])
    features = extract(extractor, twice, tmp_path)
    assert np.array_equal(features[:3], features[3:])
    (shard,) = tmp_path.glob("*/*.npy")
    assert len(np.load(shard)) == 3


def test_the_key_names_what_features_depend_on(extractor):
    other = build_backbone("lite0", pretrained=True, image_size=64)
    runtime = extractor.runtime
    keys = {
        extractor.key,
        Extractor(Embedder(other, 3), other, runtime, 1).key,
        Extractor(Embedder(extractor.backbone, 2), extractor.backbone, runtime, 1).key,
    }
    assert len(keys) == 3


def test_a_cache_that_forgets_is_said(extractor, pictures, tmp_path, monkeypatch):
    monkeypatch.setattr(FeatureCache, "add", lambda *_: None)
    with pytest.raises(OutputError, match=r"vanish from the cache.*--no-cache"):
        extract(extractor, pictures, tmp_path)


def test_a_picture_that_vanishes_meanwhile_is_named(extractor, pictures, tmp_path):
    from labelclean.data.images import ImageError

    class Vanishing(ArrayImages):
        def load(self, row, min_side=None):
            if row == 2:
                raise ImageError("no such file")
            return super().load(row, min_side)

    source = Vanishing(pictures)
    store = FeatureCache(tmp_path, "key", extractor.embedder.width, 1e9)
    known = digest(ArrayImages(pictures))
    with pytest.raises(DataError, match=r"row 2: .*no such file"):
        find_features(extractor, source, np.arange(COUNT), known, store)


def test_scaling_learns_from_the_training_rows_only():
    matrix = np.array([[4.0, 1.0], [16.0, 1.0], [1e6, 5.0]], np.float32)
    table = GivenFeatures(matrix)
    scaling = fit_scaling(table, count=2)
    scaled = scaled_features(table, scaling, None)
    assert np.allclose(scaled[:2, 0], [-1, 1], atol=1e-5)
    assert np.array_equal(scaled[:, 1], [0, 0, 0]), "a feature that never changes says nothing"


def test_given_features_are_read_in_tiles_from_a_mapped_file(tmp_path, monkeypatch):
    monkeypatch.setattr("labelclean.training.features._GIVEN_TILE", 4)
    matrix = np.random.default_rng(0).random((11, 3))
    np.save(tmp_path / "f.npy", matrix)
    mapped = np.load(tmp_path / "f.npy", mmap_mode="r")
    rows = np.array([0, 2, 4, 6, 8, 10])
    table = GivenFeatures(mapped, rows)
    assert table.shape == (6, 3)
    tiles = list(table.tiles())
    assert [tile for tile, _ in tiles] == [slice(0, 4), slice(4, 6)]
    together = np.concatenate([features for _, features in tiles])
    assert together.dtype == np.float32
    assert np.array_equal(together, matrix[rows].astype(np.float32))


def test_large_matrices_are_mapped(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_IN_MEMORY", 1)
    table = GivenFeatures(np.random.default_rng(0).random((6, 3)))
    scaling = fit_scaling(table, 6)
    mapped = scaled_features(table, scaling, tmp_path)
    assert isinstance(mapped, np.memmap)
    assert np.array_equal(mapped, scaled_features(table, scaling, None))


def test_square_keeps_the_middle_of_a_long_picture():
    pixels = np.zeros((10, 30, 3), np.uint8)
    pixels[:, 10:20] = 200
    spec = InputSpec(5, (0.5,) * 3, (0.5,) * 3, "nearest")
    assert (square(pixels, spec) == 200).all()


@pytest.mark.parametrize("shape", [(32, 32), (20, 33), (300, 250)])
@pytest.mark.parametrize("mode", ["bicubic", "bilinear"])
def test_pictures_are_resized_as_pillow_does(shape, mode):
    grain = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
    side = min(shape)
    top, left = (shape[0] - side) // 2, (shape[1] - side) // 2
    middle = Image.fromarray(grain[top : top + side, left : left + side])
    expected = middle.resize((96, 96), Image.Resampling[mode.upper()])
    found = square(grain, InputSpec(96, (0.5,) * 3, (0.5,) * 3, mode))
    assert np.abs(found.astype(int) - np.asarray(expected)).max() <= 1


def test_augmentation_depends_on_seed_epoch_and_sample_alone(pictures):
    spec = InputSpec(20, (0.5,) * 3, (0.5,) * 3, "nearest")

    def batches(cuts, epoch, seed=0):
        loader = Pictures(
            ArrayImages(pictures), np.arange(COUNT), spec, threads=2,
            augmentation=Augmentation(2, seed),
        )  # fmt: skip
        return torch.cat(list(loader.batches(cuts, epoch)))

    everyone = np.arange(COUNT)
    whole = batches([everyone], 1)
    assert torch.equal(batches(np.array_split(everyone, 5), 1), whole)
    assert torch.equal(batches([everyone[::-1]], 1), whole.flip(0))
    assert not torch.equal(batches([everyone], 2), whole)
    assert not torch.equal(batches([everyone], 1, seed=1), whole)
    plain = batches([everyone], None)
    for moved, still in zip(whole, plain, strict=True):
        options = [
            np.roll(np.pad(p, ((2, 2), (2, 2), (0, 0))), (y, x), (0, 1))[2:-2, 2:-2]
            for p in (still.numpy(), still.numpy()[:, ::-1])
            for y in range(-2, 3)
            for x in range(-2, 3)
        ]
        assert any(np.array_equal(moved.numpy(), option) for option in options)


def test_the_runtime_refuses_a_device_that_is_not_there():
    from labelclean.errors import ConfigError

    if not torch.backends.mps.is_available():
        with pytest.raises(ConfigError, match="--device mps is not available"):
            start_runtime("mps")
