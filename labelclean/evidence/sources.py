"""The sources of evidence about a label: what each is, what it costs, whether it saw the label."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from labelclean.catalogue import unknown_name
from labelclean.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Source:
    """A source of class posteriors.

    Args:
        about: One line for people.
        cost: What it takes beside the features or the training.
        saw_label: Whether it was trained on the very label it speaks about.
    """

    about: str
    cost: str
    saw_label: bool


NETWORK = "network"

SOURCES: Mapping[str, Source] = MappingProxyType(
    {
        "heads": Source("noise-aware heads on frozen features, out of fold", "seconds", False),
        "discriminant": Source("discriminant analysis of frozen features, out of fold", "seconds",
                               False),
        "neighbours": Source("vote of the nearest rows in frozen features", "seconds", False),
        "cross_fitted": Source("p(y|x) of networks that each left rows out, of the one that left "
                               "this row out", "training.folds trainings", False),
        NETWORK: Source("suspicions of the trained network: p(y|x), margin, tau and target",
                          "a second training on labels with planted errors", True),
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class EvidenceSettings:
    """The [evidence] section of a recipe.

    Args:
        sources: Names of SOURCES that may speak; empty: all of them.
    """

    sources: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Refuse names that are no source, and a choice that leaves none that is held out."""
        for name in self.sources:
            if name not in SOURCES:
                raise unknown_name("source of evidence", name, SOURCES)
        if self.sources and all(SOURCES[name].saw_label for name in self.sources):
            raise ConfigError(
                "evidence.sources names only sources that saw the labels; add one that did not: "
                + ", ".join(name for name, source in SOURCES.items() if not source.saw_label)
                + "."
            )

    def asks(self, name: str) -> bool:
        """Whether a source may speak."""
        return not self.sources or name in self.sources
