"""The repair loop: audit, export, apply, look again, take it back."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from planted import command, opinions

pytestmark = pytest.mark.usefixtures("plain_figures")
NAMES = ("ant", "bee", "cat")
ROWS = 60


def write_world(folder: Path) -> tuple[Path, np.ndarray]:
    """Pictures with names of their own in `data/images`, a table, probabilities; 6 rows wrong."""
    rng = np.random.default_rng(0)
    true = np.arange(ROWS) % 3
    given = true.copy()
    given[:6] = (given[:6] + 1) % 3
    (folder / "data" / "images").mkdir(parents=True)
    paths = []
    for row in range(ROWS):
        # Two sub-folders hold pictures of the same names.
        name = f"images/{'ab'[row % 2]}/IMG_{row // 2:04d}.PNG"
        (folder / "data" / name).parent.mkdir(exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(
            folder / "data" / name
        )
        paths.append(name)
    frame = pd.DataFrame({"image": paths, "label": np.array(NAMES)[given], "note": "=1+1"})
    frame.to_csv(folder / "data" / "data.csv", index=False)
    np.save(folder / "probs.npy", opinions(true, 3).astype(np.float32))
    return folder / "data" / "data.csv", true


def audited(data: Path, probs: Path, out: Path) -> Path:
    flags = ("--pred-probs", probs, "--out", out, "--set", "correction.mode=relabel", "--quiet")
    done = command("audit", data, *flags)
    assert done.exit_code == 0, done.output
    return out


def decided(run: Path, *, drop: int) -> Path:
    """Drop the first suspects by hand."""
    issues = pd.read_parquet(run / "issues.parquet")
    lines = [
        json.dumps({"row": int(line.row), "sample_id": line.sample_id, "decision": "drop",
                    "label": None, "time": "now"}) + "\n"
        for line in issues.head(drop).itertuples()
    ]  # fmt: skip
    (run / "decisions.jsonl").write_text("".join(lines))
    return run / "decisions.jsonl"


@pytest.mark.parametrize("form", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_apply_a_patch_to_a_table_and_take_it_back(tmp_path, form):
    source, _ = write_world(tmp_path)
    frame, table = pd.read_csv(source), source.with_suffix(form)
    if form == ".parquet":
        frame.to_parquet(table)
    elif form == ".jsonl":
        frame.to_json(table, orient="records", lines=True)
    elif form == ".tsv":
        frame.to_csv(table, index=False, sep="\t")
    run = audited(table, tmp_path / "probs.npy", tmp_path / "run")
    people = decided(run, drop=2)
    patch = tmp_path / "fix.patch.jsonl"
    assert command("export", run, patch, "--decisions", people).exit_code == 0
    before = table.read_bytes()
    done = command("apply", patch, table, "--dry-run", "--json")
    facts = json.loads(done.stdout)
    assert (facts["left_out"], facts["dry_run"]) == (2, True)
    assert facts["relabelled"] >= 4
    assert table.read_bytes() == before
    done = command("apply", patch, table)
    assert done.exit_code == 0, done.output
    # What came out is what the export would have been, and our own check reads it.
    target = tmp_path / "data" / f"same{form}"
    assert command("export", run, target, "--decisions", people, "--manifest", table).exit_code == 3
    done = command("check", table, "--workers", 0, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["rows"] == ROWS - 2
    again = command("apply", patch, table)
    assert again.exit_code == 3
    assert "applied already" in again.stderr
    done = command("apply", patch, table, "--revert", "--dry-run", "--json")
    assert json.loads(done.stdout)["original_bytes"] is True
    assert table.read_bytes() != before
    done = command("apply", patch, table, "--revert", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["original_bytes"] is True
    assert table.read_bytes() == before
    left = {path.name for path in table.parent.iterdir()}
    assert left == {"images", "data.csv", table.name}


def test_apply_a_patch_to_a_folder_and_take_it_back(tmp_path):
    source, true = write_world(tmp_path)
    frame, folder = pd.read_csv(source), tmp_path / "classes"
    for row, line in frame.iterrows():
        place = folder / line.label / f"{row:02d}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.parent / line.image, place)
    (folder / "bee" / "00.png").replace(folder / "bee" / "18.png.png")
    listed = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    rows = [int(path.name[:2]) if path.name != "18.png.png" else 0 for path in listed]
    np.save(tmp_path / "p.npy", np.load(tmp_path / "probs.npy")[rows])
    run = audited(folder, tmp_path / "p.npy", tmp_path / "run")
    people = decided(run, drop=1)
    patch = tmp_path / "fix.patch.jsonl"
    assert command("export", run, patch, "--decisions", people).exit_code == 0
    content = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert command("apply", patch, folder, "--dry-run").exit_code == 0
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == content
    done = command("apply", patch, folder, "--json")
    assert done.exit_code == 0, done.output
    moved = json.loads(done.stdout)["relabelled"]
    assert moved >= 4
    done = command("check", folder, "--workers", 0, "--json")
    assert json.loads(done.stdout)["rows"] == ROWS - 1
    wrong = [
        path for path in folder.glob("[a-z]*/*.png")
        if path.name != "18.png.png" and NAMES[true[int(path.name[:2])]] != path.parent.name
    ]  # fmt: skip
    assert len(wrong) <= 1, "only what was neither relabelled nor dropped"
    assert command("apply", patch, folder).exit_code == 3
    done = command("apply", patch, folder, "--revert", "--json")
    assert json.loads(done.stdout)["original_bytes"] is True, done.output
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == content
    # A run that was killed half way is gone on with, and undone as a whole.
    assert command("apply", patch, folder).exit_code == 0
    journal = json.loads((folder / ".labelclean-apply.json").read_text())
    here, there = journal["moves"][-1]
    (folder / there).rename(folder / here)
    assert command("apply", patch, folder).exit_code == 0
    assert (folder / there).exists()
    assert command("apply", patch, folder, "--revert").exit_code == 0
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == content


def test_a_patch_that_does_not_fit_changes_nothing(tmp_path):
    source, _ = write_world(tmp_path)
    run = audited(source, tmp_path / "probs.npy", tmp_path / "run")
    patch = tmp_path / "fix.patch.jsonl"
    assert command("export", run, patch).exit_code == 0
    text = source.read_text()
    lines = text.splitlines(keepends=True)
    for content in ("".join(lines[:-1]), "".join([lines[0], *reversed(lines[1:])])):
        source.write_text(content)
        done = command("apply", patch, source)
        assert done.exit_code == 3
        assert "patch" in done.stderr
        assert source.read_text() == content
    source.write_text(text)
    assert command("apply", patch, source, "--revert").exit_code == 3
    assert command("apply", patch, tmp_path / "nowhere.csv").exit_code == 3
    assert command("apply", source, source).exit_code == 3
    assert source.read_text() == text


@pytest.mark.parametrize(
    ("form", "flags"),
    [
        *((form, ()) for form in (".csv", ".tsv", ".jsonl", ".parquet", "")),
        *((form, ("--with-evidence",)) for form in (".csv", ".tsv", ".jsonl", ".parquet", "")),
        pytest.param(
            "", ("--link",), marks=pytest.mark.skipif(os.name != "posix", reason="symbolic links")
        ),
    ],
)
def test_our_own_check_and_audit_read_every_export(tmp_path, form, flags):
    """Written far from the pictures, with and without our columns; no flag is needed."""
    source, true = write_world(tmp_path)
    run = audited(source, tmp_path / "probs.npy", tmp_path / "run")
    (tmp_path / "far" / "away").mkdir(parents=True)
    target = tmp_path / "far" / "away" / f"clean{form}"
    assert command("export", run, target, *flags).exit_code == 0
    done = command("check", target, "--workers", 0, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["rows"], found["readable"]) == (ROWS, ROWS)
    again = audited(target, tmp_path / "probs.npy", tmp_path / "again")
    clean = pd.read_parquet(again / "issues.parquet").set_index("row").label_given
    assert (clean.sort_index() == np.array(NAMES)[true]).mean() > 0.95
    # And what is exported from that one is read, too.
    third = tmp_path / f"third{form}"
    assert command("export", again, third, *flags).exit_code == 0
    assert command("check", third, "--workers", 0, "--quiet").exit_code == 0


def test_a_folder_keeps_the_names_of_its_pictures(tmp_path):
    source, _ = write_world(tmp_path)
    run = audited(source, tmp_path / "probs.npy", tmp_path / "run")
    assert command("export", run, tmp_path / "folder").exit_code == 0
    frame = pd.read_parquet(tmp_path / "folder" / "metadata.parquet")
    original = pd.read_csv(source)
    assert len(set(frame.file_name)) == ROWS
    numbered = 0
    for written, image in zip(frame.file_name, original.image, strict=True):
        kept, name = Path(written).stem, Path(image).stem
        assert kept in (name, f"{name}~2")
        numbered += kept != name
        assert (tmp_path / "folder" / written).read_bytes() == (source.parent / image).read_bytes()
    twins = frame.assign(stem=original.image.map(lambda path: Path(path).stem))
    clashes = twins.groupby(["label", "stem"]).size()
    assert numbered == int((clashes - 1).sum())
