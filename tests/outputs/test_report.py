"""The page as a file: what it may load, which rows it carries, how large it may become."""

import base64
import hashlib
import io
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from labelclean.errors import DataError
from labelclean.outputs.report import content_policy
from labelclean.outputs.report_data import isolated
from labelclean.outputs.report_pictures import inline_thumbnails, thumbnail
from labelclean.outputs.report_rows import FIRST, SHOWN_KEPT, SHOWN_SPREAD, choose_places, fitting
from shown_runs import CLASSES, write_shown


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    return write_shown(tmp_path_factory.mktemp("shown"))


@pytest.fixture(scope="module")
def text(shown):
    return (shown.run / "report.html").read_text(encoding="utf-8")


class Attributes(HTMLParser):
    """Collects the names of all attributes of a page."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def handle_starttag(self, _tag, attributes):
        self.names |= {name for name, _ in attributes}


def block(text):
    found = re.search(r'<script type="application/json" id="labelclean-data">(.*?)</script>', text)
    return json.loads(found.group(1))


def test_the_policy_allows_our_script_and_style_and_nothing_else(text):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text).group(1)
    policy = policy.replace("&#39;", "'")
    assert policy == content_policy("file")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        inside = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL).group(1)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "connect-src" not in policy
    assert "connect-src 'self'" in content_policy("served")


def test_nothing_is_fetched_and_no_handler_is_inline(text):
    page = text.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|//cdn|@import|url\(", page)
    found = Attributes()
    found.feed(text)
    assert {"http-equiv", "content", "id"} <= found.names
    assert not [name for name in found.names if name.startswith("on") or name == "style"]
    for call in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert call not in text


def test_the_block_is_the_contract(shown, text):
    data = block(text)
    assert data["mode"] == "file"
    assert sorted(data["classes"]) == sorted(CLASSES)
    row = data["rows"][0]
    assert {
        "row", "rank", "sample_id", "path", "given", "suggested", "action", "p_error", "p_given",
        "p_suggested", "attention", "target_given", "margin", "neighbour_agreement", "p_outlier",
        "ambiguity", "reason", "kind", "group", "leaks_to", "copies", "picture", "full",
        "neighbours", "decision",
    } == set(row)  # fmt: skip
    assert len(row["neighbours"]) == 5
    assert str(row["row"]) in data["pictures"]
    assert [chart["title"] for chart in data["stages"]] == [
        f"after epoch {epoch}" for epoch in (1, 10, 20)
    ]
    flagged = data["counts"]["flagged"]
    assert sum(row["action"] in ("relabel", "review", "drop") for row in data["rows"]) == flagged


def test_a_name_does_not_turn_the_rest_of_a_sentence():
    assert isolated("most: a\u202eb as c.", ["a\u202eb", "c"]) == "most: \u2068a\u202eb\u2069 as c."
    assert isolated("most: a as c.", ["a", "c"]) == "most: a as c."


def test_a_million_rows_are_sampled():
    action = np.array(["relabel"] * 5000 + ["keep"] * 90_000 + ["unreadable"] * 9, dtype=object)
    places = choose_places(action)
    assert len(np.unique(places)) == len(places) == FIRST + SHOWN_SPREAD + SHOWN_KEPT + 9
    np.testing.assert_array_equal(places[:FIRST], np.arange(FIRST))
    spread = places[FIRST : FIRST + SHOWN_SPREAD]
    assert spread[0] == FIRST
    assert spread[-1] == 4999
    assert np.diff(spread).max() - np.diff(spread).min() <= 1
    few = np.array(["keep", "review"], dtype=object)
    np.testing.assert_array_equal(choose_places(few), [1, 0])


def test_budgets_hold():
    rows = [{"path": "x" * 90} for _ in range(100)]
    kept = fitting(rows, 1050)
    assert len(kept) == 1050 // len(json.dumps(rows[0]))
    pixels = np.zeros((64, 64, 3), np.uint8)
    one = len(inline_thumbnails(lambda _: pixels, [0], 10**6)["0"])
    assert list(inline_thumbnails(lambda _: pixels, range(9), 3 * one)) == ["0", "1", "2"]


def test_thumbnails():
    large, kind = thumbnail(np.full((300, 600, 3), 90, np.uint8))
    assert kind == "image/jpeg"
    with Image.open(io.BytesIO(large)) as image:
        assert image.size == (112, 56)
    small = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)
    content, kind = thumbnail(small)
    assert kind == "image/png"
    with Image.open(io.BytesIO(content)) as image:
        np.testing.assert_array_equal(np.asarray(image), small)

    def gone(row):
        if row == 1:
            raise DataError("gone")
        return small

    assert list(inline_thumbnails(gone, [0, 1, 2], 10**6)) == ["0", "2"]
