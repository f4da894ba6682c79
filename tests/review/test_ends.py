"""How a review ends: killed, interrupted, refused; what was acknowledged is always there."""

import json
import shutil
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pandas as pd

from planted import command
from reviewing import CLASSES, ROWS, Server, lines


def test_sigkill_loses_nothing_that_was_acknowledged(run):
    acknowledged, stop = [], threading.Event()

    def stream(server, first):
        for number in range(first, 10_000, 4):
            if stop.is_set():
                return
            row = number % ROWS
            try:
                answer = server.decide(row, "relabel", CLASSES[number // ROWS % 3])
            except OSError:
                return
            if answer.status == 200:
                acknowledged.append((row, CLASSES[number // ROWS % 3]))
                if len(acknowledged) > 60:
                    stop.set()
                    server.process.kill()  # SIGKILL, with other requests under way

    with Server(run) as server, ThreadPoolExecutor(4) as pool:
        for first in range(4):
            pool.submit(stream, server, first)
    assert len(acknowledged) > 60
    with Server(run) as server:
        stored = [(line["row"], line["label"]) for line in lines(run)]
        for entry in acknowledged:
            stored.remove(entry)
        assert len(stored) <= 4  # written, and the answer did not arrive any more
        found = server.get("api/rows?decided=yes&limit=500").json
        rows = {line["row"] for line in lines(run)}
        assert server.said["decided"] == found["total"] == len(rows)
        last = lines(run)[-1]
        assert server.post("api/undo", {}).json["undone"]["row"] == last["row"]
        code, words = server.interrupt()
    assert code == 0
    assert "rows decided" in words
    assert "Traceback" not in words
    done = command("export", run, run.parent / "clean.csv", "--decisions", run / "decisions.jsonl")
    assert done.exit_code == 0, done.output
    exported = pd.read_csv(run.parent / "clean.csv")["label"]
    now = {line["row"]: line["label"] for line in lines(run)[:-2]}
    for row in set(now) - {last["row"]}:
        assert exported[row] == now[row]


def test_two_hundred_clients_at_once(run):
    clients, each = 200, 3
    with Server(run) as server:
        ready = threading.Barrier(clients)

        def work(client):
            ready.wait(timeout=60)
            return [
                server.decide((client + turn) % ROWS, "relabel", CLASSES[turn]).status
                for turn in range(each)
            ]

        with ThreadPoolExecutor(clients) as pool:
            codes = [code for part in pool.map(work, range(clients)) for code in part]
        assert codes == [200] * clients * each
        found = server.get("api/rows?decided=yes&limit=500").json["rows"]
    written = lines(run)
    assert len(written) == clients * each
    counts = pd.Series([(line["row"], line["label"]) for line in written]).value_counts()
    expected = [((c + t) % ROWS, CLASSES[t]) for c in range(clients) for t in range(each)]
    assert counts.to_dict() == pd.Series(expected).value_counts().to_dict()
    latest = {line["row"]: line["label"] for line in written}
    assert {line["row"]: line["decision"]["label"] for line in found} == latest


def test_what_cannot_be_saved_is_not_acknowledged(run):
    with Server(run) as server:
        assert server.decide(1).status == 200
        (run / "decisions.jsonl").rename(run / "taken-away.jsonl")
        refused = server.decide(2)
        assert refused.status == 500
        assert "nothing was saved" in refused.json["error"]
        assert server.get("api/state").json["decided"] == 1


def test_a_second_server_is_refused(run):
    with Server(run):
        done = command("review", run, "--no-open")
        assert done.exit_code == 1
        assert "is in use: `labelclean review` (process" in done.stderr


def test_a_taken_port(run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = command("review", run, "--no-open", "--port", port)
    assert done.exit_code == 2
    assert f"port {port} of 127.0.0.1 is in use" in done.stderr
    assert command("review", run, "--port", 70_000).exit_code == 2


def test_what_cannot_be_reviewed(run, tmp_path):
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "nowhere", tmp_path / "empty", run.parent / "data.csv"):
        done = command("review", folder, "--no-open")
        assert done.exit_code == 3, done.output
        assert "run.json is missing" in done.stderr
    shutil.copy(run / "corrected.parquet", run / "issues.parquet")
    done = command("review", run, "--no-open")
    assert done.exit_code == 3
    assert "issues.parquet" in done.stderr


def test_decisions_of_another_run(run):
    entry = {"row": 1, "sample_id": "id 1 <i>", "decision": "confirm", "label": None}
    (run / "decisions.jsonl").write_text(json.dumps({**entry, "sample_id": "s1"}) + "\n")
    done = command("review", run, "--no-open")
    assert done.exit_code == 3
    assert "line 1: sample_id 's1', but row 1 is" in done.stderr
    # The same rows, but of another input: nothing in the lines tells.
    (run / "decisions.jsonl").write_text(json.dumps(entry) + "\n")
    plan = {"input": "0" * 64, "judgement": "", "lines": 0}
    (run / "decisions.plan.json").write_text(json.dumps(plan))
    done = command("review", run, "--no-open")
    assert done.exit_code == 3
    assert "decisions about the input 000" in done.stderr
