"""Confusion and transition matrices, as tables and as pictures."""

import io
import warnings

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labelclean.data.manifest import Label
from labelclean.data.textfiles import format_text_table

LABELLED = 30  # above so many classes a picture has no room for their names
NUMBERED = 15


def confusion(rows: NDArray[np.int64], columns: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Count pairs: (C, C), rows the first labels, columns the second."""
    counts = np.bincount(rows * size + columns, minlength=size * size)
    return counts.reshape(size, size)


def matrix_csv(matrix: NDArray[np.generic], classes: tuple[Label, ...], corner: str) -> bytes:
    """Format a matrix as formula-safe CSV with class names as headers; `corner` names the axes."""
    names = [str(name) for name in classes]
    columns = [pa.array(names, pa.string()), *(pa.array(column) for column in matrix.T)]
    return format_text_table(pa.table(columns, names=[corner, *names]), ",", raw=False)


def matrix_png(
    matrix: NDArray[np.generic], classes: tuple[Label, ...], *, title: str, rows: str, columns: str
) -> bytes:
    """Draw a matrix as a heat map; each row's colours show its shares."""
    # Late: reading a run needs no pictures of matrices, and these take half a second to import.
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    size = len(classes)
    values = matrix.astype(np.float64)
    shares = values / np.maximum(values.sum(axis=1, keepdims=True), 1e-12)
    side = min(4.0 + 0.45 * min(size, LABELLED), 18.0)
    figure = Figure(figsize=(side, side), layout="constrained")
    axes = figure.add_subplot()
    shown = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    axes.set(title=title, xlabel=columns, ylabel=rows)
    if size <= LABELLED:
        # A name is text, never a formula for matplotlib to set.
        names = [_short(str(name)).replace("$", r"\$") for name in classes]
        axes.set_xticks(range(size), names, rotation=45, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(size), names)
    if size <= NUMBERED:
        for (row, column), value in np.ndenumerate(values):
            if value > 0:
                text = f"{value:.0f}" if np.issubdtype(matrix.dtype, np.integer) else f"{value:.2f}"
                ink = "white" if shares[row, column] > 0.5 else "black"
                axes.text(column, row, text, ha="center", va="center", color=ink, fontsize=8)
    figure.colorbar(shown, ax=axes, shrink=0.8, label="share of the row")
    buffer = io.BytesIO()
    FigureCanvasAgg(figure)
    with warnings.catch_warnings():
        # A letter the font lacks is drawn as a box; the .csv has it as it is.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _short(name: str) -> str:
    printable = "".join(letter if letter.isprintable() else "?" for letter in name)
    return printable if len(printable) <= 20 else f"{printable[:19]}…"
