"""Named families (losses, scorers, ...): one explicit list each, with errors that help."""

import difflib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from labelclean.errors import ConfigError, shortlist

T = TypeVar("T")


def nearest_name(name: str, known: Iterable[str]) -> str:
    """Give ' Did you mean X?' for a close known name, or an empty text."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.6)
    return f" Did you mean {by_lower[close[0]]!r}?" if close else ""


def unknown_name(kind: str, name: str, known: Iterable[str], hint: str = "") -> ConfigError:
    """Describe an unknown name with the nearest known one and the whole list."""
    names = sorted(known)
    return ConfigError(
        f"unknown {kind} {name!r}.{nearest_name(name, names)} Known: {shortlist(names, 40)}."
        f"{hint and ' '}{hint}"
    )


class Catalogue(Mapping[str, Callable[..., T]], Generic[T]):
    """A named family; the only list of its members.

    Args:
        kind: What a member is called in messages, for example "loss".
        members: Name to class or factory; its keyword parameters are the member's parameters.
        hint: What to know beside the list when a name is not known.
    """

    def __init__(self, kind: str, members: Mapping[str, Callable[..., T]], hint: str = "") -> None:
        self.kind, self.hint = kind, hint
        self._members = dict(members)
        self.shipped = frozenset(members)

    def __getitem__(self, name: str) -> Callable[..., T]:
        if name not in self._members:
            # Mapping's `in` and `get` catch KeyError, so a plain lookup stays a mapping;
            # the helpful message is for build() and find().
            raise KeyError(name)
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def add(self, name: str, member: Callable[..., T]) -> None:
        """Add a member of the user's own, for this process; one of that name is replaced.

        Raises:
            ConfigError: A member that comes with the package has this name.
        """
        if name in self.shipped:
            raise ConfigError(f"the {self.kind} {name!r} comes with labelclean; give another name.")
        self._members[name] = member

    def find(self, name: str) -> Callable[..., T]:
        """Give the member called `name`, or raise ConfigError with the nearest name."""
        if name not in self._members:
            raise unknown_name(self.kind, name, self._members, self.hint)
        return self._members[name]

    def parameters(self, name: str) -> dict[str, object]:
        """Give the member's parameters and defaults; a required one has inspect.Parameter.empty."""
        signature = inspect.signature(self.find(name))
        return {key: parameter.default for key, parameter in signature.parameters.items()}

    def build(self, name: str, **params: object) -> T:
        """Build the member called `name`; unknown names and parameters raise ConfigError."""
        member, known = self.find(name), self.parameters(name)
        for key in params:
            if key not in known:
                accepted = ", ".join(known) or "none"
                raise ConfigError(
                    f"{self.kind} {name!r} has no parameter {key!r}.{nearest_name(key, known)} "
                    f"It accepts: {accepted}."
                )
        missing = [
            key
            for key, default in known.items()
            if default is inspect.Parameter.empty and key not in params
        ]
        if missing:
            raise ConfigError(f"{self.kind} {name!r} needs a value for {', '.join(missing)}.")
        return member(**params)

    def describe(self) -> list[tuple[str, str]]:
        """List (name, first line of the docstring) of every member."""
        return [
            (name, (inspect.getdoc(member) or "").split("\n")[0])
            for name, member in self._members.items()
        ]
