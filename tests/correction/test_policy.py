import numpy as np
import pytest

from labelclean.correction.patch import Change, apply_patch, revert_patch
from labelclean.correction.policy import Policy, decide
from labelclean.errors import ConfigError, DataError

LABEL = np.array([0, 1, 2, 0, 1])
P_ERROR = np.array([0.99, 0.9, 0.5, 0.02, 0.0])
ORDER = np.arange(5)
SUGGESTED = np.array([1, 2, 0, 0, 1])
P_SUGGESTED = np.array([0.98, 0.7, 0.5, 0.98, 1.0])


def actions_of(policy=None, verified=None):
    return decide(LABEL, P_ERROR, ORDER, SUGGESTED, P_SUGGESTED, policy, verified)


def test_careful_relabels_the_sure_and_asks_about_the_rest():
    assert actions_of().tolist() == ["relabel", "review", "review", "keep", "keep"]


@pytest.mark.parametrize(
    ("policy", "actions"),
    [
        (Policy("relabel"), ["relabel", "relabel", "relabel", "keep", "keep"]),
        (Policy("review"), ["review", "review", "review", "keep", "keep"]),
        (Policy("drop"), ["drop", "drop", "drop", "keep", "keep"]),
        (Policy(budget=1), ["relabel", "keep", "keep", "keep", "keep"]),
        (Policy("review", budget=9), ["review", "review", "review", "review", "keep"]),
        (Policy("review", budget=0), ["keep"] * 5),
        (Policy("review", target_precision=0.9), ["review", "review", "keep", "keep", "keep"]),
        (Policy(relabel_precision=0.6), ["relabel", "relabel", "review", "keep", "keep"]),
    ],
)
def test_other_policies(policy, actions):
    assert actions_of(policy).tolist() == actions


@pytest.mark.parametrize(("precision", "relabelled"), [(0.99, 0), (0.85, 1), (0.8, 2), (0.7, 3)])
def test_lower_bounds_may_stand_for_each_other(precision, relabelled):
    policy = Policy(relabel_precision=precision)
    actions = decide(LABEL, P_ERROR, ORDER, SUGGESTED, P_SUGGESTED, policy, bounded=True)
    # .98, then (.98 + .7) / 2 = .84, then .727
    assert (actions == "relabel").tolist() == [at < relabelled for at in range(5)]


def test_verified_rows_are_never_touched():
    verified = np.array([True, False, False, False, False])
    for mode in ("careful", "relabel", "review", "drop"):
        assert actions_of(Policy(mode, budget=5), verified)[0] == "keep"


def test_without_estimate_everything_is_kept():
    answer = decide(LABEL, np.full(5, np.nan), ORDER, SUGGESTED, P_SUGGESTED)
    assert set(answer) == {"keep"}


def test_wrong_policies_are_refused_in_one_message():
    with pytest.raises(ConfigError, match=r"mode is 'bold'.*relabel_precision is 2.*budget is -1"):
        Policy("bold", relabel_precision=2, budget=-1)
    with pytest.raises(ConfigError, match="both set the cut"):
        Policy(budget=3, target_precision=0.5)


def test_changes_can_be_applied_and_undone():
    changes = [Change(0, 0, 1), Change(1, 1, 2), Change(2, 2, 0)]
    patched = apply_patch(LABEL, changes)
    assert patched.tolist() == [1, 2, 0, 0, 1]
    np.testing.assert_array_equal(revert_patch(patched, changes), LABEL)


def test_a_foreign_patch_is_refused():
    with pytest.raises(DataError, match=r"row 9 is outside.*row 1 carries 1, not 0"):
        apply_patch(LABEL, [Change(9, 0, 1), Change(1, 0, 2)])
    with pytest.raises(DataError, match="changed twice"):
        apply_patch(LABEL, [Change(0, 0, 1), Change(0, 0, 2)])
