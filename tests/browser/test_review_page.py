"""The review page in a real browser, from a real process: decide, kill, go on, undo, export."""

import shutil
import signal

import pandas as pd
import pytest

from pages import CARD, shown_rows, wait_for_rows, wait_for_text
from planted import command
from reviewing import Server, lines
from shown_runs import CLASSES, Shown


@pytest.fixture
def run(hostile, tmp_path) -> Shown:
    """The hostile run, where decisions can be left behind."""
    folder = tmp_path / "copy"
    shutil.copytree(hostile.folder, folder)
    return Shown(folder, folder / "run", hostile.given, hostile.true)


def test_decide_kill_go_on_undo_export(visit, run, tmp_path):
    found = pd.read_parquet(run.run / "issues.parquet").set_index("row")
    with Server(run.run) as server:
        page, watch = visit(server.said["url"])
        page.wait_for_selector(CARD)
        rows = shown_rows(page)[:5]
        assert rows == found.index[:5].tolist()
        for done, key in enumerate("acdn", 1):
            page.keyboard.press(key)
            wait_for_text(page, "#progress", f"{done} decided")
        assert [line["decision"] for line in lines(run.run)] == [
            "relabel", "confirm", "drop", "none_of_these",
        ]  # fmt: skip
        assert watch.strangers(server.said["url"], "data:,") == []
        assert watch.faults == []
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        page.keyboard.press("c")
        page.locator("#says", has_text="Not done").wait_for()
        assert page.locator(f"#row-{rows[4]} .decided").count() == 0, "it was not saved"
    with Server(run.run) as server:
        page, _ = visit(server.said["url"])
        wait_for_text(page, "#progress", "4 decided")
        assert [page.locator(f"#row-{row} .decided").count() for row in rows] == [1, 1, 1, 1, 0]
        page.keyboard.press("z")
        wait_for_text(page, "#progress", "3 decided")
        assert page.locator(f"#row-{rows[3]} .decided").count() == 0
        assert page.locator(f"#row-{rows[3]}").get_attribute("aria-selected") == "true"
    assert lines(run.run)[-1]["decision"] == "undo"
    target = tmp_path / "clean.parquet"
    done = command("export", run.run, target, "--decisions", run.run / "decisions.jsonl")
    assert done.exit_code == 0, done.output
    clean = pd.read_parquet(target).set_index("sample_id")["label"]
    names = found["sample_id"]
    assert clean[names[rows[0]]] == found.loc[rows[0], "label_suggested"]
    assert clean[names[rows[1]]] == found.loc[rows[1], "label_given"]
    assert names[rows[2]] not in clean.index
    assert names[rows[3]] in clean.index


def test_filter_search_and_look(visit, run):
    found = pd.read_parquet(run.run / "issues.parquet").set_index("row")
    flagged = found[found["action"] != "keep"]
    with Server(run.run) as server:
        page, watch = visit(server.said["url"])
        for name in CLASSES[:2]:
            page.fill("[data-adds=given]", name)
        page.locator("#chosen-given .chip >> nth=1").wait_for()
        wanted = flagged[flagged["label_given"].isin(CLASSES[:2])]
        page.locator("#matches", has_text=f"{len(wanted)} rows match").wait_for()
        wait_for_rows(page, wanted.index.tolist())
        page.click("#start-over")
        row = int(flagged.index[0])
        page.fill("#search", flagged["path"].iloc[0])
        page.locator("#matches", has_text="1 rows match").wait_for()
        wait_for_rows(page, [row])
        assert (
            page.locator("#detail .labels bdi").first.text_content()
            == found.loc[row, "label_given"]
        )
        assert page.locator("#detail .near img").count() == 5
        page.keyboard.press("Escape")
        page.keyboard.press("o")
        page.locator("#full img").wait_for()
        page.wait_for_timeout(500)
        assert page.evaluate("document.querySelector('#full img').naturalWidth") == 48
        assert page.evaluate("window.hacked") is None
        assert watch.strangers(server.said["url"], "data:,") == []
        assert watch.faults == []


def test_after_twenty_answers_the_page_says_what_they_tell(visit, run):
    with Server(run.run) as server:
        page, _ = visit(server.said["url"])
        page.select_option("#order", "informative")
        asked = server.get("api/rows?order=informative&decided=no&limit=60").json["rows"]
        assert "keep" in {row["action"] for row in asked}
        wait_for_rows(page, [row["row"] for row in asked])
        page.focus("#gallery")
        for done in range(1, 21):
            assert not page.locator("#estimate").is_visible()
            page.keyboard.press("a")
            wait_for_text(page, "#progress", f"{done} decided")
            page.wait_for_selector("body:not([data-saving])")
        page.locator("#estimate").wait_for()
        state = server.get("api/state").json
        assert page.locator("#estimate").inner_text() == state["estimate"]["message"]
        assert state["estimate"]["noise_interval"][1] < 1, "the first block of questions counts"


def test_no_serious_accessibility_violation(visit, run, grave):
    with Server(run.run) as server:
        page, _ = visit(server.said["url"], color_scheme="light")
        page.wait_for_selector(CARD)
        page.keyboard.press("c")
        wait_for_text(page, "#progress", "1 decided")
        colour = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(colour)
        assert grave(page) == []
        page.emulate_media(color_scheme="dark")
        assert page.evaluate(colour) != light
        assert grave(page) == []
