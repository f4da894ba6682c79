"""report.html in a real browser, opened from disk: read, filter, sort, decide, download."""

import json

import pandas as pd
import pytest

from labelclean.correction.decisions import Decision
from labelclean.data.read import read_manifest
from labelclean.runs.decisions_file import read_decisions
from pages import shown_rows, wait_for_rows, wait_for_text
from planted import command
from shown_runs import CLASSES, COMMENT, HOSTILE, WRONG


def suspects(visit, run):
    page, watch = visit(run.report)
    page.click("#tab-suspects")
    return page, watch


def issues(run):
    return pd.read_parquet(run.run / "issues.parquet").set_index("row")


def test_the_overview_is_drawn_and_nothing_leaves_the_machine(visit, hostile):
    page, watch = visit(hostile.report)
    titles = page.locator("#charts h2").all_inner_texts()
    assert titles == [
        "Given and suggested labels", "How true labels became given labels", "Noise by class",
        "How good each signal is on this data", "Distributions", "Attention τ during training",
        "Training", "Compared with the truth",
    ]  # fmt: skip
    assert page.locator("svg.matrix").count() == 2
    assert page.locator("svg.matrix >> nth=0 >> rect[data-at]").count() > len(CLASSES)
    assert page.locator(".panels svg.chart").count() == 3 + 3 + 3 + 3
    facts = json.loads((hostile.run / "run.json").read_text())
    text = page.locator(".numbers").first.inner_text()
    assert f"{100 * facts['noise_rate']:.1f} %" in text
    assert f"{100 * facts['noise_rate_interval'][1]:.1f} %" in text
    assert watch.strangers("file://", "data:image/") == []
    assert watch.faults == []


def test_hostile_names_are_text_and_shown_whole(visit, hostile):
    page, watch = suspects(visit, hostile)
    found = issues(hostile)
    flagged = found.index[found["action"] != "keep"].tolist()
    assert set(found["label_given"]) == set(CLASSES)
    for name in CLASSES:
        row = int(found.index[(found["label_given"] == name) & (found["action"] != "keep")][0])
        page.fill("#search", f"row {row}")
        page.click(f"#row-{row}")
        assert page.locator("#detail .labels dd bdi").first.text_content() == name
        assert page.locator("#detail .labels dd bdi").first.is_visible()
    page.fill("#search", "etc/shadow")
    wait_for_rows(page, [row for row in flagged if row < WRONG])
    wrong = shown_rows(page)
    assert {row % 3 for row in wrong} == {0, 1, 2}
    for row in wrong[:9]:
        page.click(f"#row-{row}")
        origin = page.locator("#detail .origin bdi").all_text_contents()
        assert origin == [
            f"images/{HOSTILE[row % 3]}{row}.png",
            f"../../../etc/shadow<script>window.hacked={row}",
        ]
        marks = page.locator("#detail .origin .marks").all_inner_texts()
        assert marks == (["holds hidden characters: U+202E"] if row % 3 == 1 else [])
    assert page.evaluate("window.hacked") is None
    assert page.locator("h1 bdi").inner_text() == "data <i>set.parquet"
    assert page.locator("script").count() == 2
    assert watch.strangers("file://", "data:image/") == []
    assert watch.faults == []


def test_filter_and_sort(visit, hostile):
    page, _ = suspects(visit, hostile)
    found = issues(hostile)
    flagged = found[found["action"] != "keep"]
    wait_for_rows(page, flagged.index[:60].tolist())
    pair = flagged.groupby(["label_given", "label_suggested"]).size().idxmax()
    page.fill("[data-adds=given]", pair[0])
    page.fill("[data-adds=suggested]", pair[1])
    chosen = flagged[(flagged["label_given"] == pair[0]) & (flagged["label_suggested"] == pair[1])]
    wait_for_rows(page, chosen.index.tolist())
    page.select_option("#order", "row")
    wait_for_rows(page, sorted(chosen.index))
    page.click("#start-over")
    page.uncheck("input[name=action][value=relabel]")
    assert {"relabel", "review"} <= set(flagged["action"])
    wanted = flagged[flagged["action"] == "review"]
    page.fill("input[name=max]", "97")
    wanted = wanted[wanted["p_error"].round(4) <= 0.97]
    wait_for_rows(page, wanted.index[:60].tolist())
    page.click("#start-over")
    page.select_option("#order", "informative")
    doubt = (flagged["p_error"].round(4) - 0.5).abs()
    wait_for_rows(page, doubt.sort_values(kind="stable").index[:60].tolist())
    # A cell of the matrix leads to its rows.
    page.click("#tab-overview")
    pairs = flagged.groupby(["label_given", "label_suggested"]).size()
    words = page.locator(".pairs button").first
    counts = page.locator(".pairs .value").first.inner_text()
    assert int(counts) == pairs.max()
    words.click()
    wait_for_text(page, "#matches", f"{pairs.max()} rows match")
    assert len(shown_rows(page)) == pairs.max()


