"""Noise-robust losses: every one an nn.Module that answers per sample, all in one catalogue."""

from functools import partial

from labelclean.catalogue import Catalogue
from labelclean.losses.active import NceMae, NceRce, Sce
from labelclean.losses.attention import Nal
from labelclean.losses.base import RobustLoss
from labelclean.losses.corrected import Adaptation, Backward, Forward
from labelclean.losses.determinant import Dmi
from labelclean.losses.divergence import Js
from labelclean.losses.early_learning import Elr, Selc
from labelclean.losses.focal import Focal
from labelclean.losses.own import add_loss, own_loss_name, probe_loss
from labelclean.losses.plain import Cce, Mae, Mse
from labelclean.losses.power import Gce, GceTruncated
from labelclean.losses.rescaled import Gr, Imae
from labelclean.losses.softened import BootstrapHard, BootstrapSoft, LabelSmoothing

LOSSES: Catalogue[RobustLoss] = Catalogue(
    "loss",
    {
        "cce": Cce,
        "mae": Mae,
        "mse": Mse,
        "imae": Imae,
        "gr": Gr,
        "gce": Gce,
        "gce_truncated": GceTruncated,
        "sce": Sce,
        "dmi": Dmi,
        "nal": Nal,
        "label_smoothing": LabelSmoothing,
        "bootstrap_soft": BootstrapSoft,
        "bootstrap_hard": BootstrapHard,
        "forward": Forward,
        "backward": Backward,
        "adaptation": Adaptation,
        "focal": Focal,
        "elr": Elr,
        "selc": Selc,
        "nce_rce": NceRce,
        "nce_mae": NceMae,
        "js": Js,
    },
    hint="A loss of your own is named with --loss package.module:Class, or registered with "
    "losses.register; a recipe or a stored run never loads code.",
)
build = LOSSES.build
register = partial(add_loss, LOSSES)
"""Add a class of your own by name: register(name, cls)."""
loss_name = partial(own_loss_name, LOSSES)
"""Give the name of a loss that a person asked for, in any form."""

__all__ = ["LOSSES", "RobustLoss", "build", "loss_name", "probe_loss", "register"]
