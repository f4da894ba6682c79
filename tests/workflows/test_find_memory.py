"""The probabilities are never copied: memory does not grow with the file."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from labelclean.benchmark.judge_speed import write_probs
from labelclean.workflows.find import find_label_issues

CAPPED = """
import resource, sys
import numpy as np
from labelclean.workflows.find import find_label_issues
resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
label = np.load(sys.argv[2])
table = find_label_issues(label, np.load(sys.argv[1], mmap_mode="r"))
assert len(table) == len(label)
assert 0.05 < table.attrs["noise_rate"] < 0.15, table.attrs
try:
    np.array(np.load(sys.argv[1], mmap_mode="r"))
except MemoryError:
    print("capped")
"""


def peak(path, label):
    tracemalloc.start()
    try:
        find_label_issues(label, np.load(path, mmap_mode="r"))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_classes(tmp_path):
    peaks = []
    for classes in (20, 3000):
        label = write_probs(tmp_path / "p.npy", 8_000, classes)
        peaks.append(peak(tmp_path / "p.npy", label))
    assert (tmp_path / "p.npy").stat().st_size == 96_000_128
    assert peaks[1] < 30e6
    assert peaks[1] < peaks[0] + 20e6


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA caps memory on Linux only")
def test_four_gigabytes_under_a_cap_of_one(tmp_path):
    label = write_probs(tmp_path / "p.npy", 1_000_000, 1000)
    np.save(tmp_path / "y.npy", label)
    assert (tmp_path / "p.npy").stat().st_size >= 4_000_000_000
    done = subprocess.run(
        [sys.executable, "-c", CAPPED, str(tmp_path / "p.npy"), str(tmp_path / "y.npy")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "capped" in done.stdout
