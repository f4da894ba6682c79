"""scikit-learn's own checks: all of them, no expected failures."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from labelclean import LabelCleaner, RobustClassifier


@parametrize_with_checks([RobustClassifier(), LabelCleaner()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)
