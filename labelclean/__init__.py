"""Find and repair wrong labels in image data sets.

The public names below are loaded when first asked for, so that `import labelclean` and
`labelclean --help` cost nothing.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labelclean import losses as losses
    from labelclean.data.manifest import Manifest as Manifest
    from labelclean.data.read import read_manifest as read_manifest
    from labelclean.data.write import write_manifest as write_manifest
    from labelclean.estimators.cleaner import LabelCleaner as LabelCleaner
    from labelclean.estimators.robust import RobustClassifier as RobustClassifier
    from labelclean.workflows.find import find_label_issues as find_label_issues
    from labelclean.workflows.notebook import audit as audit
    from labelclean.workflows.notebook import open_run as open_run

__version__ = "0.1.0"

_HOMES = {
    "LabelCleaner": "labelclean.estimators.cleaner",
    "Manifest": "labelclean.data.manifest",
    "RobustClassifier": "labelclean.estimators.robust",
    "audit": "labelclean.workflows.notebook",
    "find_label_issues": "labelclean.workflows.find",
    "open_run": "labelclean.workflows.notebook",
    "read_manifest": "labelclean.data.read",
    "write_manifest": "labelclean.data.write",
}
_ROOMS: frozenset[str] = frozenset({"losses"})

__all__ = [
    "LabelCleaner",
    "Manifest",
    "RobustClassifier",
    "__version__",
    "audit",
    "find_label_issues",
    "losses",
    "open_run",
    "read_manifest",
    "write_manifest",
]


def __getattr__(name: str) -> object:
    if name in _ROOMS:
        return importlib.import_module(f"labelclean.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'labelclean' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
