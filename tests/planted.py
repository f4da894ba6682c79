"""A data set with planted errors and the probabilities of a model: audited in a moment."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from click.testing import CliRunner, Result

from labelclean.cli import cli

NAMES = ("ant", "bee", "cat")
ROWS = 400
PLANTED = 40


@dataclass(frozen=True)
class Planted:
    """Where it is, and the truth about it."""

    table: Path
    probs: Path
    features: Path
    given: np.ndarray
    true: np.ndarray

    @property
    def wrong(self) -> np.ndarray:
        return self.given != self.true


def command(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def opinions(true: np.ndarray, size: int, seed: int = 0) -> np.ndarray:
    """Probabilities of a model that is nearly always right and seldom quite sure."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1, (len(true), size))
    logits[np.arange(len(true)), true] += 4.5
    probs = np.exp(logits)
    return probs / probs.sum(axis=1, keepdims=True)


def plant(folder: Path, rows: int = ROWS, planted: int = PLANTED) -> Planted:
    """Write data.csv (no pictures), probs.npy and features.npy; the first rows are wrong."""
    rng = np.random.default_rng(1)
    true = rng.integers(0, len(NAMES), rows)
    given = true.copy()
    given[:planted] = (given[:planted] + rng.integers(1, len(NAMES), planted)) % len(NAMES)
    names = np.array(NAMES)
    folder.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(
        {
            "sample_id": [f"s{row}" for row in range(rows)],
            "label": names[given],
            "note": [f"x{row}" for row in range(rows)],
            "true_label": names[true],
        }
    ).to_csv(folder / "data.csv", index=False)
    np.save(folder / "probs.npy", opinions(true, len(NAMES)).astype(np.float32))
    centres = 3 * np.eye(len(NAMES), 8)
    features = centres[true] + rng.normal(0, 1, (rows, 8))
    np.save(folder / "features.npy", features.astype(np.float32))
    return Planted(folder / "data.csv", folder / "probs.npy", folder / "features.npy", given, true)


def audit_probs(data: Planted, out: Path, *flags: object) -> Path:
    """Audit it without training."""
    done = command("audit", data.table, "--pred-probs", data.probs, "--out", out, *flags)
    assert done.exit_code == 0, done.output
    return out
