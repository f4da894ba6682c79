"""Bring your own probabilities: the judge as one function, no training, no files."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelclean.calibration.checks import doubts, inspect
from labelclean.calibration.judgement import Judgement, judge, suspicion
from labelclean.correction.policy import VERDICTS, Policy, actions_in_cut, cut, least_flagged
from labelclean.errors import DataError, shortlist
from labelclean.evidence.ranking import most_suspect_first

if TYPE_CHECKING:
    import pandas as pd


def find_label_issues(
    labels: ArrayLike,
    pred_probs: NDArray[np.floating[Any]],
    features: NDArray[np.floating[Any]] | None = None,
    *,
    classes: Sequence[object] | None = None,
    verified: ArrayLike | None = None,
    policy: Policy | None = None,
) -> "pd.DataFrame":
    """Judge every label from out-of-sample probabilities.

    Args:
        labels: (N,) given labels: integers 0 to C-1, or members of `classes`.
        pred_probs: (N, C) probabilities of models that did not train on the row; any float type,
            may be memory-mapped: it is read in tiles and never copied.
        features: (N, D) features of the rows; their nearest neighbours join the evidence as far
            as they help to predict the labels.
        classes: (C,) the label of each column; default: 0 to C-1, or the sorted distinct labels.
        verified: (N,) True where a person vouched for the label: known-good, never changed.
        policy: What to flag and what to do about it; default `Policy()`.

    Returns:
        One row per input row, most suspect first: rank, row, label_given, label_suggested, action,
        p_error, suspicion, p_given, p_suggested (with features also neighbour_agreement).
        `attrs` holds noise_rate, noise_rate_interval and notes.

    Raises:
        DataError: The input cannot be used; every fault is named.

    Warns:
        UserWarning: The columns look permuted, the probabilities look in-sample, or no estimate
            is possible.
    """
    probs = _as_probs(pred_probs)
    names, label = _encode(labels, probs, classes)
    sure = _as_mask(verified, len(label))
    seen = inspect(label, probs)
    for doubt in doubts(label, seen, probs.shape[1]):
        warnings.warn(doubt, UserWarning, stacklevel=2)
    agreement, given = None, seen
    if features is not None:
        from labelclean.calibration.blend import with_neighbours  # noqa: PLC0415

        probs, agreement, _ = with_neighbours(label, probs, np.asarray(features))
        seen = inspect(label, probs)
    judgement = judge(label, probs, seen, sure)
    if judgement.noise_rate is None:
        warnings.warn(judgement.notes[0], UserWarning, stacklevel=2)
    return issues_table(label, names, given.p_given, judgement, agreement, policy or Policy(), sure)


def issues_table(
    label: NDArray[np.int64],
    names: NDArray[Any] | None,
    p_given: NDArray[np.float32],
    judgement: Judgement,
    agreement: NDArray[np.float64] | None,
    policy: Policy,
    verified: NDArray[np.bool_] | None,
) -> "pd.DataFrame":
    """Decide about judged rows and lay everything out, most suspect first.

    Args:
        label: (N,) given labels.
        names: (C,) the label of each class; None: they are 0 to C-1.
        p_given: (N,) probability of the given label.
        judgement: What the judge said.
        agreement: (N,) the neighbours' vote for the given label; None: not asked.
        policy: What to flag and what to do about it.
        verified: (N,) rows a person vouched for; None: none.
    """
    import pandas as pd  # noqa: PLC0415

    count = len(label)
    # One allocation for all columns: the system backs it with large pages, and touching new
    # memory would cost more than the arithmetic.
    whole = np.empty((7, count), dtype=np.int64)
    rank, order, given, suggested = whole[:4]
    p_error, p_suggested = whole[4:6].view(np.float64)
    suspect, p_own = whole[6].view(np.float32).reshape(2, count)
    rank[:] = 1
    np.cumsum(rank, out=rank)
    most_suspect_first(judgement.log_odds, order)
    judgement.log_odds.take(order, out=suspect, mode="clip")
    suspicion(suspect, suspect)
    p_given.take(order, out=p_own, mode="clip")
    p_error[:] = judgement.p_error.take(order, mode="clip")
    # Looking up 8-byte labels all over the memory is slow; few classes fit into one byte.
    given[:] = label.astype(np.min_scalar_type(label.max())).take(order)
    # Only rows inside the cut can differ from "keep, as given": nothing else is looked up.
    sure = p_error if verified is None else np.where(verified[order], 0.0, p_error)
    head = cut(sure, policy, least_flagged(judgement.noise_rate, judgement.interval))
    rows, held = order[head], given[head]
    better, p_better = judgement.suggested[rows], judgement.p_suggested[rows]
    code = np.zeros(count, dtype=np.int8)
    code[head] = actions_in_cut(held, better, p_better, policy, judgement.bounded)
    suggested[:] = given
    suggested[head] = better
    np.subtract(1, p_error, out=p_suggested)
    p_suggested[head[better != held]] = p_better[better != held]
    columns: dict[str, Any] = {
        "rank": rank,
        "row": order,
        "label_given": given if names is None else names[given],
        "label_suggested": suggested if names is None else names[suggested],
        "action": pd.Categorical.from_codes(code, categories=pd.Index(VERDICTS)),
        "p_error": p_error,
        "suspicion": suspect,
        "p_given": p_own,
        "p_suggested": p_suggested,
    }
    if agreement is not None:
        columns["neighbour_agreement"] = agreement[order]
    table = pd.DataFrame(columns, copy=False)
    table.attrs = {
        "noise_rate": judgement.noise_rate,
        "noise_rate_interval": list(judgement.interval),
        "notes": list(judgement.notes),
    }
    return table


def _as_probs(pred_probs: Any) -> NDArray[np.floating[Any]]:
    probs = np.asarray(pred_probs)
    if probs.ndim != 2 or not probs.size:
        raise DataError(
            f"pred_probs has shape {probs.shape}; it must be (rows, classes) and not empty."
        )
    if probs.shape[1] < 2:
        raise DataError("pred_probs has one column; label errors need at least two classes.")
    if not np.issubdtype(probs.dtype, np.floating):
        if probs.dtype.kind not in "iub":
            raise DataError(f"pred_probs holds {probs.dtype}; it must hold numbers.")
        probs = probs.astype(np.float32)
    return probs


def _as_mask(verified: ArrayLike | None, count: int) -> NDArray[np.bool_] | None:
    if verified is None:
        return None
    mask = np.asarray(verified)
    if mask.shape != (count,) or mask.dtype.kind not in "bi":
        raise DataError(
            f"verified has shape {mask.shape} and type {mask.dtype}; it must hold one True or "
            f"False for each of the {count} rows."
        )
    return mask.astype(bool)


def _encode(
    labels: ArrayLike, probs: NDArray[np.floating[Any]], classes: Sequence[object] | None
) -> tuple[NDArray[Any] | None, NDArray[np.int64]]:
    """Turn labels into positions of columns; the names are None where they are the positions."""
    given = np.asarray(labels)
    size = probs.shape[1]
    if given.ndim != 1 or len(given) != len(probs):
        raise DataError(
            f"labels has shape {given.shape}, pred_probs {probs.shape}: there must be one label "
            "for each row of pred_probs."
        )
    if classes is None and given.dtype.kind in "iu":
        outside = np.flatnonzero((given < 0) | (given >= size))
        if len(outside):
            raise DataError(
                f"{len(outside)} labels are outside 0 to {size - 1}, the columns of pred_probs "
                f"(rows {shortlist(outside, 5)}; first value {given[outside[0]]}). "
                "Pass `classes` if the labels are names."
            )
        return None, given.astype(np.int64, copy=False)
    return _encode_names(given, size, classes)


def _encode_names(
    given: NDArray[Any], size: int, classes: Sequence[object] | None
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    if given.dtype.kind == "f":
        raise DataError("labels are fractions or hold NaN; pass integers or names.")
    try:
        names = np.unique(given) if classes is None else np.asarray(classes)
    except TypeError as error:
        raise DataError(f"labels mix types that cannot be compared: {error}.") from error
    if len(names) != size:
        what = "distinct labels" if classes is None else "classes"
        raise DataError(
            f"{len(names)} {what} ({shortlist(names, 5)}) but {size} columns in pred_probs; "
            "pass `classes` in the order of the columns."
        )
    position = {name: at for at, name in enumerate(names.tolist())}
    if len(position) != size:
        raise DataError("classes holds a name twice.")
    unknown = sorted({str(name) for name in given.tolist() if name not in position})
    if unknown:
        raise DataError(f"labels that are not in classes: {shortlist(unknown)}.")
    return names, np.array([position[name] for name in given.tolist()], dtype=np.int64)
