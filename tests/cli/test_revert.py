"""A patch and back: the original bytes, whoever wrote them."""

import csv
import io
import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planted import Planted, audit_probs, command, opinions, plant

pytestmark = pytest.mark.usefixtures("plain_figures")
CLASSES = ("ant", "bee, or wasp", 'the "cat"')
HAND = (
    "\ufefflabel,image,note\r\n"
    'ant,i/0.png,"two\r\nlines"\r\n'
    '"ant",i/1.png,007\r\n'
    "\r\n"
    '"bee, or wasp",i/2.png,"say ""x"""\r\n'
    "bee,i/3.png,\r\n"
    "bee,i/4.png,é\r\n"
    '"bee"x,i/5.png,last'
)


def audit_all_wrong(table: Path, true: list[int], size: int) -> Path:
    """Audit with probabilities that insist on `true`, and relabel whatever is flagged."""
    probs = table.parent / "probs.npy"
    np.save(probs, opinions(np.array(true), size))
    run = table.parent / "run"
    flags = ["--set", "correction.mode=relabel", "--set", f"correction.budget={len(true)}"]
    done = command("audit", table, "--pred-probs", probs, "--out", run, *flags)
    assert done.exit_code == 0, done.output
    return run


def round_trip(table: Path, run: Path, decisions: list[dict], *flags: str) -> tuple[bytes, bytes]:
    """Export the table and a patch with some decisions, undo it in place; give both contents."""
    chosen = table.parent / "d.jsonl"
    chosen.write_text("".join(json.dumps(entry) + "\n" for entry in decisions))
    fixed, patch = table.with_stem("fixed"), table.parent / "p.patch.jsonl"
    for target in (fixed, patch):
        common = ("--decisions", chosen, "--overwrite", *flags)
        done = command("export", run, target, *common)
        assert done.exit_code == 0, done.output
    corrected = fixed.read_bytes()
    done = command("export", run, fixed, "--revert", patch, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["original_bytes"]
    return corrected, fixed.read_bytes()


def decide(row: int, label: str | None) -> dict:
    what = "drop" if label is None else "relabel"
    return {"row": row, "sample_id": str(row), "decision": what, "label": label}


def without_original(table: Path, run: Path) -> None:
    """Undo once more with the audited table out of reach: the patch alone must do."""
    fixed, patch = table.with_stem("fixed"), table.parent / "p.patch.jsonl"
    original = table.read_bytes()
    fixed.unlink()
    done = command("export", run, fixed, "--decisions", table.parent / "d.jsonl")
    assert done.exit_code == 0, done.output
    table.rename(table.with_name("hidden"))
    try:
        done = command("export", run, fixed, "--revert", patch)
        assert done.exit_code == 0, done.output
        assert fixed.read_bytes() == original
    finally:
        table.with_name("hidden").rename(table)


def test_a_table_written_by_hand(tmp_path):
    table = tmp_path / "data.csv"
    table.write_bytes(HAND.encode())
    run = audit_all_wrong(table, [0, 0, 1, 2, 2, 3], 4)
    changes = [decide(0, "bee, or wasp"), decide(1, "bee"), decide(2, "ant"), decide(5, "beex")]
    changes += [decide(3, None), decide(4, "ant")]
    corrected, restored = round_trip(table, run, changes)
    assert restored == table.read_bytes() == HAND.encode()
    assert corrected != restored
    # Every byte that is no label is as it was.
    assert (
        corrected
        == (
            "\ufefflabel,image,note\r\n"
            '"bee, or wasp",i/0.png,"two\r\nlines"\r\n'
            '"bee",i/1.png,007\r\n'
            "\r\n"
            '"ant",i/2.png,"say ""x"""\r\n'
            "ant,i/4.png,é\r\n"
            '"bee"x,i/5.png,last'
        ).encode()
    )
    without_original(table, run)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
@pytest.mark.parametrize("style", ["plain", "quoted", "crlf"])
def test_tables_written_by_pandas(tmp_path, suffix, style):
    names = np.array(CLASSES)[np.arange(30) % 3]
    frame = pd.DataFrame({"n": np.arange(30) / 7, "label": names, "x": [None, "é", "a\nb"] * 10})
    table = tmp_path / f"data{suffix}"
    if suffix == ".jsonl":
        lines = frame.to_json(orient="records", lines=True, force_ascii=style == "plain")
        table.write_bytes(lines.replace("\n", "\r\n" if style == "crlf" else "\n").encode())
    else:
        frame.to_csv(
            table,
            index=False,
            sep="," if suffix == ".csv" else "\t",
            quoting=csv.QUOTE_ALL if style == "quoted" else csv.QUOTE_MINIMAL,
            lineterminator="\r\n" if style == "crlf" else "\n",
        )
    run = audit_all_wrong(table, (np.arange(30) % 3).tolist(), 3)
    changes = [decide(row, CLASSES[(row + 1) % 3]) for row in range(5)]
    changes += [decide(29, None), decide(10, None), decide(11, None)]
    corrected, restored = round_trip(table, run, changes)
    assert restored == table.read_bytes()
    assert corrected.count(b"\n") < restored.count(b"\n")
    without_original(table, run)


def test_another_folder_and_other_forms(tmp_path):
    data = plant(tmp_path / "data", 60, 6)
    (tmp_path / "data" / "i").mkdir()
    frame = pd.read_csv(data.table)
    frame.insert(0, "image", [f"./i/{row}.png" for row in range(60)])
    frame.to_csv(data.table, index=False, lineterminator="\r\n")
    run = audit_probs(data, tmp_path / "run")
    patch = tmp_path / "p.patch.jsonl"
    for target in (patch, tmp_path / "fixed.csv", tmp_path / "fixed.parquet"):
        assert command("export", run, target, "--policy", "drop").exit_code == 0
    done = command("export", run, tmp_path / "fixed.csv", "--revert", patch)
    assert "byte for byte" in done.stdout, done.output
    assert (tmp_path / "fixed.csv").read_bytes() == data.table.read_bytes()
    # A new name: the audited table itself is the source, and there is nothing to undo in it.
    assert command("export", run, tmp_path / "new.csv", "--revert", patch).exit_code == 0
    assert (tmp_path / "new.csv").read_bytes() == data.table.read_bytes()
    flags = ("--revert", patch, "--manifest", tmp_path / "fixed.parquet")
    assert command("export", run, tmp_path / "new.csv", *flags).exit_code == 2
    assert command("export", run, tmp_path / "new.csv", *flags, "--overwrite").exit_code == 0
    assert (tmp_path / "new.csv").read_bytes() == data.table.read_bytes()


def test_other_edits_survive(tmp_path):
    data = plant(tmp_path, 60, 6)
    run = audit_probs(data, tmp_path / "run")
    patch, fixed = tmp_path / "p.patch.jsonl", tmp_path / "fixed.csv"
    for target in (patch, fixed):
        assert command("export", run, target, "--policy", "relabel").exit_code == 0
    assert fixed.read_bytes() != data.table.read_bytes()
    fixed.write_bytes(fixed.read_bytes().replace(b"x59", b"mine"))
    done = command("export", run, fixed, "--revert", patch)
    assert "labels restored" in done.stdout, done.output
    assert fixed.read_bytes() == data.table.read_bytes().replace(b"x59", b"mine")
    done = command("export", run, fixed, "--revert", patch)
    assert done.exit_code == 3
    assert "does not fit these labels" in done.stderr


@pytest.fixture(scope="module")
def patched(tmp_path_factory) -> tuple[Planted, Path, Path]:
    folder = tmp_path_factory.mktemp("patched")
    data = plant(folder, 60, 6)
    run = audit_probs(data, folder / "run")
    assert command("export", run, folder / "p.patch.jsonl").exit_code == 0
    return data, run, folder / "p.patch.jsonl"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: "{}\n" + t, "line 1"),
        (lambda t: "", "line 1"),
        (lambda t: t.replace('"labelclean_patch": 1', '"labelclean_patch": 2'), "version 2"),
        (lambda t: t + "{oops\n", "line "),
        (lambda t: t + t.splitlines()[-1] + "\n", "changed twice"),
        (lambda t: t.replace('"action": "relabel"', '"action": "drop"', 1), "does not go with"),
        (lambda t: t.replace('"row": ', '"row": 9', 1), "is not in 0 to 59"),
        (lambda t: t.replace('"digest": "', '"digest": "0'), "the patch is about the input"),
    ],
)
def test_a_patch_that_is_none(patched, tmp_path, change, words):
    _, run, patch = patched
    (tmp_path / "p.patch.jsonl").write_text(change(patch.read_text()))
    done = command("export", run, tmp_path / "o.csv", "--revert", tmp_path / "p.patch.jsonl")
    assert done.exit_code == 3, done.output
    assert words in done.stderr
    assert not (tmp_path / "o.csv").exists()


