"""The estimators' benchmark prints what it measured, as a table and as JSON."""

import json

import pytest

from planted import command

ARGUMENTS = ("benchmark", "estimators", "--part", "accuracy", "--seeds", "1", "--quiet")


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    done = command(*ARGUMENTS, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["accuracy"]


def test_accuracy_is_compared_on_the_same_rows(rows):
    assert [row["noise"] for row in rows] == [0.0, 0.4] * 3
    assert all(0.5 < row[who] <= 1 for row in rows for who in ("ours", "rival"))
    noisy = [row for row in rows if row["noise"]]
    assert all(row["ours"] > row["rival"] for row in noisy)


@pytest.mark.slow  # it is all measured once more
def test_the_table_says_the_same(rows):
    table = command(*ARGUMENTS).stdout
    for row in rows:
        assert f"| {row['set']} | {row['noise']:.0%} | 1 | {row['ours']:.4f} |" in table
