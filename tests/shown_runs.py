"""A finished run for the page: pictures, features, the truth, and names that want to be markup."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image, PngImagePlugin

from planted import command

CLASSES = (
    "<script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=2">',
    "\u202egnp.exe \u200f'quoted' & {{ 7*7 }} </script><!--",
    "../../../etc/passwd",
    "x" * 300,
)
HOSTILE = ("<b>bold", "'\u202egpj\"", "y" * 240)
ROWS, WRONG = 300, 45
COMMENT = "where the picture was taken"


@dataclass(frozen=True)
class Shown:
    """Where the run is, and the truth about it."""

    folder: Path
    run: Path
    given: np.ndarray
    true: np.ndarray

    @property
    def report(self) -> str:
        return (self.run / "report.html").as_uri()


def write_shown(folder: Path, classes: tuple[str, ...] = CLASSES, *flags: object) -> Shown:
    """Write and audit small pictures whose features, labels and truth are known."""
    rng = np.random.default_rng(3)
    size = len(classes)
    true = rng.integers(0, size, ROWS)
    given = true.copy()
    given[:WRONG] = (given[:WRONG] + rng.integers(1, size, WRONG)) % size
    (folder / "images").mkdir(parents=True)
    paths = [f"images/{row}.png" for row in range(ROWS)]
    for row in range(WRONG):
        paths[row] = f"images/{HOSTILE[row % 3]}{row}.png"
    note = PngImagePlugin.PngInfo()
    note.add_text("Comment", COMMENT)
    for row, path in enumerate(paths):
        pixels = np.full((40, 48, 3), 30 + 40 * (true[row] % 5), np.uint8)
        pixels[8:30, 8 : 12 + 5 * (true[row] % 6)] = rng.integers(120, 255, 3)
        Image.fromarray(pixels).save(folder / path, pnginfo=note)
    names = np.array(classes, dtype=object)
    identity = [f"s{row}" for row in range(ROWS)]
    identity[:WRONG] = [f"../../../etc/shadow<script>window.hacked={row}" for row in range(WRONG)]
    frame = pd.DataFrame({"image": paths, "label": names[given], "sample_id": identity})
    frame["true_label"] = names[true]
    frame.to_parquet(folder / "data <i>set.parquet")
    features = 6 * np.eye(size, size + 3)[true] + rng.normal(0, 1, (ROWS, size + 3))
    np.save(folder / "features.npy", features.astype(np.float32))
    run = folder / "run"
    done = command(
        "audit", folder / "data <i>set.parquet", "--features", folder / "features.npy",
        "--out", run, "--epochs", 4, "--loss", "gce", "--truth-col", "true_label",
        "--threads", 1, "--set", "correction.relabel_precision=0.998", *flags,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return Shown(folder, run, given, true)
