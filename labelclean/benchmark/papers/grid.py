"""The grid of an experiment: which cells there are, and what one is called."""

from collections.abc import Sequence
from dataclasses import dataclass

from labelclean.benchmark.injection import check_fraction
from labelclean.errors import ConfigError
from labelclean.recipe import Recipe, change_recipe

NOISE_KINDS = ("symmetric", "asymmetric", "pairflip")
GIVEN = "given"


@dataclass(frozen=True, slots=True)
class Cell:
    """One training: a loss, a noise and a seed.

    Args:
        loss: "name" or "name:parameter=value:..."; "@" and the same of a strategy may follow.
        noise: "kind:rate" or "kind:rate:variant"; GIVEN for labels that are noisy as they are.
        seed: Of the noise, the network's first weights and every other draw.
    """

    loss: str
    noise: str
    seed: int

    @property
    def name(self) -> str:
        """What its files are called, on any system."""
        return f"{self.loss}__{self.noise}__{self.seed}".replace(":", "-")

    def recipe(self, base: Recipe) -> Recipe:
        """Put the cell's loss, and its strategy where it names one, over a recipe."""
        loss, _, strategy = self.loss.partition("@")
        chosen = (("loss", loss), ("strategy", strategy))
        return change_recipe(base, [line for pair in chosen for line in _member_settings(*pair)])


@dataclass(frozen=True, slots=True)
class Noise:
    """Noise to plant.

    Args:
        kind: One of KINDS.
        rate: Probability of a flip.
        variant: Of the kind; None: its own.
    """

    kind: str
    rate: float
    variant: str | None


def parse_noise(text: str) -> Noise | None:
    """Read "kind:rate[:variant]"; None for labels that are taken as they are.

    Raises:
        ConfigError: It is something else.
    """
    if text == GIVEN:
        return None
    kind, _, rest = text.partition(":")
    rate, _, variant = rest.partition(":")
    if kind not in NOISE_KINDS or not rate:
        raise ConfigError(
            f"--noise {text!r} is not of the form kind:rate with a kind of "
            f"{', '.join(NOISE_KINDS)}, for "
            "example symmetric:0.4. Plant other noise with `labelclean inject` and name its column "
            "with --labels."
        )
    try:
        share = float(rate)
    except ValueError as error:
        raise ConfigError(f"--noise {text!r}: the rate {rate!r} is no number.") from error
    return Noise(kind, check_fraction("rate", share), variant or None)


def _member_settings(section: str, text: str) -> list[str]:
    """Give overrides that choose "name:parameter=value:..." in a section; none for no text."""
    if not text:
        return []
    name, *params = text.split(":")
    return [f"{section}.name={name}", *(f"{section}.{param}" for param in params)]


def all_cells(losses: Sequence[str], noises: Sequence[str], seeds: Sequence[int]) -> list[Cell]:
    """Give the cells seed by seed, so that a grid that is cut short has every loss and noise."""
    cells = [Cell(loss, noise, seed) for seed in seeds for noise in noises for loss in losses]
    names = [cell.name for cell in cells]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"these cells are named twice: {', '.join(twice)}.")
    return cells


def listed(text: str) -> list[str]:
    """Split a list of names at its commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def seeds_of(text: str) -> list[int]:
    """Read a list of seeds.

    Raises:
        ConfigError: One is no whole number of 0 or more.
    """
    wrong = [part for part in listed(text) if not part.isdecimal()]
    if wrong or not listed(text):
        raise ConfigError(f"--seeds {text!r}: give whole numbers of 0 or more, such as 0,1,2.")
    return [int(part) for part in listed(text)]
