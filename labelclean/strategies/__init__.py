"""Training strategies: which rows count, with which targets, and how networks help each other."""

from labelclean.catalogue import Catalogue
from labelclean.strategies.base import (
    ROW_INPUTS,
    ROW_TARGETS,
    ROW_WEIGHTS,
    EpochPlan,
    Feed,
    Plain,
    Setting,
    Step,
    Strategy,
    Turn,
    Verdict,
    given_label_loss,
)
from labelclean.strategies.bilevel import Bilevel
from labelclean.strategies.co_teaching import CoTeaching
from labelclean.strategies.compatible import (
    PLAIN_STRATEGY,
    require_companions,
    require_setting,
)
from labelclean.strategies.d2l import D2L
from labelclean.strategies.dividemix import DivideMix
from labelclean.strategies.elr_plus import ElrPlus
from labelclean.strategies.joint import Joint
from labelclean.strategies.mixup import Mixup
from labelclean.strategies.self_paced import MentornetPd, SelfPaced

STRATEGIES: Catalogue[Strategy] = Catalogue(
    "strategy",
    {
        "plain": Plain,
        "self_paced": SelfPaced,
        "mentornet_pd": MentornetPd,
        "mixup": Mixup,
        "bilevel": Bilevel,
        "co_teaching": CoTeaching,
        "joint": Joint,
        "d2l": D2L,
        "dividemix": DivideMix,
        "elr_plus": ElrPlus,
    },
)
build_strategy = STRATEGIES.build

__all__ = [
    "PLAIN_STRATEGY",
    "ROW_INPUTS",
    "ROW_TARGETS",
    "ROW_WEIGHTS",
    "STRATEGIES",
    "EpochPlan",
    "Feed",
    "Plain",
    "Setting",
    "Step",
    "Strategy",
    "Turn",
    "Verdict",
    "build_strategy",
    "given_label_loss",
    "require_companions",
    "require_setting",
]
