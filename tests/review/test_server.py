"""The review server over real sockets: what it shows, what it stores, whom it refuses."""

import io
import json
import shutil

import pandas as pd
import pytest
from PIL import Image

from planted import audit_probs, plant
from reviewing import CLASSES, DAMAGED, LARGE, OUTSIDE, PLACE, ROWS, Server, lines

FIELDS = {
    "row", "rank", "sample_id", "path", "given", "suggested", "action", "p_error", "p_given",
    "p_suggested", "attention", "target_given", "margin", "neighbour_agreement", "p_outlier",
    "ambiguity", "reason", "kind", "group", "leaks_to", "copies", "picture", "full", "neighbours",
    "decision",
}  # fmt: skip


@pytest.fixture(scope="module")
def server(finished, tmp_path_factory):
    """A server about a copy of the run; the tests here leave few traces in it."""
    folder = tmp_path_factory.mktemp("served") / "data"
    shutil.copytree(finished.parent, folder)
    secret = f"{finished.parent.name}-secret.png"
    shutil.copy(finished.parent.parent / secret, folder.parent / secret)
    with Server(folder / "run") as started:
        yield started


@pytest.fixture(scope="module")
def issues(server):
    return pd.read_parquet(server.run / "issues.parquet")


def listed(server, query=""):
    answer = server.get(f"api/rows?limit=500&{query}")
    assert answer.status == 200, answer.content
    return [line["row"] for line in answer.json["rows"]]


def test_the_page_and_its_headers(server):
    for path, kind in (("", "text/html"), ("api/state", "application/json"), ("nothing", "")):
        headers = server.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["content-type"].startswith(kind)
        assert "server" not in headers
    page = server.get("").content.decode()
    assert "<script>alert(1)" not in page
    assert server.said["url"].startswith("http://127.0.0.1:")
    assert len(server.home) > 30


def test_rows_in_every_order(server, issues):
    first = server.get("api/rows?limit=2").json
    assert first["total"] == ROWS
    assert set(first["rows"][0]) == FIELDS
    assert listed(server) == issues["row"].tolist()
    assert listed(server, "order=row") == list(range(ROWS))
    informative = listed(server, "order=informative")
    assert sorted(informative) == list(range(ROWS))
    assert informative not in (listed(server), listed(server, "order=row"))
    page = server.get("api/rows?offset=5&limit=3").json
    assert [line["row"] for line in page["rows"]] == issues["row"][5:8].tolist()
    line = server.get("api/rows?limit=1").json["rows"][0]
    assert line["given"] == issues["label_given"][0]
    assert line["p_error"] == pytest.approx(issues["p_error"][0], abs=1e-4)
    assert (line["picture"], line["full"]) == (f"thumb/{line['row']}", f"image/{line['row']}")
    assert line["decision"] is None


def test_filters(server, issues):
    from urllib.parse import quote

    flagged = issues[issues["action"] != "keep"]
    assert listed(server, "action=relabel&action=review&action=drop") == flagged["row"].tolist()
    for column, name in (("label_given", "given"), ("label_suggested", "suggested")):
        wanted = issues[issues[column].isin(CLASSES[:2])]["row"].tolist()
        query = "&".join(f"{name}={quote(text)}" for text in CLASSES[:2])
        assert listed(server, query) == wanted
    middle = issues[issues["p_error"].between(0.01, 0.5)]["row"].tolist()
    assert listed(server, "min=0.01&max=0.5") == middle
    assert listed(server, "q=ID%2017%20") == [17]
    assert listed(server, "q=%3Cb%3E0") == [0]
    assert listed(server, "q=row%2077") == [77]
    assert listed(server, f"q={quote('LOOKS LIKE')}") == flagged["row"].tolist()
    assert listed(server, "q=no%20such%20thing") == []
    for bad in ("order=up", "action=x", "decided=perhaps", "min=a", "max=nan", "offset=-1",
                "limit=1e3", "offset=%C2%B2"):  # fmt: skip
        assert server.get(f"api/rows?{bad}").status == 400, bad


def test_decisions_are_on_disk_when_they_are_acknowledged(server):
    before = len(lines(server.run)) if (server.run / "decisions.jsonl").exists() else 0
    assert server.get("api/state").json["decided"] == 0
    saved = server.decide(7, "relabel", CLASSES[2])
    assert saved.status == 200
    assert saved.json["saved"] is True
    assert saved.json["state"]["decided"] == 1
    written = lines(server.run)[before:]
    assert [set(line) for line in written] == [{"row", "sample_id", "decision", "label", "time"}]
    assert written[0]["label"] == CLASSES[2]
    server.decide(7, "unsure")
    server.decide(8, "none_of_these")
    found = server.get("api/rows?decided=yes&order=row").json["rows"]
    assert [line["decision"] for line in found] == [
        {"decision": "unsure", "label": None},
        {"decision": "none_of_these", "label": None},
    ]
    assert 7 not in listed(server, "decided=no")
    walked = [server.post("api/undo", {}).json["undone"] for _ in range(4)]
    assert [line and (line["row"], line["decision"]) for line in walked] == [
        (8, "none_of_these"),
        (7, "unsure"),
        (7, "relabel"),
        None,
    ]
    assert server.get("api/state").json["decided"] == 0
    assert len(lines(server.run)) == before + 6


