"""Label Studio: tasks out, completed annotations back, faults named."""

import json
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from planted import NAMES, audit_probs, command, plant
from reviewing import CLASSES, Server, lines


@pytest.fixture
def tasks(run, tmp_path):
    done = command("export", run, tmp_path / "t.labelstudio.json")
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "t.labelstudio.json").read_text())
    assert f"{len(found)} tasks" in done.stdout
    return found


def interface(path):
    return ElementTree.parse(path).getroot()  # noqa: S314 (we wrote it)


def completed(task, label=None, verdict=None, **extra):
    result = [
        {"from_name": name, "to_name": "picture", "type": "choices", "value": {"choices": [choice]}}
        for name, choice in (("label", label), ("verdict", verdict))
        if choice is not None
    ]
    return {**task, "id": 1, "annotations": [{"result": result, **extra}]}


def take(run, tmp_path, content):
    (tmp_path / "back.json").write_text(json.dumps(content))
    return command("review", run, "--import", tmp_path / "back.json")


def test_tasks_hold_predictions_and_scores(run, tmp_path, tasks):
    issues = pd.read_parquet(run / "issues.parquet")
    flagged = issues[issues["action"] != "keep"]
    assert [task["data"]["row"] for task in tasks] == flagged["row"].tolist()
    for task, line in zip(tasks, flagged.to_dict("records"), strict=True):
        assert task["data"]["p_error"] == line["p_error"]
        assert task["data"]["label_given"] == line["label_given"]
        assert task["data"]["picture"].startswith("/data/local-files/?d=images/")
        assert "<" not in task["data"]["picture"]
        (guess,) = task["predictions"]
        assert guess["score"] == line["p_suggested"]
        assert guess["result"][0]["value"]["choices"] == [line["label_suggested"]]
    view = interface(tmp_path / "t.labelstudio.xml")
    labels, verdicts = view.findall("Choices")
    assert {choice.get("value") for choice in labels} == set(CLASSES)
    assert [choice.get("value") for choice in verdicts] == ["none_of_these", "drop", "unsure"]
    assert view.find("Image").get("value") == "$picture"
    for part in [labels, verdicts]:
        assert part.get("toName") == view.find("Image").get("name")
    done = command("export", run, tmp_path / "t.labelstudio.json")
    assert done.exit_code == 2
    assert "exists" in done.stderr
    flags = (tmp_path / "t.labelstudio.json", "--overwrite")
    done = command("export", run, *flags, "--json")
    assert json.loads(done.stdout)["tasks"] == len(tasks)
    assert command("export", run, *flags, "--policy", "drop").exit_code == 2


def test_there_and_back(run, tmp_path, tasks):
    given, other, none, drop, unsure, skipped, agreed = tasks[:7]
    moved = next(name for name in CLASSES if name != other["data"]["label_given"])
    twice = completed(agreed, moved)
    twice["annotations"] += completed(agreed, agreed["data"]["label_given"])["annotations"]
    twice["annotations"][1]["ground_truth"] = True
    back = [
        completed(given, given["data"]["label_given"]),
        completed(other, moved),
        completed(none, verdict="none_of_these"),
        completed(drop, verdict="drop"),
        completed(unsure, verdict="unsure"),
        completed(skipped, was_cancelled=True),
        twice,
        *({**task, "annotations": []} for task in tasks[7:]),
    ]
    done = take(run, tmp_path, back)
    assert done.exit_code == 0, done.output
    assert "6 decisions taken over" in done.stdout
    found = {line["row"]: (line["decision"], line["label"]) for line in lines(run)}
    assert [found.get(task["data"]["row"]) for task in tasks[:7]] == [
        ("confirm", None),
        ("relabel", moved),
        ("none_of_these", None),
        ("drop", None),
        ("unsure", None),
        None,
        ("confirm", None),
    ]
    again = take(run, tmp_path, back)
    assert "0 decisions taken over" in again.stdout
    assert len(lines(run)) == 6
    flags = ("--decisions", run / "decisions.jsonl")
    assert command("export", run, tmp_path / "left.labelstudio.json", *flags).exit_code == 0
    left = json.loads((tmp_path / "left.labelstudio.json").read_text())
    assert len(left) == len(tasks) - 6
    with Server(run) as server:
        assert server.said["decided"] == 6


