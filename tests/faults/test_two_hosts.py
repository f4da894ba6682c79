"""Two network namespaces as two hosts: the same ranking as one process, and a host that dies."""

import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from scipy.stats import spearmanr

from faults.ranks import ODD, audit_command, environment, launch_on, two_hosts, write_digits

pytestmark = pytest.mark.slow
TABLES = ("records.parquet", "issues.parquet", "corrected.parquet")


@pytest.fixture(scope="module")
def hosts():
    try:
        with two_hosts() as names:
            yield names
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"no network namespaces here: {error}")


def test_two_hosts_agree_with_one_process_and_survive_a_death(hosts, tmp_path):
    manifest = write_digits(tmp_path)
    alone = subprocess.run(
        [sys.executable, *audit_command(manifest, tmp_path / "alone")],
        env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert alone.returncode == 0, alone.stderr[-2000:]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for code, said in launch_on(hosts, manifest, whole):
        assert code == 0, said[-2000:]
    found = [pq.read_table(run / "issues.parquet") for run in (tmp_path / "alone", whole)]
    ranks = [dict(zip(t["row"].to_pylist(), t["rank"].to_pylist(), strict=True)) for t in found]
    assert all(sorted(rank) == list(range(ODD)) for rank in ranks)
    agreement = spearmanr([[rank[row] for rank in ranks] for row in range(ODD)]).statistic
    assert agreement > 0.999

    first, second = launch_on(hosts, manifest, cut, FAULT_RANK="1", FAULT_EPOCH="3")
    assert first[0] != 0
    assert second[0] != 0
    assert "another process of this run has ended" in first[1], first[1][-2000:]
    assert "--resume" in first[1]
    assert "SIGKILL" in second[1], second[1][-2000:]
    assert not (cut / "run.json").exists()
    for code, said in launch_on(hosts, manifest, cut, "--resume"):
        assert code == 0, said[-2000:]
    for name in TABLES:
        assert (cut / name).read_bytes() == (whole / name).read_bytes(), name
