"""Several rows at once, and a telephone's width, in a real browser against a real server."""

import re

import pandas as pd
import pytest

from pages import CARD, shown_rows, wait_for_rows, wait_for_text
from planted import command
from reviewing import Server, lines, pictured


@pytest.fixture
def run(tmp_path):
    return pictured(tmp_path / "data")


def test_select_accept_undo_and_export(visit, run, tmp_path):
    """Select by key, by Ctrl and click, and all; decide them in one go; z takes that back."""
    found = pd.read_parquet(run / "issues.parquet").set_index("row")
    with Server(run) as server:
        page, watch = visit(server.said["url"])
        page.wait_for_selector(CARD)
        rows = [row for row in shown_rows(page) if found.loc[row, "action"] != "unreadable"]
        assert page.locator("#bulk-accept").is_disabled()
        page.focus("#gallery")
        page.keyboard.press("x")
        page.locator(f"#row-{rows[2]}").click(modifiers=["Control"])
        wait_for_text(page, "#bulk", "2 selected")
        assert page.locator("#gallery .marked").count() == 2
        page.click("#bulk-accept")
        wait_for_text(page, "#progress", "2 decided")
        wait_for_text(page, "#bulk", "None selected")
        said = {line["row"]: line for line in lines(run)}
        assert set(said) == {rows[0], rows[2]}
        for row in said:
            assert said[row]["decision"] == "relabel"
            assert said[row]["label"] == found.loc[row, "label_suggested"]
        page.wait_for_selector("body:not([data-saving])")
        page.keyboard.press("z")
        wait_for_text(page, "#progress", "0 decided")
        assert [line["decision"] for line in lines(run)][2:] == ["undo", "undo"]
        page.click("#bulk-all")
        wait_for_text(page, "#bulk", f"{len(rows)} selected")
        page.click("#bulk-accept")
        wait_for_text(page, "#progress", f"{len(rows)} decided")
        assert watch.faults == []
        # What is decided cannot be selected again.
        page.wait_for_selector("body:not([data-saving])")
        page.click("#bulk-all")
        assert page.locator("#bulk-drop").is_disabled()
    target = tmp_path / "clean.csv"
    done = command("export", run, target, "--decisions", run / "decisions.jsonl")
    assert done.exit_code == 0, done.output
    clean = pd.read_csv(target).set_index("sample_id")["label"]
    accepted = found.loc[rows]
    assert (clean[accepted.sample_id].to_numpy() == accepted.label_suggested.to_numpy()).all()


def test_a_suspect_without_a_suggestion_is_never_confirmed_by_accepting(visit, run):
    """Two suspects that no other label fits: keys and the button for all leave them to a person."""
    none_fits = (
        "() => page.gallery.rows.filter(row => row.action !== 'unreadable').slice(0, 2)"
        ".map(row => { row.suggested = row.given; return row.row; })"
    )
    with Server(run) as server:
        page, watch = visit(server.said["url"])
        page.wait_for_selector(CARD)
        rows = page.evaluate(none_fits)
        page.click(f"#row-{rows[0]}")
        page.focus("#gallery")
        page.keyboard.press("a")
        page.locator("#says", has_text="nothing to accept").wait_for()
        page.click("#bulk-all")
        page.click("#bulk-accept")
        page.locator("#says", has_text="2 without a suggestion stay selected").wait_for()
        wait_for_text(page, "#bulk", "2 selected")
        assert not set(rows) & {line["row"] for line in lines(run)}
        assert {line["decision"] for line in lines(run)} == {"relabel"}
        assert watch.faults == []


def test_a_server_that_dies_half_way_leaves_the_rest_selected(visit, run):
    with Server(run) as server:
        page, _ = visit(server.said["url"])
        page.wait_for_selector(CARD)
        page.click("#bulk-all")
        chosen = page.locator("#gallery .marked").count()
        server.process.kill()
        server.process.wait()
        page.click("#bulk-drop")
        page.locator("#says", has_text="Not done").wait_for()
        assert page.locator("#gallery .marked").count() == chosen
        assert page.locator("#gallery .decided").count() == 0


def test_buttons_stay_in_view_on_a_telephone(visit, run, grave):
    inside = (
        "names => names.every(name => { const button = document.querySelector("
        "`[data-decision=${name}]`); const box = button.getBoundingClientRect(); "
        "return box.width > 0 && box.top >= 0 && box.left >= 0"
        " && box.bottom <= innerHeight && box.right <= innerWidth; })"
    )
    names = ["confirm", "relabel", "drop", "unsure", "none_of_these"]
    with Server(run) as server:
        page, _ = visit(server.said["url"], viewport={"width": 390, "height": 844})
        page.wait_for_selector(CARD)
        for place in (0, 300, 100_000):
            page.evaluate("place => scrollTo(0, place)", place)
            page.wait_for_timeout(50)
            assert page.evaluate(inside, names), place
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        # Nothing at the end of the page lies below them for good.
        end = page.evaluate("document.querySelector('.origin').getBoundingClientRect().bottom")
        bar = page.evaluate("document.querySelector('.ways').getBoundingClientRect().top")
        assert end <= bar
        first = shown_rows(page)[0]
        page.click("[data-decision=confirm]")
        wait_for_text(page, "#progress", "1 decided")
        assert lines(run)[0]["row"] == first
        page.click("#tab-overview")
        assert not page.locator(".ways").is_visible()
        page.click("#tab-suspects")
        assert grave(page) == []


def test_marks_go_with_another_filter(visit, run):
    with Server(run) as server:
        page, _ = visit(server.said["url"])
        page.wait_for_selector(CARD)
        row = shown_rows(page)[0]
        page.click("#bulk-all")
        page.fill("#search", f"row {row}")
        page.locator("#matches", has_text="1 rows match").wait_for()
        wait_for_rows(page, [row])
        wait_for_text(page, "#bulk", "None selected")


def test_enough_says_enough_for_what(visit, run):
    with Server(run) as server:
        page, _ = visit(server.said["url"])
        page.select_option("#order", "informative")
        for _ in range(12):
            page.wait_for_selector("body:not([data-saving])")
            page.wait_for_timeout(300)
            page.click("#bulk-all")
            if page.locator("#bulk-accept").is_disabled():
                break
            page.click("#bulk-accept")
            wait_for_text(page, "#bulk", "None selected")
        estimate = server.get("api/state").json["estimate"]
        assert estimate["enough"] is True
        assert re.search(r"Enough (to take|to know that|for) the (automatic relabels|noise rate)",
                         estimate["message"])  # fmt: skip
        page.locator("#estimate.enough").wait_for()
        assert page.locator("#estimate").inner_text() == estimate["message"]
