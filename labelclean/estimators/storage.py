"""Safe persistence: one safetensors file of numbers with JSON in its header; runs no code."""

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from sklearn.utils.validation import check_is_fitted

from labelclean import __version__
from labelclean.atomic import write_bytes
from labelclean.correction.policy import VERDICTS
from labelclean.errors import ConfigError, DataError, OutputError
from labelclean.estimators.tabular import FeatureModel

if TYPE_CHECKING:
    import pandas as pd

Parts = tuple[dict[str, Any], dict[str, torch.Tensor]]
_HEADER = "labelclean"
_CODED = ("label_given", "label_suggested", "action")
_CLEANED = ("p_error_", "suspicion_", "noise_transition_")


class Persistent:
    """An estimator that can be written to one safetensors file, which runs no code when loaded."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted estimator; a LabelCleaner only without an `estimator` of its own.

        Raises:
            ConfigError: JSON cannot hold a parameter or class, or it has somebody else's estimator.
            OutputError: The file cannot be written.
        """
        _write(path, *(_cleaner_parts if _cleans(self) else _classifier_parts)(self))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote.

        Raises:
            DataError: The file is not such a file.
        """
        facts, tensors = _read(path, cls)
        restore = _restore_cleaner if _cleans(cls) else _restore_classifier
        restored: Self = restore(cls, facts, tensors)
        return restored


def _cleans(estimator: object) -> bool:
    return hasattr(estimator, "fit_resample")


def _cleaner_parts(cleaner: Any) -> Parts:
    check_is_fitted(cleaner, "estimator_")
    if cleaner.estimator is not None:
        raise ConfigError(
            f"a LabelCleaner of {type(cleaner.estimator).__name__} cannot be saved without pickle; "
            "save its issues_ as a table, and estimator_ by its own means."
        )
    inner, tensors = _classifier_parts(cleaner.estimator_)
    facts = _common(cleaner)
    classes, table = cleaner.classes_, cleaner.issues_
    facts |= {
        "model": inner,
        "noise_rate": cleaner.noise_rate_,
        "interval": list(cleaner.noise_rate_interval_),
        "notes": list(cleaner.notes_),
        "columns": list(table.columns),
    }
    tensors = {f"model.{name}": value for name, value in tensors.items()}
    for name in _CLEANED:
        tensors[name] = torch.from_numpy(np.array(getattr(cleaner, name)))
    for name in ("suggested_labels_", "corrected_labels_"):
        facts[name] = _as_json(getattr(cleaner, name))
    for name in table.columns:
        values = table[name].cat.codes if name == "action" else table[name]
        array = np.asarray(values)
        if name in ("label_given", "label_suggested"):
            array = np.searchsorted(classes, array)
        tensors[f"issues.{name}"] = torch.from_numpy(np.array(array))
    return facts, tensors


def _restore_cleaner(
    kind: type, facts: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]
) -> Any:
    from labelclean.estimators.robust import RobustClassifier  # noqa: PLC0415

    cleaner = kind(**facts["params"])
    _restore_common(cleaner, facts)
    inner = {n.removeprefix("model."): t for n, t in tensors.items() if n.startswith("model.")}
    cleaner.estimator_ = _restore_classifier(RobustClassifier, facts["model"], inner)
    for name in _CLEANED:
        setattr(cleaner, name, tensors[name].numpy())
    for name in ("suggested_labels_", "corrected_labels_"):
        setattr(cleaner, name, _from_json(facts[name]))
    cleaner.noise_rate_, cleaner.noise_rate_interval_ = (
        facts["noise_rate"],
        tuple(facts["interval"]),
    )
    cleaner.notes_ = tuple(facts["notes"])
    cleaner.issues_ = _table(facts, tensors, cleaner.classes_)
    return cleaner


def _table(
    facts: Mapping[str, Any], tensors: Mapping[str, torch.Tensor], classes: NDArray[Any]
) -> "pd.DataFrame":
    import pandas as pd  # noqa: PLC0415

    columns: dict[str, Any] = {}
    for name in facts["columns"]:
        values = tensors[f"issues.{name}"].numpy()
        if name == "action":
            columns[name] = pd.Categorical.from_codes(values, categories=pd.Index(VERDICTS))
        else:
            columns[name] = classes[values] if name in _CODED else values
    table = pd.DataFrame(columns)
    rate = facts["noise_rate"]
    table.attrs = {
        "noise_rate": None if np.isnan(rate) else rate,
        "noise_rate_interval": list(facts["interval"]),
        "notes": list(facts["notes"]),
    }
    return table


def _classifier_parts(estimator: Any) -> Parts:
    check_is_fitted(estimator)
    facts = _common(estimator) | {"model": estimator.model_.facts()}
    return facts, estimator.model_.tensors()


def _restore_classifier(
    kind: type, facts: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]
) -> Any:
    estimator = kind(**facts["params"])
    _restore_common(estimator, facts)
    if facts["model"]["kind"] == "features":
        estimator.model_ = FeatureModel.restore(facts["model"], tensors)
    else:
        from labelclean.estimators.pictures import PictureModel  # noqa: PLC0415

        estimator.model_ = PictureModel.restore(facts["model"], tensors)
    estimator._n_features_out = estimator.model_.width
    return estimator


def _common(estimator: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "estimator": type(estimator).__name__,
        "version": __version__,
        "params": estimator.get_params(deep=False),
        "classes": _as_json(estimator.classes_),
    }
    if hasattr(estimator, "n_features_in_"):
        facts["n_features_in"] = estimator.n_features_in_
    if hasattr(estimator, "feature_names_in_"):
        facts["feature_names_in"] = list(estimator.feature_names_in_)
    return facts


def _restore_common(estimator: Any, facts: Mapping[str, Any]) -> None:
    estimator.classes_ = _from_json(facts["classes"])
    if "n_features_in" in facts:
        estimator.n_features_in_ = facts["n_features_in"]
    if "feature_names_in" in facts:
        estimator.feature_names_in_ = np.array(facts["feature_names_in"], dtype=object)


def _as_json(values: NDArray[Any]) -> dict[str, Any]:
    return {"type": values.dtype.str, "values": values.tolist()}


def _from_json(known: Mapping[str, Any]) -> NDArray[Any]:
    return np.array(known["values"], dtype=np.dtype(known["type"]))


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray | torch.Tensor | np.generic):
        return value.tolist()
    raise ConfigError(
        f"{value!r} ({type(value).__name__}) cannot be written as JSON; a saved estimator may "
        "have numbers, texts and lists as parameters and classes (random_state: a whole number)."
    )


def _write(
    path: str | PathLike[str], facts: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]
) -> None:
    header = {_HEADER: json.dumps(facts, default=_plain)}
    held = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    try:
        write_bytes(Path(path), save(held, metadata=header))
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}.") from error


def _read(path: str | PathLike[str], kind: type) -> Parts:
    try:
        with safe_open(Path(path), framework="pt") as file:
            header = (file.metadata() or {}).get(_HEADER, "{}")
            facts: dict[str, Any] = json.loads(header)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, ValueError) as error:
        raise DataError(f"{path} is no saved estimator: {error}.") from error
    if facts.get("estimator") != kind.__name__:
        raise DataError(
            f"{path} holds {facts.get('estimator', 'no estimator')}, not {kind.__name__}."
        )
    return facts, tensors