def test_pictures_are_made_anew(server):
    for path, kind in (("thumb/9", "PNG"), ("image/9", "PNG"), (f"image/{LARGE}", "JPEG")):
        answer = server.get(path)
        assert answer.status == 200
        picture = Image.open(io.BytesIO(answer.content))
        assert picture.format == kind
        assert PLACE not in picture.getexif()
        assert not set(picture.info) & {"exif", "comment", "icc_profile"}
    assert Image.open(io.BytesIO(server.get(f"image/{LARGE}").content)).size == (1200, 900)
    assert max(Image.open(io.BytesIO(server.get(f"thumb/{LARGE}").content)).size) < 400
    assert server.get(f"thumb/{DAMAGED}").status == 404
    assert server.get(f"image/{OUTSIDE}").status == 200  # the run was allowed to leave the root


def test_nothing_but_rows_of_the_run_can_be_read(server):
    for path in (
        f"thumb/{ROWS}", "thumb/-1", "thumb/1e1", "thumb/../../data.csv", "image/..%2fdata.csv",
        "image//etc/passwd", "image/%2fetc%2fpasswd", "../../data.csv", "..%2f..%2fdata.csv",
        "thumb/0/../../../data.csv", "image/0%00", "run.json", "decisions.jsonl", "thumb/",
        "thumb/" + "9" * 400,
    ):  # fmt: skip
        assert server.get(path).status in (403, 404), path
    for target in ("/", "/etc/passwd", "//etc/passwd", "/t/", "/api/state", "/../data.csv",
                   "/t//api/state", f"/t/{'x' * 32}/api/state", f"/t/{'%C3%A9' * 8}/",
                   server.home[:-1], server.home[:-2] + "/", "/t" + server.home):  # fmt: skip
        assert server.ask("GET", target).status in (403, 404), target


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", "", "[::1"],
)
def test_other_names_are_refused(server, host):
    headers = {"Host": host.format(port=server.port)}
    assert server.ask("GET", server.home + "api/state", headers=headers).status == 403


def test_own_names_pass(server):
    for name in ("127.0.0.1", "localhost", "LOCALHOST"):
        host = f"{name}:{server.port}"
        assert server.get("api/state", Host=host, Origin=f"http://{host}").status == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", ""])
def test_other_pages_are_refused(server, origin):
    before = server.get("api/state").json["decided"]
    entry = {"row": 1, "sample_id": "id 1 <i>", "decision": "confirm", "label": None}
    assert server.post("api/decisions", entry, Origin=origin).status == 403
    assert server.get("api/state", Origin=origin).status == 403
    assert server.get("api/state").json["decided"] == before


def test_bodies_and_methods(server):
    good = {"row": 1, "sample_id": "id 1 <i>", "decision": "confirm", "label": None}
    bad = [
        {**good, "row": ROWS}, {**good, "row": "1"}, {**good, "row": True}, {**good, "row": -1},
        {**good, "sample_id": "id 2 <i>"}, {**good, "decision": "undo"}, {**good, "decision": []},
        {**good, "decision": "relabel"}, {**good, "decision": "relabel", "label": "nobody"},
        {**good, "decision": "relabel", "label": {}}, {**good, "path": "/etc/passwd"}, {}, [], 1,
        None, "x",
    ]  # fmt: skip
    for entry in bad:
        assert server.post("api/decisions", entry).status == 400, entry
    kind = {"Content-Type": "application/json"}
    target = server.home + "api/decisions"
    for body in (b"", b"{", b"\xff", b"[" * 10_000, b'{"row": NaN}'):
        assert server.ask("POST", target, body, kind).status == 400, body
    assert server.ask("POST", target, b" " * 100_000, kind).status == 413
    text = json.dumps(good).encode()
    assert server.ask("POST", target, text, {"Content-Type": "text/plain"}).status == 415
    assert server.ask("POST", target, text).status == 415
    assert server.post("api/undo", {"row": 1}).status == 400
    for method, path in (("GET", "api/decisions"), ("POST", "api/rows"), ("DELETE", ""),
                         ("PUT", "thumb/0"), ("GET", "api/undo")):  # fmt: skip
        assert server.ask(method, server.home + path).status == 405
    assert server.get("api/state").json["decided"] == 0


def test_a_run_without_pictures(tmp_path):
    run = audit_probs(plant(tmp_path, 60, 6), tmp_path / "run")
    with Server(run) as server:
        line = server.get("api/rows?limit=1").json["rows"][0]
        assert (line["picture"], line["full"], line["neighbours"]) == (None, None, [])
        assert server.get("thumb/0").status == 404
        assert server.get("").status == 200
        entry = {"row": 0, "sample_id": "s0", "decision": "drop", "label": None}
        assert server.post("api/decisions", entry).json["state"]["decided"] == 1
