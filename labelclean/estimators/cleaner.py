"""LabelCleaner: find wrong labels, correct them, and train on what is right."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from labelclean.correction.policy import Policy
from labelclean.estimators.evidence import (
    Seen,
    for_every_row,
    from_estimator,
    from_features,
    from_pictures,
    staying_rows,
    with_signals,
    without_extinction,
)
from labelclean.estimators.inputs import (
    Labelled,
    aligned,
    as_features,
    as_pictures,
    check_given_labels,
    distinct_rows,
    encode_classes,
    no_twins,
    rows_of,
    seed_from,
    weights_of,
)
from labelclean.estimators.robust import RobustClassifier
from labelclean.estimators.storage import Persistent
from labelclean.workflows.find import issues_table

if TYPE_CHECKING:
    import pandas as pd


def _final_has(name: str) -> Any:
    def check(self: Any) -> bool:
        return self.estimator is None or hasattr(self.estimator, name)

    return check


class LabelCleaner(Persistent, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # no types
    """Finds wrong labels, suggests right ones, and predicts with a model of the corrected data.

    Without an `estimator` the evidence about pictures is that of `labelclean audit` with the same
    loss and mode; that about features comes from noise-aware heads, a generative model and the
    neighbours, and rows of a table that agree in everything are judged once. With one, it comes
    from the probabilities the estimator gives for rows it did not train on.

    Args:
        estimator: A classifier with `predict_proba`; None: labelclean's own evidence, and a
            `RobustClassifier` to predict with.
        policy: What happens to flagged rows: `careful` relabels where that is nearly always
            right and sends the rest to review, `relabel`, `review` and `drop` do just that.
        relabel_precision: Least probability that a suggestion is right, for `careful`.
        budget: Flag exactly so many distinct rows; None: where the expected F1 is largest.
        target_precision: Flag as many as keep this share of errors among them; None: as above.
        cv: Number of folds for `estimator`; grouped where `groups` are given.
        loss: A name of `labelclean.losses.LOSSES`, a class of losses, or an object: what the
            network is trained with, the one that judges and the one that predicts.
        loss_params: Parameters of the loss; None: its defaults.
        mode: For pictures `head` (frozen features), `finetune` (the fine-tuned network speaks, too;
            it is trained a second time on labels with planted errors), `scratch` (judged by two
            networks that each leave rows out) or `auto`: head without a GPU, else finetune.
            Features always train a head.
        epochs: Passes over the data, of every training; None: what suits mode and size.
        backbone: What looks at pictures: a name, a torch module or a timm model.
        device: For pictures `auto`, `cpu`, `cuda` or `mps`.
        n_jobs: Folds of `estimator` trained at once, or threads for pictures; None: 1, -1: all
            cores. Never changes the result.
        random_state: A whole number, a generator, or None for a new seed each time.
        verbose: Above 0, bars on the error stream show how far it is.

    Attributes:
        issues_: One row for every judged row, most suspect first: rank, row, label_given,
            label_suggested, action, p_error, suspicion, p_given, p_suggested; for pictures margin
            and, where known, attention and target_given; without an `estimator`
            neighbour_agreement. A DataFrame or Series X gives it its index.
        p_error_: (N,) probability that the given label is wrong; NaN where it was not judged.
        suspicion_: (N,) the ranking on a scale from 0 to 1; NaN as above.
        suggested_labels_: (N,) the most probable label; the given one where it would stay.
        corrected_labels_: (N,) labels after relabelling.
        noise_rate_: Estimated share of wrong labels; NaN where no estimate is possible.
        noise_rate_interval_: Its 90 % interval.
        noise_transition_: (C, C) P(given | true), rows true; NaN where no estimate is possible.
        notes_: What to know before trusting the numbers, in sentences.
        classes_: (C,) the classes.
        estimator_: The model trained on the corrected labels of the rows that stay.
        n_features_in_: Number of features D; only for features.
        feature_names_in_: (D,) their names, where X had names.
    """

    def __init__(  # noqa: PLR0913 (scikit-learn: parameters are arguments)
        self,
        estimator: Any = None,
        *,
        policy: str = "careful",
        relabel_precision: float = 0.95,
        budget: int | None = None,
        target_precision: float | None = None,
        cv: int = 5,
        loss: Any = "gce",
        loss_params: Mapping[str, Any] | None = None,
        mode: str = "head",
        epochs: int | None = None,
        backbone: Any = "lite0",
        device: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.policy = policy
        self.relabel_precision = relabel_precision
        self.budget = budget
        self.target_precision = target_precision
        self.cv = cv
        self.loss = loss
        self.loss_params = loss_params
        self.mode = mode
        self.epochs = epochs
        self.backbone = backbone
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        verified: ArrayLike | None = None,
    ) -> Self:
        """Judge every label, then train on the corrected ones.

        Args:
            X: As for `RobustClassifier.fit`; with an `estimator`, whatever it takes.
            y: (N,) labels of any type that can be sorted.
            sample_weight: (N,) how much a row counts; a row of weight 0 counts as absent.
            groups: (N,) rows that belong together never stand on both sides of a fold.
            verified: (N,) True where a person vouched for the label: never changed.

        Raises:
            ConfigError: A parameter cannot work.
            DataError: The data cannot be used.
        """
        X, weight, seed = self._examine(X, y, sample_weight, groups, verified)
        rows = staying_rows(self.issues_, self.corrected_labels_)
        rows = rows[weight[rows] > 0]
        if self.estimator is None:
            self.estimator_: Any = RobustClassifier(
                self.loss, self.loss_params, backbone=self.backbone, device=self.device,
                n_jobs=self.n_jobs, mode=self.mode, epochs=self.epochs, random_state=seed,
                verbose=self.verbose,
            )  # fmt: skip
        else:
            self.estimator_ = clone(self.estimator)
        extra = {}
        if sample_weight is not None or self.estimator is None:
            extra["sample_weight"] = weight[rows]
        self.estimator_.fit(rows_of(X, rows), self.corrected_labels_[rows], **extra)
        return self

    def fit_resample(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        verified: ArrayLike | None = None,
    ) -> tuple[Any, NDArray[Any]]:
        """Judge every label and give the rows that stay, with corrected labels.

        This is what imbalanced-learn's pipelines call. Rows that are flagged and not relabelled
        go, as do rows of weight 0. No model is trained for `predict`; that is what `fit` does.

        Returns:
            Rows of X, of the type X has, and their labels.
        """
        _, weight, _ = self._examine(X, y, sample_weight, groups, verified)
        rows = staying_rows(self.issues_, self.corrected_labels_)
        rows = rows[weight[rows] > 0]
        return rows_of(X, rows), self.corrected_labels_[rows]

    def predict(self, X: Any) -> NDArray[Any]:
        """Give the (N,) most probable class of every row, by the retrained model."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict(self._checked(X)))

    @available_if(_final_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Give (N, C) probabilities by the retrained model; columns as in `classes_`."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict_proba(self._checked(X)))

    @available_if(_final_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Give the retrained model's scores: (N, C), or (N,) with two classes."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.decision_function(self._checked(X)))

    def _examine(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
        verified: ArrayLike | None,
    ) -> tuple[Any, NDArray[np.float64], int]:
        """Judge all rows of positive weight; gives X as checked, the weights, the seed."""
        policy = Policy(self.policy, self.relabel_precision, self.budget, self.target_precision)
        seed = seed_from(self.random_state)
        index = X.index if hasattr(X, "iloc") else None
        pictures = as_pictures(X) if self.estimator is None else None
        if pictures is not None or (self.estimator is not None and np.ndim(X) != 2):
            # Pictures, or a list of texts or the like for an estimator that understands it.
            X, y = X if pictures is None else pictures, check_given_labels(X, y)
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
        else:
            checked, y = as_features(self, X, y, fitting=True)
            X = checked if self.estimator is None else X
        weight = weights_of(sample_weight, y)
        rows = np.flatnonzero(weight)
        self.classes_, label = encode_classes(np.asarray(y)[rows])
        group = aligned("groups", groups, len(weight), object)
        sure = aligned("verified", verified, len(weight), bool)
        group, sure = (None if a is None else a[rows] for a in (group, sure))
        known = Labelled(label, weight[rows], len(self.classes_), group, sure)
        part = rows_of(X, rows)
        tabular = self.estimator is None and pictures is None
        first, kind, known = distinct_rows(part, known) if tabular else no_twins(known)
        part = rows_of(part, first)
        seen = self._seen(part, known, pictures is not None, sample_weight is not None, seed)
        table = issues_table(
            known.label, self.classes_, seen.p_given, seen.judgement, seen.agreement, policy,
            known.verified,
        )  # fmt: skip
        table = for_every_row(with_signals(table, seen.signals), kind, rows)
        self._keep(without_extinction(table), np.asarray(y), seen)
        if index is not None:
            self.issues_.index = index[self.issues_["row"]]
        return X, weight, seed

    def _seen(self, X: Any, known: Labelled, pictures: bool, weighted: bool, seed: int) -> Seen:
        if self.estimator is not None:
            return from_estimator(
                self.estimator, X, known, self.classes_,
                weighted=weighted, cv=self.cv, n_jobs=self.n_jobs, seed=seed,
            )  # fmt: skip
        if not pictures:
            return from_features(X, known, seed=seed)
        return from_pictures(self, X, known, seed)

    def _keep(self, table: "pd.DataFrame", y: NDArray[Any], seen: Seen) -> None:
        """Lay what was found out by row."""
        rows = table["row"].to_numpy()
        self.issues_ = table
        self.p_error_ = np.full(len(y), np.nan)
        self.p_error_[rows] = table["p_error"]
        self.suspicion_ = np.full(len(y), np.nan)
        self.suspicion_[rows] = table["suspicion"]
        moved = table["label_suggested"].to_numpy() != table["label_given"].to_numpy()
        self.suggested_labels_, self.corrected_labels_ = y.copy(), y.copy()
        self.suggested_labels_[rows[moved]] = table["label_suggested"].to_numpy()[moved]
        relabelled = (table["action"] == "relabel").to_numpy()
        self.corrected_labels_[rows[relabelled]] = table["label_suggested"].to_numpy()[relabelled]
        rate = seen.judgement.noise_rate
        self.noise_rate_ = float("nan") if rate is None else rate
        self.noise_rate_interval_ = seen.judgement.interval
        self.noise_transition_ = seen.transition
        self.notes_ = seen.judgement.notes

    def _checked(self, X: Any) -> Any:
        if not hasattr(self, "n_features_in_"):
            return X
        checked = as_features(self, X, fitting=False)
        return checked if self.estimator is None else X
