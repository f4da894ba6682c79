"""The promised speed, on a machine that does nothing else."""

import pytest
import torch

from labelclean.benchmark.loss_speed import measure_loss_speed


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_every_loss_keeps_its_promised_speed():
    speeds = measure_loss_speed(batch=4096, classes=1000, rounds=15)
    late = {speed.name: round(speed.ratio, 2) for speed in speeds if speed.ratio > speed.limit}
    assert late == {}
