"""The recorder and the table of records, by hand-computed values."""

import numpy as np
import pyarrow as pa
import pytest
import torch

from labelclean.errors import DataError, TrainingError
from labelclean.records.recorder import Recorder
from labelclean.records.store import records_from_table, records_table

LABEL = np.array([0, 1, 1], np.int64)
PROBS = np.full((3, 2), 0.5, np.float32)


def watch(recorder: Recorder, index: list[int], logits: list[list[float]], **more) -> None:
    rows = torch.tensor(index)
    labels = torch.from_numpy(LABEL)[rows]
    given = {"losses": None, "attention": None} | more
    recorder.after_batch(rows, torch.tensor(logits), labels, **given)


def test_signals_of_a_batch():
    recorder = Recorder(LABEL, epochs=2)
    odds = float(np.log(3.0))
    watch(recorder, [2, 0], [[0.0, odds], [-odds, 0.0]], losses=torch.tensor([5.0, 6.0]))
    watch(recorder, [1], [[7.0, 7.0]], losses=torch.tensor([4.0]))
    recorder.after_epoch(0, None)
    records = recorder.freeze(PROBS)
    assert np.allclose(records.p_given[0], [0.25, 0.5, 0.75])
    assert np.allclose(records.margin[0], [-odds, 0, odds])
    assert records.loss[0].tolist() == [6, 4, 5]
    assert records.predicted[0].tolist() == [1, 0, 1]
    assert np.isnan(records.p_given[1]).all()
    assert (records.predicted[1] == -1).all()
    assert records.attention is None
    assert records.target_given is None


def test_attention_and_targets():
    recorder = Recorder(LABEL, epochs=1)
    logits = [[0.0, 0.0]] * 3
    watch(recorder, [0, 1, 2], logits, attention=torch.tensor([0.0, 100.0, -100.0]))
    recorder.after_epoch(0, torch.tensor([[0.9, 0.1], [0.4, 0.6], [1.0, 0.0]]))
    records = recorder.freeze(PROBS)
    assert np.allclose(records.attention[0], [0.5, 1, 0])
    assert np.allclose(records.target_given[0], [0.9, 0.6, 0.0])
    assert records.loss is None


def test_class_posteriors_are_averaged_over_the_later_epochs():
    recorder = Recorder(LABEL, epochs=3, classes=2)
    for epoch, odds in enumerate((9.0, 3.0, 1.0)):
        watch(recorder, [0, 1, 2], [[float(np.log(odds)), 0.0]] * 3)
        recorder.after_epoch(epoch, None)
    assert np.allclose(recorder.freeze(PROBS).mean_probs, [[(0.75 + 0.5) / 2, 0.375]] * 3)
    assert Recorder(LABEL, epochs=3).freeze(PROBS).mean_probs is None


def test_a_repeated_epoch_is_averaged_once():
    kept: dict[str, np.ndarray] = {}

    def allocate(name, kind, shape):
        return kept.setdefault(name, np.zeros(shape, kind))

    first = Recorder(LABEL, epochs=3, classes=2, allocate=allocate)
    for epoch in range(3):
        watch(first, [0, 1, 2], [[0.0, 0.0]] * 3)
        first.after_epoch(epoch, None)
    again = Recorder(LABEL, epochs=3, classes=2, allocate=allocate)
    watch(again, [0, 1, 2], [[float(np.log(3.0)), 0.0]] * 3)
    again.after_epoch(2, None)
    assert np.allclose(again.freeze(PROBS).mean_probs[:, 0], (0.5 + 0.75) / 2)


def test_half_precision_is_recorded_in_single():
    recorder = Recorder(LABEL, epochs=1)
    rows = torch.arange(3)
    logits = torch.tensor([[9.0, 0.0]] * 3, dtype=torch.bfloat16)
    recorder.after_batch(rows, logits, torch.from_numpy(LABEL), None, None)
    recorder.after_epoch(0, None)
    assert recorder.freeze(PROBS).p_given[0, 0] == pytest.approx(1 / (1 + np.exp(-9)), abs=1e-6)


@pytest.mark.parametrize("index", [[0, 1], [0, 1, 2, 2]])
def test_a_sample_seen_twice_or_never_is_a_fault(index):
    recorder = Recorder(LABEL, epochs=1)
    watch(recorder, index, [[0.0, 0.0]] * len(index))
    with pytest.raises(TrainingError, match="samples 2 were not seen exactly once"):
        recorder.after_epoch(0, None)


def test_memory_is_six_small_numbers_a_sample_and_epoch():
    recorder = Recorder(np.zeros(1000, np.int64), epochs=7)
    assert sum(array.nbytes for array in recorder._arrays.values()) == 4 * 1000 * 6 * 7


def test_records_survive_their_table():
    recorder = Recorder(LABEL, epochs=3)
    for epoch in range(2):
        watch(recorder, [0, 1, 2], [[0.0, 1.0 + epoch]] * 3, losses=torch.rand(3))
        recorder.after_epoch(epoch, torch.rand(3, 2))
    records = recorder.freeze(PROBS, epochs=2, targets=np.eye(2, dtype=np.float32)[LABEL])
    table = records_table(records, np.array([4, 5, 9]), np.array(["a", "b", "c"], object))
    again = records_from_table(table)
    for name in (
        "label",
        "probs",
        "p_given",
        "margin",
        "loss",
        "predicted",
        "target",
        "target_given",
    ):
        first, second = getattr(records, name), getattr(again, name)
        assert np.array_equal(first, second, equal_nan=True), name
        assert first.dtype == second.dtype, name
    assert again.attention is None
    assert table["row"].to_pylist() == [4, 5, 9]


def test_another_table_is_refused():
    with pytest.raises(DataError, match="no column label, probs"):
        records_from_table(pa.table({"row": [1], "sample_id": ["a"]}))
