"""`labelclean export`: every form, every policy, people's decisions, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from labelclean import read_manifest
from planted import NAMES, PLANTED, ROWS, Planted, audit_probs, command, opinions, plant

pytestmark = pytest.mark.usefixtures("plain_figures")
COLUMNS = ["sample_id", "label", "note", "true_label"]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Planted:
    return plant(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    return audit_probs(data, tmp_path_factory.mktemp("run") / "run")


@pytest.fixture(scope="module")
def issues(run):
    return pd.read_parquet(run / "issues.parquet").set_index("row").sort_index()


def export(run, target, *flags, code=0):
    done = command("export", run, target, *flags)
    assert done.exit_code == code, done.output
    return done


def read(path):
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    if path.suffix == ".jsonl":
        return pd.read_json(path, lines=True)
    return pd.read_csv(path, sep="\t" if path.suffix == ".tsv" else ",")


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".tsv", ".jsonl"])
def test_the_run_s_own_decisions_in_every_form(data, run, issues, tmp_path, suffix):
    before = data.table.read_bytes()
    done = export(run, tmp_path / f"out{suffix}")
    table = read(tmp_path / f"out{suffix}")
    assert list(table.columns) == COLUMNS
    given = pd.read_csv(data.table)
    expected = np.where(issues["action"] == "relabel", issues["label_suggested"], given["label"])
    assert table["label"].tolist() == expected.tolist()
    assert table["note"].tolist() == given["note"].tolist()
    assert f"{(issues['action'] == 'relabel').sum()} relabelled" in done.stdout
    assert data.table.read_bytes() == before


def test_policies(data, run, issues, tmp_path):
    given = pd.read_csv(data.table)["label"].to_numpy()
    export(run, tmp_path / "all.csv", "--policy", "relabel")
    flagged = issues["action"] != "keep"
    expected = np.where(flagged, issues["label_suggested"], given)
    assert read(tmp_path / "all.csv")["label"].tolist() == expected.tolist()
    bound = float(issues["p_suggested"][flagged].median())
    export(run, tmp_path / "sure.csv", "--policy", "relabel", "--min-confidence", bound)
    sure = flagged & (issues["p_suggested"] >= bound)
    assert 0 < sure.sum() < flagged.sum()
    expected = np.where(sure, issues["label_suggested"], given)
    assert read(tmp_path / "sure.csv")["label"].tolist() == expected.tolist()
    export(run, tmp_path / "kept.csv", "--policy", "keep")
    assert read(tmp_path / "kept.csv")["label"].tolist() == given.tolist()
    done = export(run, tmp_path / "fewer.csv", "--policy", "drop", "--json")
    assert json.loads(done.stdout)["left_out"] == flagged.sum()
    left = read(tmp_path / "fewer.csv")
    assert left["note"].tolist() == [f"x{row}" for row in np.flatnonzero(~flagged)]
    assert left["label"].tolist() == given[~flagged].tolist()


def line(row, decision, **more):
    return json.dumps({"row": row, "sample_id": f"s{row}", "decision": decision, **more}) + "\n"


def test_decisions_stand_above_the_run(data, run, issues, tmp_path):
    moved = issues.index[issues["action"] == "relabel"][:6].tolist()
    quiet = int(issues.index[issues["action"] == "keep"][0])
    other = next(name for name in NAMES if name != issues["label_given"][quiet])
    lines = [
        line(moved[0], "confirm", label=None, time="2024-01-01T00:00:00Z"),
        line(moved[1], "drop"),
        line(moved[2], "unsure"),
        line(moved[3], "none_of_these"),
        line(moved[4], "drop"),
        line(moved[4], "undo"),
        line(moved[5], "drop"),
        line(moved[5], "confirm"),
        "\n",
        line(quiet, "relabel", label=other),
    ]
    (tmp_path / "d.jsonl").write_text("".join(lines))
    export(run, tmp_path / "o.csv", "--decisions", tmp_path / "d.jsonl")
    table = read(tmp_path / "o.csv").set_index("sample_id")["label"]
    assert len(table) == ROWS - 2
    assert f"s{moved[1]}" not in table.index
    assert f"s{moved[3]}" not in table.index
    for row in (moved[0], moved[2], moved[5]):
        assert table[f"s{row}"] == issues["label_given"][row]
    assert table[f"s{moved[4]}"] == issues["label_suggested"][moved[4]]
    assert table[f"s{quiet}"] == other
    export(
        run, tmp_path / "e.parquet", "--decisions", tmp_path / "d.jsonl", "--policy", "keep",
        "--with-evidence",
    )  # fmt: skip
    evidence = pd.read_parquet(tmp_path / "e.parquet").set_index("sample_id")
    assert evidence["label_action"][f"s{quiet}"] == "relabel"
    assert evidence["label_confidence"][f"s{quiet}"] == 1
    assert evidence["label_given"][f"s{quiet}"] == issues["label_given"][quiet]
    assert evidence["label_action"][f"s{moved[4]}"] == "review"
    changed = evidence["label"] != evidence["label_given"]
    assert changed.sum() == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{not json\n", "line 1: not valid JSON"),
        ("[]\n", "line 1: not a JSON object"),
        (line(0, "perhaps"), "'perhaps'"),
        (line(ROWS, "drop"), f"row {ROWS} is not in 0 to {ROWS - 1}"),
        (line(-1, "drop"), "row -1"),
        (line(True, "drop").replace("sTrue", "s1"), "row True"),
        (line(0, "drop").replace("s0", "s9"), "sample_id 's9'"),
        (line(0, "drop") + line(3, "relabel", label="dog"), "line 2: label 'dog'"),
        (line(0, "relabel"), "label None"),
    ],
)
def test_decisions_are_read_strictly(run, tmp_path, text, words):
    (tmp_path / "d.jsonl").write_text(text)
    done = export(run, tmp_path / "o.csv", "--decisions", tmp_path / "d.jsonl", code=3)
    assert words in done.stderr
    assert not (tmp_path / "o.csv").exists()
    assert export(run, tmp_path / "o.csv", "--decisions", tmp_path / "none", code=3).stderr


def test_with_evidence(run, issues, tmp_path):
    export(run, tmp_path / "o.csv", "--with-evidence")
    table = read(tmp_path / "o.csv")
    assert list(table.columns) == [
        *COLUMNS, "label_given", "label_action", "label_confidence", "p_error", "labelclean_export",
    ]  # fmt: skip
    corrected = pd.read_parquet(run / "corrected.parquet")
    for name in ("label", "label_given", "label_action"):
        assert table[name].tolist() == corrected[name].tolist()
    np.testing.assert_allclose(table["label_confidence"], corrected["label_confidence"])
    np.testing.assert_allclose(table["p_error"], corrected["p_error"])


@pytest.fixture(scope="module")
def pictured(tmp_path_factory):
    """A run over a table of real pictures with relative paths."""
    folder = tmp_path_factory.mktemp("pictured")
    data = plant(folder, 60, 6)
    table = pd.read_csv(data.table)
    table.insert(0, "image", [f"images/{row}.png" for row in range(60)])
    table.to_csv(data.table, index=False)
    (folder / "images").mkdir()
    for row in range(60):
        Image.new("RGB", (2, 2), (row, 0, 0)).save(folder / f"images/{row}.png")
    return data, audit_probs(data, folder / "run")


@pytest.mark.parametrize("link", [False, True])
def test_an_image_folder(pictured, tmp_path, link):
    run = pictured[1]
    export(run, tmp_path / "folder", *(["--link"] if link else []))
    manifest = read_manifest(tmp_path / "folder", allow_outside_root=True)
    corrected = pd.read_parquet(run / "corrected.parquet")["label"]
    assert manifest.label_values() == corrected.tolist()
    for row, path in enumerate(manifest.path):
        place = tmp_path / "folder" / path
        assert place.is_symlink() == link
        assert place.parent.name == corrected[row]
        with Image.open(place) as image:
            assert image.getpixel((0, 0)) == (row, 0, 0)
    assert export(run, tmp_path / "folder", code=2).stderr
    export(run, tmp_path / "folder", "--overwrite", "--policy", "drop")
    fewer = read_manifest(tmp_path / "folder", allow_outside_root=True)
    assert len(fewer) < 60
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_paths_resolve_from_where_the_table_is(pictured, tmp_path):
    data, run = pictured
    for name in ("o.csv", "o.jsonl", "o.tsv", "o.parquet"):
        export(run, tmp_path / "deep" / name)
        manifest = read_manifest(tmp_path / "deep" / name, allow_outside_root=True)
        assert (manifest.image_root / manifest.path[5]).resolve() == (
            data.table.parent / "images/5.png"
        )
        assert manifest.table.column_names == ["image", *COLUMNS]


def test_exports_are_formula_safe_unless_raw(tmp_path):
    data = plant(tmp_path, 60, 6)
    table = pd.read_csv(data.table)
    table["note"] = "=1+1"
    table.to_csv(data.table, index=False)
    run = audit_probs(data, tmp_path / "run")
    export(run, tmp_path / "safe.csv")
    assert b"'=1+1" in (tmp_path / "safe.csv").read_bytes()
    assert (
        read_manifest(tmp_path / "safe.csv", need_images=False).table["note"][0].as_py() == "=1+1"
    )
    export(run, tmp_path / "raw.csv", "--raw-csv")
    assert b"'=" not in (tmp_path / "raw.csv").read_bytes()
    assert list(read(tmp_path / "raw.csv").columns) == COLUMNS


def test_the_patch_lists_every_change(data, run, issues, tmp_path):
    export(run, tmp_path / "p.patch.jsonl", "--policy", "relabel")
    header, *lines = map(json.loads, (tmp_path / "p.patch.jsonl").read_text().splitlines())
    assert header["classes"] == list(NAMES)
    assert (
        header["input"]["digest"] == json.loads((run / "run.json").read_text())["input"]["digest"]
    )
    moved = issues[issues["label_suggested"] != issues["label_given"]]
    assert len(lines) == len(moved) >= PLANTED - 3
    for entry in lines:
        assert list(entry) == ["row", "sample_id", "from", "to", "action"]
        assert entry["sample_id"] == f"s{entry['row']}"
        assert entry["from"] == moved["label_given"][entry["row"]]
        assert entry["to"] == moved["label_suggested"][entry["row"]]
        assert entry["action"] == "relabel"


def test_folders_and_arrays_leave_too(tmp_path):
    """Inputs that are no table: one folder per class, and arrays."""
    true = np.arange(60) % 3
    given = true.copy()
    given[:6] = (given[:6] + 1) % 3
    for row in range(60):
        place = tmp_path / "classes" / NAMES[given[row]] / f"{row:02d}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (2, 2), (row, 0, 0)).save(place)
    manifest = read_manifest(tmp_path / "classes")
    rows = [int(path[-6:-4]) for path in manifest.path]
    np.save(tmp_path / "p.npy", opinions(true[rows], 3))
    np.savez(tmp_path / "a.npz", X=np.zeros((60, 4, 4), np.uint8), y=np.array(NAMES)[given])
    np.save(tmp_path / "q.npy", opinions(true, 3))
    for source, probs, target in (("classes", "p.npy", "o.csv"), ("a.npz", "q.npy", "o.npz")):
        run = tmp_path / f"{target}-run"
        done = command("audit", tmp_path / source, "--pred-probs", tmp_path / probs, "--out", run)
        assert done.exit_code == 0, done.output
        export(run, tmp_path / target, "--policy", "relabel")
        assert command("report", run).exit_code == 0
    table = pd.read_csv(tmp_path / "o.csv")
    assert table["image"][0].startswith("classes/ant/")
    assert (table["label"].to_numpy() == np.array(NAMES)[true[rows]]).mean() > 0.95
    with np.load(tmp_path / "o.npz") as arrays:
        assert (arrays["y"] == np.array(NAMES)[true]).mean() > 0.95
    assert export(tmp_path / "o.csv-run", tmp_path / "classes" / "new", code=2).stderr
    export(tmp_path / "o.csv-run", tmp_path / "p.patch.jsonl", "--policy", "relabel")
    flags = ("--revert", tmp_path / "p.patch.jsonl")
    done = export(tmp_path / "o.csv-run", tmp_path / "o.csv", *flags)
    assert "labels restored" in done.stdout
    assert pd.read_csv(tmp_path / "o.csv")["label"].tolist() == manifest.label_values()