def test_decide_by_keyboard_download_and_export(visit, hostile, tmp_path):
    page, watch = suspects(visit, hostile)
    rows = shown_rows(page)[:8]
    found = issues(hostile)
    given = CLASSES.index(found.loc[rows[4], "label_given"])
    classes = read_manifest(hostile.folder / "data <i>set.parquet", label_col="label").classes
    number = next(at for at, name in enumerate(classes) if name != CLASSES[given])
    page.focus("#gallery")
    for key in ("a", "c", "d", "u", str(number + 1), "n", "c", "z", "j"):
        page.keyboard.press(key)
    page.wait_for_selector(f"#row-{rows[7]}[aria-selected=true]")
    page.keyboard.press("l")
    page.keyboard.type("../")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"#row-{rows[7]} .decided")
    assert page.locator("#gallery .decided").count() == 7
    assert page.locator("#progress").inner_text() == "7 decided"
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert page.locator("#gallery .decided").count() == 7, "kept over a reload"
    with page.expect_download() as waiting:
        page.click("#download")
    path = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(path)
    assert path.name == "decisions.jsonl"
    manifest = read_manifest(hostile.folder / "data <i>set.parquet", label_col="label")
    suggested = classes.index(found.loc[rows[0], "label_suggested"])
    climbing = classes.index("../../../etc/passwd")
    last = "confirm" if found.loc[rows[7], "label_given"] == classes[climbing] else "relabel"
    assert read_decisions(path, manifest) == {
        rows[0]: Decision("relabel", suggested),
        rows[1]: Decision("confirm", None),
        rows[2]: Decision("drop", None),
        rows[3]: Decision("unsure", None),
        rows[4]: Decision("relabel", number),
        rows[5]: Decision("none_of_these", None),
        rows[7]: Decision(last, climbing if last == "relabel" else None),
    }
    assert all(json.loads(line)["time"] for line in path.read_text().splitlines())
    done = command("export", hostile.run, tmp_path / "clean.parquet", "--decisions", path)
    assert done.exit_code == 0, done.output
    clean = pd.read_parquet(tmp_path / "clean.parquet").set_index("sample_id")
    names = pd.read_parquet(hostile.folder / "data <i>set.parquet")["sample_id"]
    assert clean.loc[names[rows[0]], "label"] == classes[suggested]
    assert clean.loc[names[rows[1]], "label"] == found.loc[rows[1], "label_given"]
    assert names[rows[2]] not in clean.index
    assert watch.strangers("file://", "data:image/", "blob:null") == []


def test_keys_do_nothing_while_typing_and_are_explained(visit, hostile):
    page, _ = suspects(visit, hostile)
    page.keyboard.press("/")
    page.keyboard.type("candy")
    assert page.input_value("#search") == "candy"
    wait_for_text(page, "#matches", "No row matches.")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    words = page.locator("#keys").inner_text()
    for word in ("next row", "confirm", "accept", "drop", "unsure", "none of these", "undo"):
        assert word in words
    page.keyboard.press("c")
    page.keyboard.press("Escape")
    assert not page.locator("#keys").is_visible()
    assert page.locator("#progress").inner_text() == "0 decided"
    page.click("#start-over")
    page.focus("#gallery")
    page.keyboard.press("z")
    wait_for_text(page, "#says", "There is nothing to undo.")


def test_neighbours_and_thumbnails_without_metadata(visit, hostile):
    page, _ = suspects(visit, hostile)
    row = shown_rows(page)[0]
    near = page.locator("#detail .near li")
    assert near.count() == 5
    assert near.locator("img").count() == 5
    records = pd.read_parquet(hostile.run / "records.parquet").set_index("row")
    given = pd.read_parquet(hostile.folder / "data <i>set.parquet")["label"]
    labels = [given[other] for other in records.loc[row, "neighbours"]]
    assert page.locator("#detail .near li > bdi").all_text_contents() == labels
    loaded = page.evaluate(
        "[...document.images].filter(i => i.src && i.checkVisibility()).every(i => i.naturalWidth)"
    )
    assert loaded
    assert COMMENT not in (hostile.run / "report.html").read_text()
    page.keyboard.press("o")
    assert page.locator("#full img").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_theme_follows_the_system_and_can_be_switched(visit, hostile, scheme):
    page, _ = visit(hostile.report, color_scheme=scheme)
    shade = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(shade)
    assert (before == "rgb(17, 21, 27)") == (scheme == "dark")
    page.click("#theme")
    assert page.evaluate(shade) != before
    page.reload()
    assert page.evaluate(shade) != before


def test_narrow_screens_need_no_sideways_scrolling(visit, hostile):
    page, _ = visit(hostile.report, viewport={"width": 375, "height": 740})
    sideways = "document.documentElement.scrollWidth > innerWidth"
    assert not page.evaluate(sideways)
    page.click("#tab-suspects")
    assert not page.evaluate(sideways)


def test_print_shows_both_parts(visit, hostile):
    page, _ = visit(hostile.report)
    page.emulate_media(media="print")
    assert page.locator("#overview").is_visible()
    assert page.locator("#suspects").is_visible()
    assert not page.locator("#filters").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("part", ["overview", "suspects"])
def test_no_serious_accessibility_violation(visit, hostile, grave, scheme, part):
    page, _ = visit(hostile.report, color_scheme=scheme)
    page.click(f"#tab-{part}")
    assert grave(page) == []
