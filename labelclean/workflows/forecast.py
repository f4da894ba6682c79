"""What an audit spends beside features and training: evidence, judging and writing."""

from dataclasses import dataclass

from labelclean.calibration.constants import judge_constants
from labelclean.evidence.features import TRIAL_EPOCHS
from labelclean.evidence.folds import enough_rows
from labelclean.evidence.neighbours import EXACT_ROWS
from labelclean.training.cost import (
    NUMBER,
    STEP,
    WEIGHT,
    head_epoch_seconds,
    multiply_seconds,
)
from labelclean.training.settings import TrainSettings, head_batch_size

_PAIR = 6e-9  # seconds to sort one similarity
_DECOMPOSED = 4.0  # multiply-adds of a symmetric eigenproblem of N numbers, over N cubed
_READ = 6000  # rows near enough to be looked at where not all are
_WRITTEN = 1.5  # seconds for matrices, report and model of any run
_WRITTEN_ROW = 1.5e-4


@dataclass(frozen=True, slots=True)
class EvidenceLoad:
    """What evidence on frozen features is asked for.

    Args:
        rows: N, rows to judge.
        width: D, features of a row.
        classes: C.
        trials: Losses that are tried on planted errors.
    """

    rows: int
    width: int
    classes: int
    trials: int


def evidence_seconds(load: EvidenceLoad) -> float:
    """Guess the seconds until the sources on frozen features have spoken, on one thread."""
    known, single = judge_constants(), multiply_seconds()
    n, d, c = load.rows, load.width, load.classes
    m = min(known.components, n, d)
    double = 2 * single
    near = min(n, EXACT_ROWS if n <= EXACT_ROWS else _READ)
    components = n * d * (d + m) * single + _DECOMPOSED * d**3 * double
    neighbours = n * near * (min(m, known.near_components) * single + _PAIR)
    heads = (known.folds + 1) * c
    seen = min(n, enough_rows(c))
    steps = known.head_epochs * -(-seen // head_batch_size(n, whole=int))
    trained = steps * (STEP + d * heads * WEIGHT)
    trained += 4 * known.head_epochs * seen * d * heads * single
    trained += known.head_epochs * seen * heads * 3 * NUMBER
    some = min(n, 8192)
    choice = len(known.shrinkages)
    analysed = (n * 3 + some * (2 + choice)) * m * m * double
    analysed += (known.discriminant_folds + known.folds * choice) * m**3 / 3 * double
    weighed = known.scales * (2 * n + choice * some) * c * NUMBER
    weighed += 400 * n * c * NUMBER
    own = TrainSettings().resolved("head", n).epochs or 1
    tried = (TRIAL_EPOCHS * (load.trials + 1) + own) * head_epoch_seconds(n, m, c)
    return components + neighbours + trained + analysed + weighed + tried


def written_seconds(rows: int) -> float:
    """Guess the seconds until a run that was observed is judged and written."""
    return _WRITTEN + _WRITTEN_ROW * rows
