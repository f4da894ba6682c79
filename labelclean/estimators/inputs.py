"""What an estimator may be given: features, pictures or paths, labels, weights, a random state."""

import secrets
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from labelclean.errors import DataError

DENSE_BYTES = 4 * 2**30
_SEEDS = 2**31


@dataclass(frozen=True, slots=True)
class Labelled:
    """What is known about N rows beside X.

    Args:
        label: (N,) given labels, 0 to C-1.
        weight: (N,) positive weights.
        num_classes: C.
        group: (N,) rows that belong together; None: none do.
        verified: (N,) rows a person vouched for; None: none.
    """

    label: NDArray[np.int64]
    weight: NDArray[np.float64]
    num_classes: int
    group: NDArray[np.object_] | None = None
    verified: NDArray[np.bool_] | None = None


def seed_from(random_state: Any) -> int:
    """Turn scikit-learn's idea of a random state into a seed.

    None gives a new seed from the system: drawing from NumPy's global generator, as scikit-learn
    does, would change what comes after in the user's own program.
    """
    if random_state is None:
        return secrets.randbelow(_SEEDS)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(_SEEDS))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(_SEEDS - 1))
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        return int(random_state)
    raise DataError(
        f"random_state is {random_state!r}; give a whole number, a NumPy generator or None."
    )


def as_pictures(X: Any) -> NDArray[Any] | None:
    """Recognise pictures and paths of pictures.

    Returns:
        (N, H, W[, C]) uint8 pixels, (N,) paths as text, or None for anything else.

    Raises:
        DataError: An array of more than two dimensions that holds no pictures.
    """
    if sparse.issparse(X):
        return None
    if getattr(X, "ndim", None) == 2 and X.shape[1] == 1 and hasattr(X, "iloc"):
        X = X.iloc[:, 0]
    if isinstance(X, list | tuple) and (not len(X) or not isinstance(X[0], str | PathLike)):
        X = np.asarray(X) if len(X) and np.ndim(X[0]) > 1 else None
    if X is None:
        return None
    array = np.asarray(X)
    if array.ndim in (3, 4):
        known = array.ndim == 3 or array.shape[3] in (1, 3, 4)
        if array.dtype != np.uint8 or not known or 0 in array.shape:
            raise DataError(
                f"X is an array of type {array.dtype} and shape {array.shape}. Pictures are uint8 "
                "of shape (N, H, W) or (N, H, W, C) with C of 1, 3 or 4; features are (N, D)."
            )
        return array
    if array.ndim != 1 or array.dtype.kind not in "OU" or not len(array):
        return None
    if not all(isinstance(path, str | PathLike) for path in array.tolist()):
        return None
    return np.array([str(path) for path in array.tolist()], dtype=object)


def as_features(estimator: Any, X: Any, y: Any = None, *, fitting: bool) -> Any:
    """Check (N, D) features, dense or sparse, and with them the labels when fitting.

    Returns:
        (N, D) float64 features, or the pair of them and y.
    """
    extra = {"y": y, "ensure_min_samples": 2} if fitting else {}
    checked = validate_data(
        estimator, X, reset=fitting, accept_sparse="csr", dtype=np.float64, **extra
    )
    if fitting:
        return _dense(checked[0]), checked[1]
    return _dense(checked)


def _dense(X: Any) -> NDArray[np.float64]:
    if isinstance(X, np.ndarray):
        return X
    needed = 8 * X.shape[0] * X.shape[1]
    if needed > DENSE_BYTES:
        raise DataError(
            f"X is sparse and of shape {X.shape}; dense, as heads need it, it would take "
            f"{needed / 2**30:.0f} GB. Reduce it first, for example with TruncatedSVD."
        )
    return np.asarray(X.toarray())


def check_given_labels(X: Any, y: Any) -> NDArray[Any]:
    """Check the labels of pictures, as `validate_data` does it for features."""
    if y is None:
        raise DataError("this estimator requires y to be passed, but the target y is None.")
    y = column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    return np.asarray(y)


def encode_classes(y: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Give the sorted (C,) classes and the (N,) position of every label among them.

    Raises:
        ValueError: These are not classes, or only one.
    """
    check_classification_targets(y)
    classes, label = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise DataError(
            f"y holds one class only ({classes[0]!r}); a classifier needs at least two classes."
        )
    return classes, label.astype(np.int64)


def weights_of(sample_weight: Any, X: Any) -> NDArray[np.float64]:
    """Check (N,) weights; None gives ones.

    Raises:
        ValueError: They are negative, not finite, or all zero.
    """
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise DataError("sample_weight is zero for every row: no row and no class is left.")
    return np.asarray(weight)


def rows_of(X: Any, rows: NDArray[np.int64]) -> Any:
    """Take some rows of whatever X is."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if isinstance(X, list | tuple):
        return [X[row] for row in rows.tolist()]
    return X[rows]


def distinct_rows(
    X: NDArray[np.float64], known: Labelled
) -> tuple[NDArray[np.int64], NDArray[np.int64], Labelled]:
    """Find rows that agree in everything: copies are no further evidence, and leak between folds.

    Returns:
        (U,) a row of each kind, (N,) the kind of every row, and what is known about the kinds;
        their weights are the sums over their rows.
    """
    extra = [known.label]
    if known.group is not None:
        extra.append(np.unique(known.group.astype(str), return_inverse=True)[1])
    if known.verified is not None:
        extra.append(known.verified.astype(np.int64))
    # Adding zero turns -0.0 into 0.0, which has other bytes.
    whole = np.ascontiguousarray(np.column_stack([X, *extra]) + 0.0)
    keys = whole.view(np.dtype((np.void, whole.itemsize * whole.shape[1]))).ravel()
    _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
    return (
        first,
        kind,
        Labelled(
            known.label[first],
            np.bincount(kind, weights=known.weight).astype(np.float64),
            known.num_classes,
            None if known.group is None else known.group[first],
            None if known.verified is None else known.verified[first],
        ),
    )


def no_twins(known: Labelled) -> tuple[NDArray[np.int64], NDArray[np.int64], Labelled]:
    """Give what `distinct_rows` gives where every row is a kind of its own."""
    rows = np.arange(len(known.label))
    return rows, rows, known


def aligned(name: str, values: ArrayLike | None, count: int, kind: type) -> Any:
    """Check that there is one value for each row, and give them as an array of a type."""
    if values is None:
        return None
    array = np.asarray(values)
    if array.shape != (count,):
        raise DataError(f"{name} has shape {array.shape}; it needs one value for {count} rows.")
    return array.astype(kind)
