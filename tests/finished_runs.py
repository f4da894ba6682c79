"""Small finished runs for tests of the commands that read one."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from click.testing import CliRunner, Result
from PIL import Image
from sklearn.datasets import load_digits

from labelclean.cli import cli
from labelclean.runs.digests import file_digests

ROWS, FLIPS, TEST = 120, 12, 90
NAMES = ("zero", "one", "two")


def call(*arguments: object, code: int = 0) -> Result:
    """Run a command and check its exit code."""
    result = CliRunner().invoke(cli, [*map(str, arguments), "--threads", "1"])
    assert result.exit_code == code, result.output
    return result


def restated(run: Path) -> Path:
    """State the digests of a run's files as they are now: an attacker would, too."""
    facts = json.loads((run / "run.json").read_bytes())
    facts["files"] = file_digests(run)
    (run / "run.json").write_text(json.dumps(facts))
    return run


def write_pictures(folder: Path) -> Path:
    """Write digits as 16-pixel pictures; rows 0 to 11 wrong, row 50 damaged, test from row 90."""
    digits = load_digits(n_class=3)
    true = digits.target[:ROWS]
    label = true.copy()
    label[:FLIPS] = (label[:FLIPS] + 1) % 3
    (folder / "images").mkdir(parents=True)
    for row in range(ROWS):
        pixels = Image.fromarray((digits.images[row] * 15.9).astype(np.uint8))
        pixels.resize((16, 16)).convert("RGB").save(folder / f"images/{row}.png")
    (folder / "images/50.png").write_bytes(b"damaged")
    names = np.array(NAMES)
    frame = pd.DataFrame(
        {
            "image": [f"images/{row}.png" for row in range(ROWS)],
            "label": names[label],
            "true": names[true],
            "split": np.where(np.arange(ROWS) < TEST, "train", "test"),
        }
    )
    frame.to_csv(folder / "digits.csv", index=False)
    return folder / "digits.csv"


def write_features(path: Path) -> Path:
    """Write the same digits as feature vectors, labels as integers; rows 0 to 39 are wrong."""
    digits = load_digits(n_class=3)
    label = digits.target.copy()
    label[:40] = (label[:40] + 1) % 3
    np.savez(path, X=digits.data.astype(np.float32), y=label, true=digits.target)
    return path


def small(cache: Path) -> tuple[str, ...]:
    """Flags of a tiny network on one process."""
    return (
        "--backbone", "test_resnet", "--set", "model.pretrained=false",
        "--set", "model.image_size=32", "--epochs", "2", "--loss", "cce",
        "--cache-dir", str(cache), "--workers", "1",
    )  # fmt: skip
