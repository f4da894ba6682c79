"""A review as it goes on: estimates after every block, the same sample after a restart."""

import pandas as pd
import pytest

from labelclean.review.rows import Wanted
from labelclean.review.state import open_review
from planted import audit_probs, command, plant


def listed(desk, order="informative", **wanted):
    return [line["row"] for line in desk.page(Wanted(**wanted), order, 0, 500)["rows"]]


def decision(row, label):
    return {"row": row, "sample_id": f"id {row} <i>", "decision": "relabel", "label": label}


def test_answers_are_reckoned_with_after_twenty(run):
    table = pd.read_csv(run.parent / "data.csv")
    wrong = (table["true"] != table["label"]).mean()
    with open_review(run) as desk:
        order = listed(desk)
        before = desk.page(Wanted(), "rank", 0, 500)["rows"]
        for count, row in enumerate(order[:40], 1):
            found = desk.decide(decision(row, table["true"][row]))["estimate"]
            assert (found and found["answers"]) == (count // 20 * 20 or None)
        assert found["noise_interval"][0] <= wrong <= found["noise_interval"][1] < 0.7
        assert found["relabel_interval"][0] <= found["relabel_precision"]
        assert f"{found['noise_rate']:.1%}" in found["message"]
        after = desk.page(Wanted(), "rank", 0, 500)["rows"]
        assert [line["row"] for line in after] == [line["row"] for line in before]
        assert [line["p_error"] for line in after] != [line["p_error"] for line in before]
        _, undone = desk.undo()
        assert undone["decided"] == undone["estimate"]["answers"] == 39
        again = desk.decide(decision(order[39], table["true"][order[39]]))
        assert again["estimate"] == found
    with open_review(run) as desk:  # the same sample after a restart
        assert listed(desk) == order
        assert desk.state() == again
    assert command("report", run, "--decisions", run / "decisions.jsonl").exit_code == 0
    with open_review(run) as desk:  # a report leaves the sample as it is, and the estimate
        assert listed(desk) == order
        assert listed(desk, decided=False) == order[40:]
        assert desk.state()["estimate"] == again["estimate"]


def test_the_sample_is_lost_without_harm(run):
    with open_review(run) as desk:
        order = listed(desk)
        desk.decide(decision(order[0], desk.rows.given_names[0]))
    (run / "decisions.plan.json").write_text("damaged")
    with open_review(run) as desk:
        assert desk.state()["decided"] == 1
        assert listed(desk)[-1] == order[0]  # known before the new sample, so asked about last
    with open_review(run) as desk:
        assert listed(desk)[-1] == order[0]


def test_what_remains_to_review_is_counted(run):
    issues = pd.read_parquet(run / "issues.parquet")
    flagged = issues[issues["action"] != "keep"]["row"].tolist()
    kept = issues[issues["action"] == "keep"]["row"].tolist()
    with open_review(run) as desk:
        assert desk.state() == {"decided": 0, "to_review": len(flagged), "estimate": None}
        label = desk.rows.given_names[0]
        assert desk.decide(decision(kept[0], label))["to_review"] == len(flagged)
        assert desk.decide(decision(flagged[0], label))["to_review"] == len(flagged) - 1
        with pytest.raises(ValueError, match="row 900"):
            desk.decide(decision(900, label))


def test_neighbours_are_shown(tmp_path):
    data = plant(tmp_path)
    run = audit_probs(data, tmp_path / "run", "--features", data.features)
    with open_review(run) as desk:
        line = desk.page(Wanted(), "rank", 0, 1)["rows"][0]
    assert len(line["neighbours"]) == 5
    table = pd.read_csv(data.table)
    for near in line["neighbours"]:
        assert near["label"] == table["label"][near["row"]]
        assert near["picture"] is None
        assert near["row"] != line["row"]
