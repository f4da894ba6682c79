import numpy as np
import pytest
from simulated_arrays import simulated

from labelclean.benchmark import metrics
from labelclean.benchmark.judge import RENOISED, measure_set, read_files, renoised, summary
from labelclean.benchmark.zoo import ZOO_NOISES, ZooSet, add_noise, easy_sets
from labelclean.errors import DataError

WRONG = np.array([True, False, True, False])
P = np.array([0.9, 0.8, 0.4, 0.1])


def test_metrics_by_hand():
    assert metrics.average_precision(WRONG, P) == pytest.approx((1 + 2 / 3) / 2)
    assert metrics.auroc(WRONG, P) == pytest.approx(3 / 4)
    assert metrics.f1(WRONG, P > 0.5) == pytest.approx(0.5)
    assert metrics.best_f1(WRONG, P) == pytest.approx(0.8)
    assert metrics.calibration_error(WRONG, P, bins=2) == pytest.approx(0.5 * 0.35 + 0.5 * 0.25)
    assert np.isnan(metrics.auroc(np.zeros(4, dtype=bool), P))


def test_calibration_error_is_that_of_the_scoring_script():
    rng = np.random.default_rng(0)
    p = rng.random(1000) ** 4
    wrong = rng.random(1000) < p
    edges = np.quantile(p, np.linspace(0, 1, 16))
    b = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, 14)
    slow = sum((b == k).mean() * abs(p[b == k].mean() - wrong[b == k].mean()) for k in range(15))
    assert metrics.calibration_error(wrong, p) == pytest.approx(slow)


@pytest.mark.parametrize("kind", [*ZOO_NOISES, "pair-20"])
def test_noise_has_its_rate(kind):
    x, true = easy_sets()["easy_8"]
    label = add_noise(kind, x, true, 8, np.random.default_rng(0))
    wanted = int(kind.split("-")[1]) / 100
    if kind.startswith("asym"):
        wanted /= 2  # every second class flips
    assert (label != true).mean() == pytest.approx(wanted, abs=0.05)
    assert label.min() >= 0
    assert label.max() < 8


def test_a_case_is_measured_with_argmax_beside():
    label, probs, true = simulated()
    case = ZooSet("made", "sym-15", "none", label, true, probs)
    results = list(measure_set("made", "sym", case, against=False))
    assert [r.method for r in results] == ["labelclean", "argmax"]
    answer = summary(results)
    assert answer["labelclean"]["noisy_sets"] == 1
    assert answer["labelclean"]["f1"] > answer["argmax"]["f1"] - 0.05
    assert results[0].relabelled_right > 0.9


def test_files_are_read_and_renoised(tmp_path):
    label, probs, true = simulated(500)
    np.savez(tmp_path / "a.npz", pred_probs=probs, labels=label, true_labels=true)
    files = read_files(tmp_path)
    rates = {
        case.noise: (case.label != true).mean()
        for _, _, case in renoised(files, noises=("none", *RENOISED))
    }
    assert rates["none"] == 0
    assert rates["inst-40"] == pytest.approx(0.4, abs=0.07)
    np.savez(tmp_path / "b.npz", pred_probs=probs)
    with pytest.raises(DataError, match="lacks labels, true_labels"):
        read_files(tmp_path)
    with pytest.raises(DataError, match=r"no \.npz"):
        read_files(tmp_path / "nowhere")


def test_a_case_without_an_answer_counts_as_declined_and_as_an_estimate_of_zero():
    label, _, true = simulated()
    size = int(label.max()) + 1
    case = ZooSet("made", "sym-15", "none", label, true, np.full((len(label), size), 1 / size))
    result = next(measure_set("made", "sym", case, against=False))
    assert result.declined
    assert result.estimate == 0
    answer = summary([result])["labelclean"]
    assert answer["declined"] == 1
    assert answer["noise_error"] == pytest.approx(result.true_noise)
    assert np.isnan(answer["noise_error_answered"])
