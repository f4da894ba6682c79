"""The scan benchmark measures both ways over the same images."""

import json

from click.testing import CliRunner

from labelclean.cli import cli


def test_both_ways_are_timed(tmp_path, pictures):
    rows = "".join(f"{name},{i % 2}\n" for i, name in enumerate(pictures(6)))
    (tmp_path / "d.csv").write_text(f"image,label\n{rows}")
    arguments = ["benchmark", "scan", str(tmp_path / "d.csv"), "--rounds", "2"]
    done = CliRunner().invoke(cli, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert len(found) == 2
    assert all(one["loop"] > 0 and one["ratio"] > 0 for one in found)
    assert "median ratio" in CliRunner().invoke(cli, arguments).stdout
