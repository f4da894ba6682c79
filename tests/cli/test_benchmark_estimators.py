"""The estimators' benchmark prints what it measured, as a table and as JSON."""

import json

from click.testing import CliRunner

from labelclean.cli import cli


def test_accuracy_is_compared_on_the_same_rows():
    arguments = ["benchmark", "estimators", "--part", "accuracy", "--seeds", "1", "--quiet"]
    done = CliRunner().invoke(cli, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["accuracy"]
    assert [row["noise"] for row in rows] == [0.0, 0.4] * 3
    assert all(0.5 < row[who] <= 1 for row in rows for who in ("ours", "rival"))
    noisy = [row for row in rows if row["noise"]]
    assert all(row["ours"] > row["rival"] for row in noisy)
    table = CliRunner().invoke(cli, arguments).stdout
    assert f"| digits | 0% | 1 | {rows[0]['ours']:.4f} |" in table
