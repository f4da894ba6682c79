"""`labelclean inject` from file to file."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from labelclean.benchmark.class_maps import CIFAR10_NAMES
from labelclean.benchmark.noise import NOISES, inject
from labelclean.cli import cli
from labelclean.cli.inject import NOISE
from labelclean.data.manifest import Manifest
from labelclean.data.read import read_manifest
from labelclean.data.sources import open_source

N = 60


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["inject", *map(str, arguments)])


def done(*arguments: object) -> Result:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result


def record(out: Path) -> dict[str, object]:
    return json.loads(out.with_name(f"{out.name}.noise.json").read_text(encoding="utf-8"))


def values(manifest: Manifest, name: str) -> list[object]:
    return manifest.table.column(name).to_pylist()


def changed_rows(noisy: Manifest) -> list[int]:
    pairs = zip(values(noisy, "label"), values(noisy, "true_label"), strict=True)
    return [row for row, (given, true) in enumerate(pairs) if given != true]


@pytest.fixture
def table(tmp_path: Path, pictures: Callable[[int], list[str]]) -> Path:
    columns = {
        "score": pa.array(np.linspace(0, 1, N)),
        "image": pictures(N),
        "label": [CIFAR10_NAMES[i % 10] for i in range(N)],
        "note": [f"=cell {i}, with comma" for i in range(N)],
    }
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture
def features(tmp_path: Path) -> Path:
    path = tmp_path / "data.npz"
    rng = np.random.default_rng(0)
    np.savez(path, X=rng.normal(size=(N, 4)).astype(np.float32), y=np.arange(N) % 3)
    return path


def test_the_flag_lists_every_noise() -> None:
    assert tuple(NOISES) == NOISE


@pytest.mark.parametrize("suffix", ["parquet", "csv", "tsv", "jsonl"])
def test_label_is_noisy_truth_is_kept_and_the_rest_untouched(table: Path, suffix: str) -> None:
    out = table.with_name(f"noisy.{suffix}")
    result = done(table, "--noise", "symmetric", "--rate", 0.4, "--seed", 3, "--out", out)
    clean, noisy = read_manifest(table), read_manifest(out)
    assert noisy.table.column_names == ["score", "image", "label", "note", "true_label"]
    assert values(noisy, "true_label") == values(clean, "label")
    for name in ("score", "image", "note"):
        assert values(noisy, name) == values(clean, name)
    expected = inject("symmetric", clean.label, 10, 0.4, np.random.default_rng(3))
    assert values(noisy, "label") == clean.label_values(expected.label)
    said = record(out)
    changed = changed_rows(noisy)
    assert said["mask"] == changed
    assert said["flipped"] == len(changed)
    assert said["actual_rate"] == len(changed) / N
    assert (said["seed"], said["noise"], said["nominal_rate"]) == (3, "symmetric", 0.4)
    assert said["classes"] == list(CIFAR10_NAMES)
    assert f"{len(changed)} of {N}" in result.stdout


def test_same_seed_same_bytes_other_seed_other_bytes(table: Path) -> None:
    outs = [table.with_name(name) for name in ("a.parquet", "b.parquet", "c.parquet")]
    for out, seed in zip(outs, (1, 1, 2), strict=True):
        done(table, "--noise", "symmetric", "--rate", 0.4, "--seed", seed, "--out", out)
    assert outs[0].read_bytes() == outs[1].read_bytes() != outs[2].read_bytes()
    assert record(outs[0]) == record(outs[1])


@pytest.mark.parametrize("kind", [pa.int32(), pa.dictionary(pa.int8(), pa.string())])
def test_labels_keep_their_type(table: Path, kind: pa.DataType) -> None:
    old = pq.read_table(table)
    plain = [i % 10 if kind == pa.int32() else f"c{i % 10}" for i in range(N)]
    typed = pa.array(plain, kind) if kind == pa.int32() else pa.array(plain).dictionary_encode()
    position = old.column_names.index("label")
    pq.write_table(old.set_column(position, "label", typed.cast(kind)), table)
    out = table.with_name("noisy.parquet")
    done(table, "--noise", "pairflip", "--rate", 0.5, "--out", out)
    schema = pq.read_schema(out)
    given = pq.read_schema(table).field("label").type
    assert schema.field("label").type == schema.field("true_label").type == given


def test_images_are_found_from_another_folder(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "er" / "noisy.parquet"
    done(table, "--noise", "symmetric", "--rate", 0.2, "--out", out)
    before, after = open_source(read_manifest(table)), open_source(read_manifest(out))
    assert [before.load(i)[1] for i in range(N)] == [after.load(i)[1] for i in range(N)]


def test_held_out_and_verified_rows_stay_clean(table: Path) -> None:
    old = pq.read_table(table)
    split = ["test", "val", "train"] * (N // 3)
    verified = [i % 3 == 2 and i % 2 == 0 for i in range(N)]
    pq.write_table(old.append_column("split", [split]).append_column("verified", [verified]), table)
    out = table.with_name("noisy.parquet")
    done(table, "--noise", "symmetric", "--rate", 1, "--out", out)
    said = record(out)
    assert said["mask"] == [i for i in range(N) if i % 3 == 2 and i % 2]
    assert changed_rows(read_manifest(out)) == said["mask"]
    assert (said["eligible_rows"], said["actual_rate"]) == (10, 1.0)


def test_asymmetric_knows_cifar10_by_name(table: Path) -> None:
    out = table.with_name("noisy.csv")
    done(table, "--noise", "asymmetric", "--rate", 1, "--out", out)
    noisy = read_manifest(out)
    pairs = set(zip(values(noisy, "true_label"), values(noisy, "label"), strict=True))
    assert ("cat", "dog") in pairs
    assert ("dog", "cat") in pairs
    assert ("frog", "frog") in pairs
    assert len(pairs) == 10


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m.json", '{"cat": "frog"}'),
        ("m.csv", "from,to\ncat,frog\n"),
        ("m.csv", "cat,frog\n"),
        ("m.tsv", "cat\tfrog\n"),
    ],
)
def test_a_map_names_the_pairs(table: Path, name: str, text: str) -> None:
    chart, out = table.with_name(name), table.with_name("noisy.csv")
    chart.write_text(text, encoding="utf-8")
    done(table, "--noise", "asymmetric", "--rate", 1, "--map", chart, "--out", out)
    assert record(out)["mask"] == [i for i in range(N) if i % 10 == 3]
    assert {values(read_manifest(out), "label")[i] for i in (3, 13, 23)} == {"frog"}


def test_integer_ids_need_a_map_or_the_name_of_the_data_set(table: Path, tmp_path: Path) -> None:
    old = pq.read_table(table)
    ids = pa.array([i % 10 for i in range(N)])
    pq.write_table(old.set_column(old.column_names.index("label"), "label", ids), table)
    out = tmp_path / "noisy.csv"
    refused = run(table, "--noise", "asymmetric", "--rate", 1, "--out", out)
    assert refused.exit_code == 2
    assert "--map" in refused.stderr
    assert not out.exists()
    done(table, "--noise", "asymmetric", "--rate", 1, "--map", "mnist", "--out", out)
    label = values(read_manifest(out), "label")
    assert label[:10] == [0, 1, 7, 8, 4, 6, 5, 1, 8, 9]


@pytest.mark.parametrize("named", [True, False])
def test_matrix_states_its_own_rates(features: Path, named: bool) -> None:
    chart, out = features.with_name("T.csv"), features.with_name("noisy.npz")
    text = ",2,1,0\n0,1,0,0\n2,0,1,0\n1,0,1,0\n" if named else "0,0,1\n0,1,0\n0,1,0\n"
    chart.write_text(text, encoding="utf-8")
    done(features, "--noise", "matrix", "--map", chart, "--out", out)
    with np.load(out) as arrays:
        true = arrays["true_label"]
        np.testing.assert_array_equal(true, np.arange(N) % 3)
        np.testing.assert_array_equal(arrays["y"], np.array([2, 1, 1])[true])
    assert record(out)["nominal_rate"] == pytest.approx(2 / 3)


def test_instance_noise_reads_features_or_pictures(table: Path, features: Path) -> None:
    out = features.with_name("noisy.npz")
    done(features, "--noise", "instance", "--rate", 0.5, "--out", out)
    with np.load(features) as arrays:
        expected = inject(
            "instance", arrays["y"], 3, 0.5, np.random.default_rng(0), features=arrays["X"]
        )
    assert record(out)["mask"] == np.flatnonzero(expected.flipped).tolist()
    done(table, "--noise", "instance", "--rate", 0.5, "--out", table.with_name("noisy.csv"))
    flipped = record(table.with_name("noisy.csv"))["flipped"]
    assert 10 <= flipped <= 50


def test_unreadable_pictures_are_all_named(table: Path) -> None:
    for row in (4, 9):
        (table.parent / f"images/{row}.png").write_bytes(b"no picture")
    out = table.with_name("noisy.csv")
    result = run(table, "--noise", "instance", "--rate", 0.5, "--out", out)
    assert result.exit_code == 3
    assert "row 4" in result.stderr
    assert "row 9" in result.stderr
    assert not out.exists()


def test_probabilities_choose_the_hardest(features: Path) -> None:
    probs = np.full((N, 3), 0.01)
    probs[np.arange(N), np.arange(N) % 3] = 0.98
    probs[5] = [0.9, 0.05, 0.05]
    np.save(features.with_name("p.npy"), probs)
    out = features.with_name("noisy.npz")
    done(
        features, "--noise", "instance", "--variant", "confidence", "--rate", 1 / N,
        "--probs", features.with_name("p.npy"), "--out", out,
    )  # fmt: skip
    assert record(out)["mask"] == [5]
    assert record(out)["options"] == {"variant": "confidence", "probs": "p.npy"}
