"""Outliers, duplicates and leaks: found, filtered and decided by keyboard in a real browser."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_digits, load_sample_image

from pages import CARD, shown_rows, wait_for_rows, wait_for_text
from planted import command
from reviewing import Server, lines

DIGITS, STRANGE = 120, 6
COPIED, LEAKED = (5, 6, 7), (20, 21)  # rows whose pictures stand once more


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """An audit of digits among which are pieces of a photograph, copies, and leaks into test."""
    folder = tmp_path_factory.mktemp("lists")
    (folder / "images").mkdir()
    digits = load_digits()
    rng = np.random.default_rng(0)
    lines = []

    def add(pixels, label, split="train"):
        path = f"images/{len(lines)}.png"
        Image.fromarray(pixels).resize((32, 32), Image.Resampling.BICUBIC).save(folder / path)
        lines.append((path, f"digit {label}", split))

    for row in range(DIGITS):
        add((255 - digits.images[row] * 15.9).astype(np.uint8), digits.target[row])
    temple = load_sample_image("china.jpg")
    for _ in range(STRANGE):
        side = int(rng.integers(60, 300))
        top, left = (int(rng.integers(0, most - side)) for most in temple.shape[:2])
        add(temple[top : top + side, left : left + side], rng.integers(0, 10))
    for row in COPIED:
        add((255 - digits.images[row] * 15.9).astype(np.uint8), digits.target[row])
    for row in LEAKED:
        add((255 - digits.images[row] * 15.9).astype(np.uint8), digits.target[row], "test")
    pd.DataFrame(lines, columns=["image", "label", "split"]).to_csv(
        folder / "data.csv", index=False
    )
    flags = ("--out", folder / "run", "--epochs", 2, "--quiet", "--json")
    done = command("audit", folder / "data.csv", "--cache-dir", folder / "cache", *flags)
    assert done.exit_code == 0, done.output
    said = "".join(
        json.dumps({"row": row, "sample_id": str(row), "decision": "none_of_these"}) + "\n"
        for row in range(DIGITS, DIGITS + STRANGE)
    )
    (folder / "said.jsonl").write_text(said, encoding="utf-8")
    done = command("report", folder / "run", "--decisions", folder / "said.jsonl")
    assert done.exit_code == 0, done.output
    assert "2 rows are in another split too: 20 (also" in done.output
    return folder / "run"


def test_the_audit_finds_them_and_says_so(run):
    facts = json.loads((run / "run.json").read_text(encoding="utf-8"))
    found, odd = facts["findings"], facts["outliers"]
    assert found["duplicates"] == {"rows": 8, "groups": 5, "exact": 8, "near": 0}
    assert found["leaks"] == len(LEAKED)
    assert facts["held_out_leaks"] == {"test": len(LEAKED)}
    assert found["kinds"]["outlier"] == STRANGE
    assert odd["planted"] == 0
    assert "rows are too few to learn from" in found["unknown"][0]
    issues = pd.read_parquet(run / "issues.parquet").set_index("row").sort_index()
    assert issues["p_outlier"].isna().all()
    assert (issues.loc[DIGITS : DIGITS + STRANGE - 1, "kind"] == "outlier").all()
    assert issues.loc[list(LEAKED), "leaks_to"].tolist() == list(
        range(DIGITS + STRANGE + len(COPIED), DIGITS + STRANGE + len(COPIED) + len(LEAKED))
    )


def test_lists_are_found_filtered_and_decided_by_keyboard(visit, run, grave):
    issues = pd.read_parquet(run / "issues.parquet").set_index("row")
    odd = issues[issues.kind == "outlier"]
    copies = sorted([*COPIED, *range(DIGITS + STRANGE, DIGITS + STRANGE + len(COPIED))])
    with Server(run) as server:
        page, watch = visit(server.said["url"])
        page.focus("#gallery")
        page.keyboard.press("f")
        wait_for_text(page, "#matches", f"{len(odd)} rows match")
        assert shown_rows(page) == odd.index.tolist()
        assert page.input_value("#finding") == "outliers"
        first = shown_rows(page)[0]
        page.keyboard.press("n")
        wait_for_text(page, "#progress", "1 decided")
        assert lines(run)[-1]["row"] == first
        assert lines(run)[-1]["decision"] == "none_of_these"
        page.wait_for_selector("body:not([data-saving])")
        page.keyboard.press("f")
        wait_for_text(page, "#matches", "8 rows match")
        # Copies stand side by side, and each shows the other one.
        groups = issues.loc[shown_rows(page), "duplicate_group"].tolist()
        assert groups == sorted(groups)
        assert set(copies) < set(shown_rows(page))
        assert page.locator(".copies li").count() == 1
        assert page.locator(".copies img").evaluate("image => image.decode().then(() => true)")
        page.keyboard.press("j")
        second = shown_rows(page)[1]
        page.keyboard.press("d")
        wait_for_text(page, "#progress", "2 decided")
        assert (lines(run)[-1]["row"], lines(run)[-1]["decision"]) == (second, "drop")
        page.wait_for_selector("body:not([data-saving])")
        page.keyboard.press("f")
        wait_for_text(page, "#matches", "2 rows match")
        wait_for_rows(page, list(LEAKED))
        wait_for_text(page, ".copies", "test")
        # The picture of the test split is shown though nobody audited it.
        assert page.locator(".copies img").evaluate("image => image.decode().then(() => true)")
        assert grave(page) == []
        page.keyboard.press("d")
        wait_for_text(page, "#progress", "3 decided")
        page.wait_for_selector("body:not([data-saving])")
        page.keyboard.press("z")
        wait_for_text(page, "#progress", "2 decided")
        page.wait_for_selector("body:not([data-saving])")
        page.keyboard.press("f")
        page.wait_for_function("document.querySelector('#finding').value === ''")
        for name in ("outliers", "duplicates", "leaks"):
            got = server.get(f"api/rows?finding={name}&limit=500").json
            assert got["total"] == {"outliers": len(odd), "duplicates": 8, "leaks": 2}[name]
        assert server.get("api/rows?finding=ghosts").status == 400
        assert watch.faults == []


def test_the_report_lists_them_from_disk(visit, run, grave):
    page, watch = visit((run / "report.html").as_uri())
    assert page.locator("[data-list]").count() == 3
    page.locator("[data-list=leaks]").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(CARD)
    wait_for_rows(page, list(LEAKED))
    assert page.locator(".copies img").evaluate("image => image.decode().then(() => true)")
    page.keyboard.press("f")
    page.keyboard.press("f")
    wait_for_text(page, "#matches", "rows match")
    page.keyboard.press("n")
    wait_for_text(page, "#progress", "1 decided")
    assert grave(page) == []
    assert watch.faults == []
    assert watch.strangers("file:", "data:") == []


def test_an_export_leaves_them_out_and_a_patch_undoes_it(run, tmp_path):
    data, issues = run.parent / "data.csv", pd.read_parquet(run / "issues.parquet")
    odd = set(issues.row[issues.kind == "outlier"])
    lists = ("--drop", "outliers,duplicates,leaks", "--policy", "keep")
    patch, target = tmp_path / "clean.patch.jsonl", tmp_path / "data.csv"
    assert command("export", run, patch, *lists).exit_code == 0
    out = {json.loads(line)["row"] for line in patch.read_text("utf-8").splitlines()[1:]}
    assert out == odd | set(LEAKED) | {row for row in out if row in COPIED or row >= DIGITS}
    assert len(out - odd - set(LEAKED)) == len(COPIED)
    target.write_bytes(data.read_bytes())
    assert command("apply", patch, target).exit_code == 0
    assert len(pd.read_csv(target)) == len(pd.read_csv(data)) - len(out)
    assert command("apply", patch, target, "--revert").exit_code == 0
    assert target.read_bytes() == data.read_bytes()
    refused = command("export", run, tmp_path / "a.csv", "--drop", "ghosts")
    assert refused.exit_code == 2
    assert "'ghosts' is none of outliers, duplicates, leaks" in refused.output
