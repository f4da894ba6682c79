import numpy as np
import pytest
from simulated_arrays import simulated

from labelclean.calibration import transition as module
from labelclean.calibration.layout import Dense, gather, lay_out
from labelclean.calibration.noise_parameters import (
    NoiseParameters,
    fit_noise_parameters,
    maximise,
    responsibility,
    true_class_posterior,
)
from labelclean.calibration.sparse_layout import Sparse
from labelclean.calibration.transition import Transition


def counted(size=3):
    true, given = (part.ravel() for part in np.indices((size, size)))
    count = np.array([80.0, 15, 5, 0, 50, 0, 2, 8, 90])
    return Transition.from_counts(size, (true, given), count)


def test_rows_are_distributions_and_borrow_the_pooled_pattern():
    table = counted().table()
    np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-6)
    eps, column = 30 / 250, np.array([2.0, 23, 5])
    expected = 10 * eps * column[0] / (column[0] + column[2]) / (50 + 11)
    assert table[1, 0] == pytest.approx(expected, rel=1e-5)
    assert table[1, 1] == pytest.approx((50 + 10 * (1 - eps) + 1) / 61, rel=1e-5)


def test_lookup_without_a_table_is_the_same(monkeypatch):
    held = counted()
    true, given = (part.ravel() for part in np.indices((3, 3)))
    with_table = held.lookup()(true, given)
    monkeypatch.setattr(module, "TABLE_CLASSES", 2)
    np.testing.assert_allclose(held.lookup()(true, given), with_table, rtol=1e-6)


def test_start_is_mostly_honest():
    pairs = tuple(part.ravel() for part in np.indices((4, 4)))
    table = Transition.start(4, pairs).values().reshape(4, 4)
    np.testing.assert_allclose(np.diag(table), 0.9, atol=1e-5)
    np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-5)


def test_sparse_and_dense_layouts_agree_where_nothing_is_dropped(monkeypatch):
    label, probs, _ = simulated(400, 6, 0.2, inverse_temperature=2.0)
    dense = lay_out(label, probs)
    monkeypatch.setattr("labelclean.calibration.layout.DENSE_CLASSES", 5)
    # With every probability above 1/5 or dropped nothing could be compared: keep them all.
    monkeypatch.setattr("labelclean.calibration.sparse_layout.least_kept", lambda: np.float32(-1))
    sparse = gather(label, probs, np.arange(400))
    assert isinstance(dense, Dense)
    assert isinstance(sparse, Sparse)
    params = fit_noise_parameters(dense, 6, 1.0)
    order = np.argsort(np.tile(np.arange(6), 400), kind="stable")
    q, rest = true_class_posterior(sparse, params.inverse_temperature, params.bias)
    expected, _ = true_class_posterior(dense, params.inverse_temperature, params.bias)
    np.testing.assert_allclose(q[order].reshape(6, 400), expected, atol=1e-5)
    np.testing.assert_allclose(rest, 0, atol=1e-6)
    moved = NoiseParameters(
        params.inverse_temperature, params.bias,
        Transition.from_counts(6, sparse.pairs, params.transition.count),
    )  # fmt: skip
    np.testing.assert_allclose(
        responsibility(sparse, moved)[0][order].reshape(6, 400),
        responsibility(dense, params)[0],
        atol=1e-5,
    )


def test_likelihood_rises():
    label, probs, _ = simulated(1000, 4, 0.2)
    layout = lay_out(label, probs)
    start = NoiseParameters(1.5, np.zeros(4), Transition.start(4, layout.pairs))
    assert (
        responsibility(layout, fit_noise_parameters(layout, 4, 1.0))[1]
        > responsibility(layout, start)[1]
    )


def test_the_matrix_is_found():
    rng = np.random.default_rng(0)
    _, probs, true = simulated(8000, 3, 0.0, inverse_temperature=5.0)
    matrix = np.array([[0.7, 0.3, 0.0], [0.0, 1.0, 0.0], [0.1, 0.1, 0.8]])
    label = (rng.random((8000, 1)) > matrix.cumsum(axis=1)[true]).sum(axis=1)
    seen = probs @ matrix
    layout = lay_out(label, seen)
    start = NoiseParameters(5.0, np.zeros(3), Transition.start(3, layout.pairs))
    fitted = maximise(layout, start, 1.0, least=100)
    np.testing.assert_allclose(fitted.transition.table(), matrix, atol=0.05)
