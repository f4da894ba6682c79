"""Evidence: pure functions of Records that say how suspect a label is; higher = more suspect."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from labelclean.evidence import confident, dynamics, mixture, neighbours, probabilities
from labelclean.records.records import Records

Suspicion = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scorer:
    """A suspicion function and what it needs.

    Args:
        about: One line for people.
        needs: Names of the arrays of Records it reads.
        score: Records to (N,) suspicion, higher = more suspect, NaN where nothing is known.
    """

    about: str
    needs: tuple[str, ...]
    score: Callable[[Records], Suspicion]

    def __call__(self, records: Records) -> Suspicion:
        """Check the needs, then score."""
        records.require(self.needs)
        return self.score(records)


def _of_probs(function: Callable[..., Suspicion]) -> Callable[[Records], Suspicion]:
    return lambda records: function(records.label, records.probs)


def _forward(records: Records) -> Suspicion:
    """Read T off the confident joint: P(given | true) is its column-normalised transpose."""
    joint = confident.calibrated_joint(records.label, records.probs).T + 1e-9
    transition = joint / joint.sum(axis=1, keepdims=True)
    return probabilities.forward_corrected(records.label, records.probs, transition)


def _given(values: object) -> NDArray[np.floating]:
    # Scorer.__call__ has checked that the array is there.
    return np.asarray(values)


SCORERS: Mapping[str, Scorer] = MappingProxyType(
    {
        "self_confidence": Scorer(
            "1 - p(y|x)",
            ("label", "probs"),
            _of_probs(probabilities.self_confidence),
        ),
        "margin": Scorer(
            "largest other probability minus p(y|x)",
            ("label", "probs"),
            _of_probs(probabilities.probability_margin),
        ),
        "normalised_margin": Scorer(
            "the margin on the scale 0 to 1",
            ("label", "probs"),
            _of_probs(probabilities.normalised_margin),
        ),
        "entropy": Scorer(
            "confidence-weighted entropy",
            ("label", "probs"),
            _of_probs(probabilities.confidence_weighted_entropy),
        ),
        "forward": Scorer("1 - p_y T_yy / (pT)_y, T from the confident joint",
                          ("label", "probs"), _forward),
        "mean_p": Scorer(
            "1 - p(y|x) averaged over the epochs",
            ("p_given",),
            lambda r: 1 - dynamics.mean_over_epochs(_given(r.p_given)),
        ),
        "aum": Scorer(
            "negative area under the margin",
            ("margin",),
            lambda r: -dynamics.mean_over_epochs(_given(r.margin)),
        ),
        "forgetting": Scorer(
            "epochs in which the label was forgotten or not learned",
            ("predicted", "label"),
            lambda r: dynamics.forgetting(_given(r.predicted).astype(np.int32), r.label),
        ),
        "attention": Scorer(
            "1 - tau of the noise-attention loss",
            ("attention",),
            lambda r: 1 - dynamics.last_seen(_given(r.attention)),
        ),
        "target": Scorer(
            "1 - q(y), the soft target's mass off the given label",
            ("target_given",),
            lambda r: 1 - dynamics.last_seen(_given(r.target_given)),
        ),
        "loss_mixture": Scorer(
            "upper hump of the mean loss",
            ("loss",),
            lambda r: mixture.two_component_mixture(dynamics.mean_over_epochs(_given(r.loss))),
        ),
        "margin_mixture": Scorer(
            "lower hump of the mean margin",
            ("margin",),
            lambda r: mixture.two_component_mixture(-dynamics.mean_over_epochs(_given(r.margin))),
        ),
        "neighbours": Scorer(
            "share of the 50 nearest rows' vote that is not for the given label",
            ("embedding", "label"),
            lambda r: neighbours.disagreement(r.label, _given(r.embedding)),
        ),
        "duplicates": Scorer(
            "near-identical rows with another label",
            ("embedding", "label"),
            lambda r: neighbours.duplicate_conflicts(r.label, _given(r.embedding)),
        ),
    }
)  # fmt: skip


def available(records: Records) -> list[str]:
    """Name the scorers whose needs these records meet."""
    return [
        name
        for name, scorer in SCORERS.items()
        if all(getattr(records, need) is not None for need in scorer.needs)
    ]