def test_every_fault_is_named_and_nothing_is_taken_over(run, tmp_path, tasks):
    first, second = tasks[:2]
    label = first["data"]["label_given"]
    split = completed(first, CLASSES[0])
    split["annotations"] += completed(first, CLASSES[1])["annotations"]
    bad = {
        "none of": completed(first, "nobody"),
        "verdict 'later'": completed(first, verdict="later"),
        "either": completed(first, label, "drop"),
        "found []": completed(first),
        "disagree": split,
        "JSON-MIN": {"data": first["data"], "label": label},
        "not a task": 7,
        "is not in 0": completed({**first, "data": {**first["data"], "row": 900}}, label),
        "sample_id": completed({**first, "data": {**first["data"], "sample_id": "x"}}, label),
        "another input": completed({**first, "meta": {"input_digest": "0"}}, label),
        "no object": {**first, "annotations": [3]},
        "not one choice": {**first, "annotations": [{"result": [{"from_name": "x"}]}]},
    }
    for words, task in bad.items():
        done = take(run, tmp_path, [completed(second, verdict="drop"), task])
        assert done.exit_code == 3, words
        assert "task 2: " in done.stderr
        assert words in done.stderr
    twice = [completed(first, verdict="drop"), completed(first, verdict="unsure")]
    assert "decided otherwise" in take(run, tmp_path, twice).stderr
    for content in ({}, "text"):
        assert take(run, tmp_path, content).exit_code == 3
    (tmp_path / "broken.json").write_text("[")
    assert command("review", run, "--import", tmp_path / "broken.json").exit_code == 3
    assert command("review", run, "--import", tmp_path / "missing.json").exit_code == 3
    assert not (run / "decisions.jsonl").exists()


def test_samples_without_files_travel_in_the_task(tmp_path):
    run = audit_probs(plant(tmp_path, 60, 6), tmp_path / "run")
    assert command("export", run, tmp_path / "x.labelstudio.json").exit_code == 0
    task = json.loads((tmp_path / "x.labelstudio.json").read_text())[0]
    assert task["data"]["picture"] == task["data"]["sample_id"]
    view = interface(tmp_path / "x.labelstudio.xml")
    assert view.find("Text") is not None
    assert {choice.get("value") for choice in view.findall("Choices")[0]} == set(NAMES)
    rng = np.random.default_rng(0)
    label = np.arange(60) % 2
    pixels = rng.integers(0, 256, (60, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "arrays.npz", X=pixels, y=label)
    probs = np.where(np.eye(2)[label] > 0, 0.9, 0.1)
    probs[:3] = probs[:3, ::-1]
    np.save(tmp_path / "p.npy", probs)
    flags = ("--pred-probs", tmp_path / "p.npy", "--set", "correction.budget=3")
    assert command("audit", tmp_path / "arrays.npz", *flags, "--out", tmp_path / "r").exit_code == 0
    assert command("export", tmp_path / "r", tmp_path / "a.labelstudio.json").exit_code == 0
    tasks = json.loads((tmp_path / "a.labelstudio.json").read_text())
    assert len(tasks) == 3
    assert all(task["data"]["picture"].startswith("data:image/png;base64,") for task in tasks)


def test_labels_that_no_interface_can_hold(tmp_path):
    data = plant(tmp_path, 60, 6)
    table = pd.read_csv(data.table)
    table["label"] = table["label"].replace("ant", "a\x08t")
    table.to_csv(data.table, index=False)
    run = audit_probs(data, tmp_path / "run")
    done = command("export", run, tmp_path / "x.labelstudio.json")
    assert done.exit_code == 1
    assert r"'a\x08t'" in done.stderr
    assert not (tmp_path / "x.labelstudio.json").exists()
