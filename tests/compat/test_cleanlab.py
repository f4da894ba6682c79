import numpy as np
import pytest
from simulated_arrays import simulated

from labelclean.compat import cleanlab
from labelclean.errors import ConfigError
from labelclean.workflows.find import find_label_issues


def test_the_mask_is_our_cut():
    label, probs, _ = simulated()
    mask = cleanlab.find_label_issues(label, probs, n_jobs=1)
    table = find_label_issues(label, probs)
    assert mask.dtype == bool
    assert set(np.flatnonzero(mask)) == set(table["row"][table["action"] != "keep"])


def test_ranked_rows_are_sorted_worst_first():
    label, probs, _ = simulated()
    rows = cleanlab.find_label_issues(label, probs, return_indices_ranked_by="self_confidence")
    quality = cleanlab.get_label_quality_scores(label, probs)
    assert (np.diff(quality[rows]) >= 0).all()
    assert len(rows) == cleanlab.find_label_issues(label, probs).sum()


def test_plain_disagreement():
    label, probs, _ = simulated()
    mask = cleanlab.find_label_issues(label, probs, filter_by="predicted_neq_given")
    np.testing.assert_array_equal(mask, probs.argmax(axis=1) != label)


@pytest.mark.parametrize(
    ("call", "options"),
    [
        (cleanlab.find_label_issues, {"filter_by": "both"}),
        (cleanlab.find_label_issues, {"multi_label": True}),
        (cleanlab.find_label_issues, {"return_indices_ranked_by": "margin"}),
        (cleanlab.get_label_quality_scores, {"method": "margin"}),
        (cleanlab.get_label_quality_scores, {"adjust_pred_probs": True}),
    ],
)
def test_what_we_do_not_offer_is_refused(call, options):
    label, probs, _ = simulated(100)
    with pytest.raises(ConfigError):
        call(label, probs, **options)


@pytest.mark.parametrize("method", ["self_confidence", "normalized_margin",
                                    "confidence_weighted_entropy"])  # fmt: skip
def test_scores_are_those_of_cleanlab(method):
    rank = pytest.importorskip("cleanlab.rank")
    label, probs, _ = simulated(200)
    np.testing.assert_allclose(
        cleanlab.get_label_quality_scores(label, probs, method=method),
        rank.get_label_quality_scores(label, probs, method=method),
        atol=1e-6,
    )
