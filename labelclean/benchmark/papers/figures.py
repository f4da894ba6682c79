"""The papers' figures, from finished cells."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from labelclean import losses
from labelclean.atomic import atomic_path, write_bytes
from labelclean.benchmark.papers.cell import TRAINING_STAGES
from labelclean.benchmark.papers.grid import Cell
from labelclean.benchmark.papers.store import Store
from labelclean.data.manifest import Label
from labelclean.losses.curves import weight_curve
from labelclean.outputs.matrices import confusion, matrix_png

FIGURES = "figures"
CURVES = {
    "test_accuracy": "test accuracy",
    "noisy_fit": "wrong labels fitted",
    "clean_fit": "right labels fitted",
}
_WEIGHTS: Mapping[str, Sequence[tuple[str, dict[str, object]]]] = {
    "weights_imae": [
        ("cce", {}), ("mae", {}), ("gce", {}), ("imae", {"T": 0.5}), ("imae", {"T": 8.0}),
    ],
    "weights_gr": [
        ("cce", {}), ("mae", {}), ("gr", {"beta": 2.0, "lam": 0.0}),
        ("gr", {"beta": 8.0, "lam": 0.5}), ("gr", {"beta": 16.0, "lam": 1.0}),
        ("gr", {"beta": 12.0, "lam": 2.0}),
    ],
}  # fmt: skip
"""What the weight figures show: IMAE figure 1, GR figure 1."""


def draw_figures(store: Store, classes: tuple[Label, ...]) -> list[Path]:
    """Draw all figures the finished cells allow for.

    Accuracy over the epochs (IMAE figure 4), tau in three stages (NAL figures 11 to 13), given and
    corrected labels against the true ones (NAL figures 1 to 6), weight curves (figure 1 of IMAE
    and GR).

    Args:
        store: The experiment.
        classes: Names of the classes.

    Returns:
        The files.
    """
    folder = store.folder / FIGURES
    found = store.everything()
    drawn = [_weights(folder, name) for name in _WEIGHTS]
    for noise in sorted({cell.noise for cell, _ in found}):
        some = [(cell, content) for cell, content in found if cell.noise == noise]
        drawn.append(_accuracy(folder, noise, some))
    first: dict[tuple[str, str], Cell] = {}
    for cell, _ in found:
        first.setdefault((cell.loss, cell.noise), cell)
    for cell in first.values():
        drawn += _of_cell(folder, store, cell, classes)
    return drawn


def _accuracy(folder: Path, noise: str, found: Sequence[tuple[Cell, dict[str, Any]]]) -> Path:
    """Draw the mean over the seeds of every loss, one panel per kind of accuracy."""
    shown = [name for name in CURVES if any(content["curves"].get(name) for _, content in found)]

    def draw(axes: Sequence[Axes]) -> None:
        for name, panel in zip(shown, axes, strict=True):
            for loss in sorted({cell.loss for cell, _ in found}):
                lines = [c["curves"][name] for cell, c in found if cell.loss == loss]
                length = min(len(line) for line in lines)
                mean = np.mean([line[:length] for line in lines], axis=0)
                panel.plot(np.arange(1, length + 1), mean, label=loss, linewidth=1.3)
            panel.set(title=CURVES[name], xlabel="epoch", ylim=(0, 1))
        axes[0].legend(fontsize=7)

    return _figure(folder / f"accuracy_{_slug(noise)}.png", noise, len(shown), draw)


def _of_cell(folder: Path, store: Store, cell: Cell, classes: tuple[Label, ...]) -> list[Path]:
    table = store.samples(cell)
    known = ~np.isnan(table["true"].to_numpy().astype(np.float64))
    true = np.nan_to_num(table["true"].to_numpy()[known]).astype(np.int64)
    inside = true >= 0
    drawn = []
    for name in ("given", "corrected"):
        label = table[name].to_numpy()[known]
        path = folder / f"confusion_{cell.name}_{name}.png"
        counts = confusion(true[inside], label[inside], len(classes))
        title = f"{cell.loss}, {cell.noise}"
        write_bytes(path, matrix_png(counts, classes, title=title, rows="true", columns=name))
        drawn.append(path)
    wrong = table["given"].to_numpy()[known] != true
    if f"attention_{TRAINING_STAGES[0]}" in table.column_names:
        stages = {stage: table[f"attention_{stage}"].to_numpy()[known] for stage in TRAINING_STAGES}
        drawn.append(_attention(folder / f"attention_{cell.name}.png", cell, stages, wrong))
    return drawn


def _attention(
    path: Path, cell: Cell, stages: Mapping[str, NDArray[np.float32]], wrong: NDArray[np.bool_]
) -> Path:
    def draw(axes: Sequence[Axes]) -> None:
        for (stage, tau), panel in zip(stages.items(), axes, strict=True):
            edges = np.linspace(float(tau.min()), float(tau.max()) + 1e-6, 41)
            for name, rows in (("right label", ~wrong), ("wrong label", wrong)):
                panel.hist(tau[rows], bins=list(edges), alpha=0.6, label=name)
            panel.set(title=stage, xlabel="attention tau")
        axes[0].legend(fontsize=7)

    return _figure(path, f"{cell.loss}, {cell.noise}", len(stages), draw)


def _weights(folder: Path, name: str) -> Path:
    def draw(axes: Sequence[Axes]) -> None:
        for loss, params in _WEIGHTS[name]:
            words = ", ".join(f"{key}={value}" for key, value in params.items())
            p, weight = weight_curve(loss, losses.build(loss, **params))
            axes[0].plot(p, weight, label=f"{loss} {words}".strip())
        axes[0].set(xlabel="p(y|x)", ylabel="weight", xlim=(0, 1), yscale="log", ylim=(0.05, None))
        axes[0].legend(fontsize=7)

    return _figure(folder / f"{name}.png", "How much a sample moves the model", 1, draw)


def _figure(path: Path, title: str, panels: int, draw: Callable[[Sequence[Axes]], None]) -> Path:
    figure = Figure(figsize=(1.0 + 4.0 * panels, 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    draw([figure.add_subplot(1, panels, at + 1) for at in range(panels)])
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=120, metadata={"Software": None})
    return path


def _slug(text: str) -> str:
    return text.replace(":", "-")