def test_wrong_usage_of_revert(patched, tmp_path):
    data, run, patch = patched
    target = tmp_path / "o.csv"
    assert command("export", run, target, "--revert", patch, "--policy", "drop").exit_code == 2
    assert command("export", run, target, "--revert", tmp_path / "none").exit_code == 3
    flags = ("--revert", patch, "--manifest", tmp_path / "none.csv")
    assert command("export", run, target, *flags).exit_code == 3
    short = tmp_path / "short.csv"
    short.write_bytes(b"\n".join(data.table.read_bytes().split(b"\n")[:20]))
    done = command("export", run, target, "--revert", patch, "--manifest", short)
    assert done.exit_code == 3
    assert "19 rows" in done.stderr
    shutil.copytree(data.table.parent, tmp_path / "folder")
    assert command("export", run, tmp_path / "folder", "--revert", patch).exit_code == 2


cells = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6)
labels = cells.filter(str.strip)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    names=st.lists(labels, min_size=2, max_size=4, unique=True),
    extra=st.lists(st.tuples(cells, cells), min_size=8, max_size=8),
    dialect=st.sampled_from(["excel", "unix", "excel-tab"]),
    moves=st.dictionaries(st.integers(0, 7), st.integers(-1, 3), max_size=8),
)
def test_any_table_comes_back(names, extra, dialect, moves):
    """The arithmetic of bytes alone: apply and undo over tables of any text."""
    from labelclean.correction.outcome import Outcome
    from labelclean.data.read import read_manifest
    from labelclean.data.textedit import cell_text, relabelled, text_layout
    from labelclean.outputs.patch_file import format_patch, read_patch
    from labelclean.runs.reading import OpenedRun
    from labelclean.workflows.export import make_patch
    from labelclean.workflows.revert import rebuilt_text

    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, dialect)
    writer.writerow(["a", "label", "b"])
    for row, (one, two) in enumerate(extra):
        writer.writerow([one, names[row % len(names)], two])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("t.tsv" if dialect == "excel-tab" else "t.csv")
        path.write_bytes(buffer.getvalue().encode())
        manifest = read_manifest(path, need_images=False)
        layout = text_layout(manifest, path.read_bytes())
        assert layout is not None
        label, kept = manifest.label.copy(), np.ones(8, bool)
        for row, code in moves.items():
            kept[row] = code >= 0
            label[row] = max(0, code) % len(manifest.classes)
        if not kept.any():
            return
        none = np.full(8, np.nan)
        outcome = Outcome(manifest, label, kept, np.full(8, None, dtype=object), none, none)
        patch_path = Path(folder) / "p.patch.jsonl"
        patch_path.write_bytes(format_patch(make_patch(OpenedRun(path, {}, manifest), outcome)))
        changed = {row: manifest.classes[label[row]] for row in outcome.moved.tolist()}
        content = relabelled(layout, changed, frozenset(outcome.dropped.tolist()))
        after = type(layout).parse(
            content, layout.delimiter, manifest.table.column_names, "label"
        )  # fmt: skip
        assert len(after.records) == kept.sum()
        assert all(cell_text(after, record) for record in after.records)
        assert rebuilt_text(read_patch(patch_path), after) == path.read_bytes()
