"""RobustClassifier: a classifier trained with a noise-robust loss, as scikit-learn wants it."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from labelclean import losses
from labelclean.arrays import Floats
from labelclean.errors import ConfigError, DataError
from labelclean.estimators.inputs import (
    Labelled,
    as_features,
    as_pictures,
    check_given_labels,
    encode_classes,
    rows_of,
    seed_from,
    weights_of,
)
from labelclean.estimators.storage import Persistent
from labelclean.estimators.tabular import FeatureModel, fit_features
from labelclean.strategies import (
    PLAIN_STRATEGY,
    Strategy,
    build_strategy,
    require_companions,
)
from labelclean.training.settings import TrainSettings


class RobustClassifier(
    Persistent,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]  # scikit-learn has no types
    TransformerMixin,  # type: ignore[misc]
    ClassifierMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """A classifier for labels of which some are wrong.

    On (N, D) features it standardises them and trains a head; on pictures it trains a head on the
    frozen features of a backbone (cached in the usual place), or the whole network.

    Args:
        loss: A name of `labelclean.losses.LOSSES`, a class of losses, or an object.
        loss_params: Parameters of the loss; None: its defaults.
        strategy: A name of `labelclean.strategies.STRATEGIES`: which rows count, with which
            targets, and how networks help each other.
        strategy_params: Parameters of the strategy; None: its defaults.
        backbone: What looks at pictures; see `ModelSettings.backbone`, or a torch module or timm
            model. Unused for features.
        mode: For pictures `head`, `finetune`, `scratch`, or `auto`: head without a GPU. Features
            always train a head.
        hidden: Units of a hidden layer before the classifier; 0: none, except that a loss with
            attention gets 256, without which it cannot tell rows apart.
        epochs: Passes over the data; None: what suits mode and size.
        batch_size: Rows per step; None: what suits mode and size.
        lr: Largest learning rate; None: what suits the mode.
        weight_decay: Decoupled weight decay; None: what suits the mode.
        validation: Share of the rows held out to stop at the best epoch; 0: train to the end.
        device: For pictures `auto`, `cpu`, `cuda` or `mps`.
        n_jobs: Threads that decode pictures and compute features; None: 1, -1: all cores. Never
            changes the result.
        random_state: A whole number, a generator, or None for a new seed each time; the global
            generators are neither read nor written.
        verbose: Above 0, a bar on the error stream shows how far training is.

    Attributes:
        classes_: (C,) the classes, in the order of the columns of `predict_proba`.
        model_: The trained model.
        n_features_in_: Number of features D; only for features.
        feature_names_in_: (D,) their names, where X had names.
    """

    def __init__(  # noqa: PLR0913 (scikit-learn: parameters are arguments)
        self,
        loss: Any = "gce",
        loss_params: Mapping[str, Any] | None = None,
        *,
        strategy: str = PLAIN_STRATEGY,
        strategy_params: Mapping[str, Any] | None = None,
        backbone: Any = "lite0",
        mode: str = "auto",
        hidden: int = 0,
        epochs: int | None = None,
        batch_size: int | None = None,
        lr: float | None = None,
        weight_decay: float | None = None,
        validation: float = 0.0,
        device: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.loss_params = loss_params
        self.strategy = strategy
        self.strategy_params = strategy_params
        self.backbone = backbone
        self.mode = mode
        self.hidden = hidden
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.validation = validation
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Train on rows and their labels.

        Args:
            X: (N, D) features, dense, sparse or a DataFrame; (N, H, W[, C]) uint8 pictures; or a
                list, array, Series or one-column DataFrame of N paths of pictures.
            y: (N,) labels of any type that can be sorted.
            sample_weight: (N,) how much a row counts; a row of weight 0 counts as absent.

        Raises:
            ConfigError: A parameter cannot work.
            DataError: The data cannot be used.
        """
        settings = self._settings()
        # A text never loads code here: estimators are read from files, too.
        name = self.loss if isinstance(self.loss, str) else losses.loss_name(self.loss)
        loss = losses.build(name, **dict(self.loss_params or {}))
        strategy = build_strategy(self.strategy, **dict(self.strategy_params or {}))
        require_companions(self.strategy, strategy, name, loss)
        pictures = as_pictures(X)
        if pictures is None:
            X, y = as_features(self, X, y, fitting=True)
        else:
            X, y = pictures, check_given_labels(pictures, y)
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
        weight = weights_of(sample_weight, X)
        rows = np.flatnonzero(weight)
        self.classes_, label = encode_classes(np.asarray(y)[rows])
        known = Labelled(label, weight[rows], len(self.classes_))
        X, seed = rows_of(X, rows), seed_from(self.random_state)
        if pictures is None:
            self.model_: Any = fit_features(
                X, known, loss, settings, (self.strategy, strategy),
                hidden=self.hidden, validation=self.validation, seed=seed, verbose=self.verbose,
            )  # fmt: skip
        else:
            self.model_ = self._fit_pictures(X, known, loss, strategy, settings, seed)
        self._n_features_out = self.model_.width
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Give the (N,) most probable class of every row."""
        best = self._logits(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> Floats:
        """Give (N, C) probabilities; columns as in `classes_`."""
        return np.asarray(softmax(self._logits(X), axis=1))

    def decision_function(self, X: Any) -> Floats:
        """Give (N, C) logits; with two classes (N,) the second's lead over the first."""
        logits = self._logits(X)
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def transform(self, X: Any) -> Floats:
        """Give (N, K) embeddings: what the classifier's last layer sees."""
        return np.asarray(self._model().embed(self._checked(X)))

    def _settings(self) -> TrainSettings:
        faults = []
        if not 0 <= self.validation < 1:
            faults.append(f"validation is {self.validation}; it must be at least 0 and below 1")
        if self.hidden < 0:
            faults.append(f"hidden is {self.hidden}; it must be 0 or more")
        if faults:
            raise ConfigError("; ".join(faults) + ".")
        return TrainSettings(
            mode=self.mode,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.lr,
            weight_decay=self.weight_decay,
        )

    def _fit_pictures(
        self,
        pictures: NDArray[Any],
        known: Labelled,
        loss: losses.RobustLoss,
        strategy: Strategy,
        settings: TrainSettings,
        seed: int,
    ) -> Any:
        # Here, so that estimators on features never load image code.
        from labelclean.estimators.pictures import fit_pictures, make_picture_fitter  # noqa: PLC0415
        from labelclean.models.own import backbone_name  # noqa: PLC0415
        from labelclean.models.settings import ModelSettings  # noqa: PLC0415
        from labelclean.training.selection import require_strategy  # noqa: PLC0415

        model = ModelSettings(backbone=backbone_name(self.backbone), hidden=self.hidden or None)
        fitter = make_picture_fitter(
            pictures, known, settings, model=model,
            device=self.device, threads=joblib.effective_n_jobs(self.n_jobs),
            validation=self.validation, seed=seed,
        )  # fmt: skip
        counts = (fitter.samples.trained, fitter.samples.num_classes)
        require_strategy(self.strategy, strategy, counts, model, fitter.training)
        fitter.strategy = partial(build_strategy, self.strategy, **dict(self.strategy_params or {}))
        return fit_pictures(fitter, loss, self.verbose)

    def _model(self) -> Any:
        check_is_fitted(self)
        return self.model_

    def _logits(self, X: Any) -> Floats:
        return np.asarray(self._model().logits(self._checked(X)))

    def _checked(self, X: Any) -> NDArray[Any]:
        if isinstance(self._model(), FeatureModel):
            return np.asarray(as_features(self, X, fitting=False))
        pictures = as_pictures(X)
        if pictures is None:
            raise DataError(
                "this estimator was fitted on pictures; give (N, H, W[, C]) uint8 pixels or paths."
            )
        return pictures
