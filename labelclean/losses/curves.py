"""The weight curve of a loss, drawn beside the losses it is compared with."""

import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

from labelclean.errors import ConfigError
from labelclean.losses import LOSSES, build
from labelclean.losses.base import RobustLoss

COMPANIONS = ("cce", "mae", "gce")
_POINTS = 1001


def weight_curve(name: str, loss: RobustLoss) -> tuple[Tensor, Tensor]:
    """Give p and the loss's weight at it, (1001,) float64 each.

    Raises:
        ConfigError: The weight of this loss is no function of p(y|x) alone.
    """
    p = torch.linspace(0, 1, _POINTS, dtype=torch.float64)
    weight = loss.weight(p)
    if weight is None:
        known = [other for other in LOSSES if build(other).weight(p) is not None]
        raise ConfigError(
            f"loss {name!r} has no weight curve: its gradient depends on more than p(y|x). "
            f"Losses with one: {', '.join(known)}."
        )
    return p, weight


def weight_figure(name: str, loss: RobustLoss, settings: str = "") -> Figure:
    """Draw the weight of a loss against p(y|x) beside CCE, MAE and GCE, as the papers' Figure 1.

    Args:
        name: The loss's name.
        loss: The loss.
        settings: Its parameters, for the legend.
    """
    figure = Figure(figsize=(6.4, 5.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for other in COMPANIONS:
        if other != name:
            axes.plot(*weight_curve(other, build(other)), label=other, linewidth=1.2, alpha=0.8)
    p, weight = weight_curve(name, loss)
    legend = f"{name} ({settings})" if settings else name
    (line,) = axes.plot(p, weight, label=legend, linewidth=2.4, color="black")
    focus = loss.focus()
    if focus is not None:
        axes.axvline(focus, color=line.get_color(), linestyle=":", label=f"focus {focus:.3g}")
    axes.set(
        xlabel="p(y|x), the model's belief in the given label",
        ylabel="weight, L1 norm of the logit gradient",
        xlim=(0, 1),
        ylim=(0, None),
        title="How much a sample moves the model",
    )
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure
