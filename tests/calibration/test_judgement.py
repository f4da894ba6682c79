import numpy as np
import pytest
from simulated_arrays import simulated
from sklearn.metrics import average_precision_score, roc_auc_score

from labelclean.benchmark.metrics import calibration_error
from labelclean.calibration import arrays, noise_parameters
from labelclean.calibration.arrays import DENSE_CLASSES, cheap_power
from labelclean.calibration.checks import inspect
from labelclean.calibration.fit import choose_rows, fit
from labelclean.calibration.judgement import judge
from labelclean.calibration.posterior import score


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.4])
def test_noise_rate_and_probabilities_are_right(rate):
    label, probs, true = simulated(rate=rate)
    wrong = label != true
    answer = judge(label, probs)
    assert answer.noise_rate == pytest.approx(wrong.mean(), abs=0.03)
    assert answer.interval[0] <= wrong.mean() <= answer.interval[1]
    assert calibration_error(wrong, answer.p_error) < 0.05
    assert roc_auc_score(wrong, answer.log_odds) > 0.9


def test_many_classes_are_judged_as_well_as_few():
    label, probs, true = simulated(6000, DENSE_CLASSES + 36, 0.1, inverse_temperature=8.0)
    wrong = label != true
    answer = judge(label, probs.astype(np.float32))
    assert answer.noise_rate == pytest.approx(wrong.mean(), abs=0.03)
    assert average_precision_score(wrong, answer.log_odds) > 0.95
    moved = answer.suggested != label
    assert (answer.suggested[moved] == true[moved]).mean() > 0.9


def test_class_order_does_not_matter():
    label, probs, _ = simulated()
    swap = np.array([2, 0, 3, 1])
    back = np.argsort(swap)
    plain, other = judge(label, probs), judge(back[label], probs[:, swap])
    np.testing.assert_allclose(plain.p_error, other.p_error, atol=1e-4)


def test_rows_are_scored_alike_wherever_they_stand():
    label, probs, _ = simulated(500)
    model = fit(label, probs, choose_rows(500)).params
    whole = score(label, probs, model)
    some = np.array([400, 3, 77])
    np.testing.assert_array_equal(
        score(label, probs, model, rows=some).log_odds, whole.log_odds[some]
    )


def test_clean_labels_get_a_rate_near_zero():
    label, probs, _ = simulated(rate=0.0, inverse_temperature=6.0)
    answer = judge(label, probs)
    assert answer.noise_rate < 0.01
    assert answer.interval[0] == 0.0


@pytest.mark.parametrize("kind", ["uniform", "random"])
def test_probabilities_without_information_give_no_estimate(kind):
    rng = np.random.default_rng(0)
    label = rng.integers(0, 5, 2000)
    probs = np.full((2000, 5), 0.2) if kind == "uniform" else rng.dirichlet(np.ones(5), 2000)
    answer = judge(label, probs)
    assert answer.noise_rate is None
    assert np.isnan(answer.p_error).all()
    assert (answer.suggested == label).all()
    assert "no estimate" in answer.notes[0]


def test_a_model_of_a_rare_class_is_informative():
    label = np.r_[np.zeros(950, dtype=np.int64), np.ones(50, dtype=np.int64)]
    chance = np.full(1000, 0.05)
    chance[950:980] = chance[:20] = 0.4  # never the most probable class, yet it knows something
    seen = inspect(label, np.stack([1 - chance, chance], axis=1))
    assert seen.informative
    assert seen.apart.tolist() == list(range(950, 1000))
    assert (seen.rival == 0).all()


def test_verified_rows_are_right_and_teach():
    label, probs, true = simulated(rate=0.2)
    verified = np.zeros(len(label), dtype=bool)
    verified[np.flatnonzero(label == true)[:500]] = True
    answer = judge(label, probs, verified=verified)
    assert (answer.p_error[verified] == 0).all()
    assert (answer.suggested[verified] == label[verified]).all()
    plain = judge(label, probs)
    assert not np.array_equal(answer.p_error[~verified], plain.p_error[~verified])


def test_weak_models_come_with_a_warning_in_words():
    label, probs, _ = simulated(rate=0.3, inverse_temperature=1.5)
    assert any("weak model" in note for note in judge(label, probs).notes)


def boasting(probs):
    """Give what a model says that is eight times as sure as it has reason to be."""
    return probs**8 / (probs**8).sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_model_that_says_more_than_it_knows_is_not_taken_at_its_word(seed):
    """Its doubts would be taken for wrong labels: 8 % too many, where 5 % are bad enough."""
    label, probs, true = simulated(rate=0.3, inverse_temperature=2.0, seed=seed)
    assert judge(label, boasting(probs)).noise_rate == pytest.approx(
        (label != true).mean(), abs=0.065
    )


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_where_noise_is_found_sharper_eyes_find_more_of_it(seed):
    label, probs, true = simulated(rate=0.05, inverse_temperature=2.0, seed=seed)
    loud = boasting(probs)
    found = fit(label, loud, choose_rows(len(label)))
    plain, sharp = (
        average_precision_score(label != true, score(label, loud, params).log_odds)
        for params in (found.likelihood, found.params)
    )
    assert sharp > plain + 0.05


def test_where_no_noise_is_found_nothing_is_sharpened():
    """Without evidence of wrong labels every doubt may be the model's own."""
    label, probs, _ = simulated(rate=0.0, inverse_temperature=3.0)
    found = fit(label, probs, choose_rows(len(label)))
    plain = score(label, probs, found.likelihood).p_error.mean()
    assert score(label, probs, found.params).p_error.mean() < plain + 0.01


def test_few_classes_are_judged_at_a_cheap_power_that_is_not_below_the_likelihoods():
    for rate in (0.0, 0.1, 0.4):
        label, probs, _ = simulated(rate=rate)
        fitted = fit(label, probs, choose_rows(len(label)))
        assert fitted.params.inverse_temperature == cheap_power(fitted.params.inverse_temperature)
        assert fitted.params.inverse_temperature >= fitted.likelihood.inverse_temperature


@pytest.mark.parametrize("classes", [4, DENSE_CLASSES + 36])
def test_climbing_on_few_rows_first_ends_at_the_same_place(classes, monkeypatch):
    label, probs, true = simulated(3000, classes, 0.2)
    sure = np.zeros(len(label), bool)
    sure[:300] = (label == true)[:300]
    whole = judge(label, probs, verified=sure)
    monkeypatch.setattr(noise_parameters, "FIRST_ROWS", 600)
    parts = judge(label, probs, verified=sure)
    assert parts.noise_rate == pytest.approx(whole.noise_rate, abs=0.01)
    assert np.corrcoef(parts.log_odds[~sure], whole.log_odds[~sure])[0, 1] > 0.99


@pytest.mark.parametrize("classes", [4, DENSE_CLASSES, DENSE_CLASSES + 36])
def test_answers_do_not_depend_on_where_tiles_end(classes, monkeypatch):
    label, probs, _ = simulated(1000, classes, 0.2)
    fitted = fit(label, probs, choose_rows(len(label)))
    whole = score(label, probs, fitted.params)
    monkeypatch.setattr(arrays, "TILE_ROWS", 33)
    monkeypatch.setattr(arrays, "TILE_NUMBERS", 33 * classes)
    tiles = score(label, probs, fitted.params)
    for name in ("log_odds", "p_error", "suggested", "moved", "p_moved"):
        np.testing.assert_array_equal(getattr(tiles, name), getattr(whole, name))
