"""Measure the judge: real probability files, the zoo, cleanlab beside it in the same run."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelclean.benchmark import metrics
from labelclean.benchmark.rivals import RivalAnswer, cleanlab_answer
from labelclean.benchmark.zoo import OVERCONFIDENT, ZooSet, add_noise, clean_cases, noisy_cases
from labelclean.errors import DataError
from labelclean.workflows.find import find_label_issues

STRONG = 0.10  # a model that disagrees with fewer labels than this counts as strong
RENOISED = ("sym-20", "pair-20", "inst-20", "inst-40")


@dataclass(frozen=True, slots=True)
class Result:
    """One case, one method; what only our method says has its default for the others."""

    case: str
    group: str
    method: str
    rows: int
    true_noise: float
    estimate: float
    f1: float
    best_f1: float
    ap: float
    flagged: float
    disagreement: float
    declined: bool = False
    inside: bool | None = None
    calibration: float | None = None
    relabelled: float | None = None
    relabelled_right: float | None = None


def measure_set(name: str, group: str, case: ZooSet, against: bool = True) -> Iterator[Result]:
    """Judge one case with our defaults, and with cleanlab and plain argmax beside."""
    wrong = case.label != case.true
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # weak and memorised models are in the zoo
        table = find_label_issues(case.label, case.probs)
    back = np.empty(len(table), dtype=np.int64)
    back[table["row"].to_numpy()] = np.arange(len(table))
    p_error = np.nan_to_num(table["p_error"].to_numpy()[back])
    action = np.asarray(table["action"])[back]
    relabelled = action == "relabel"
    right = table["label_suggested"].to_numpy()[back] == case.true
    low, high = table.attrs["noise_rate_interval"]
    ours = RivalAnswer(table["suspicion"].to_numpy()[back], action != "keep", float(p_error.mean()))
    noise = float(wrong.mean())
    apart = float(np.mean(case.probs.argmax(axis=1) != case.label))
    yield replace(
        _result((name, group, "labelclean"), wrong, ours, apart),
        declined=table.attrs["noise_rate"] is None,
        inside=bool(low <= noise <= high),
        calibration=metrics.calibration_error(wrong, p_error),
        relabelled=float(relabelled.mean()),
        relabelled_right=float(right[relabelled].mean()) if relabelled.any() else None,
    )
    if against:
        yield _result((name, group, "cleanlab"), wrong, _quiet(case), apart)
    given = case.probs[np.arange(len(wrong)), case.label]
    plain = RivalAnswer(1 - given, case.probs.argmax(axis=1) != case.label, apart)
    yield _result((name, group, "argmax"), wrong, plain, apart)


def _quiet(case: ZooSet) -> RivalAnswer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cleanlab_answer(case.label, case.probs)


def _result(
    who: tuple[str, str, str], wrong: NDArray[np.bool_], answer: RivalAnswer, apart: float
) -> Result:
    mixed = bool(wrong.any())
    return Result(
        *who,
        rows=len(wrong),
        true_noise=float(wrong.mean()),
        estimate=answer.noise_rate,
        f1=metrics.f1(wrong, answer.flagged) if mixed else float("nan"),
        best_f1=metrics.best_f1(wrong, answer.suspicion) if mixed else float("nan"),
        ap=metrics.average_precision(wrong, answer.suspicion),
        flagged=float(answer.flagged.mean()),
        disagreement=apart,
    )


def read_files(folder: Path) -> dict[str, ZooSet]:
    """Read every .npz of a folder: arrays pred_probs (N, C), labels (N,), true_labels (N,).

    Raises:
        DataError: There is no such file, or one lacks an array.
    """
    found = sorted(folder.glob("*.npz"))
    if not found:
        raise DataError(f"no .npz file in {folder}; expected pred_probs, labels and true_labels.")
    cases = {}
    for path in found:
        with np.load(path, allow_pickle=False) as held:
            missing = {"pred_probs", "labels", "true_labels"} - set(held.files)
            if missing:
                raise DataError(f"{path} lacks {', '.join(sorted(missing))}.")
            label, true = (held[n].astype(np.int64) for n in ("labels", "true_labels"))
            cases[path.stem] = ZooSet(path.stem, "as is", "file", label, true, held["pred_probs"])
    return cases


def renoised(
    cases: dict[str, ZooSet], seed: int = 0, noises: Sequence[str] = RENOISED
) -> Iterator[tuple[str, str, ZooSet]]:
    """Give the files again with other label noise on their true labels.

    The probabilities are not retrained, so this is an approximation; instance noise draws what
    the file's own probabilities take the row for.
    """
    for at, (name, case) in enumerate(cases.items()):
        for noise in noises:
            rng = np.random.default_rng([seed, at])
            size = case.probs.shape[1]
            label = add_noise(noise, case.probs, case.true, size, rng, doubt=case.probs)
            yield (
                f"{name} {noise}",
                f"R {noise}",
                ZooSet(name, noise, "file", label, case.true, case.probs),
            )


def measure_judge(
    files: dict[str, ZooSet] | None = None,
    seeds: Sequence[int] = (0,),
    against: bool = True,
    watch: Callable[[str], None] = lambda _: None,
) -> list[Result]:
    """Measure files and clean sets, then, with each seed, re-noised files and the noisy zoo."""
    results: list[Result] = []

    def add(named: Iterable[tuple[str, str, ZooSet]]) -> None:
        for name, group, case in named:
            results.extend(measure_set(name, group, case, against))
            watch(name)

    add((name, "file", case) for name, case in (files or {}).items())
    add(renoised(files or {}, noises=("none",)))
    add((_name(case), _group(case), case) for case in clean_cases())
    for seed in seeds:
        add(renoised(files or {}, seed))
        add((_name(case), _group(case), case) for case in noisy_cases(seed))
    return results


def _name(case: ZooSet) -> str:
    return f"{case.data} {case.model} {case.noise}"


def _group(case: ZooSet) -> str:
    return f"O {case.noise}" if case.model in OVERCONFIDENT else case.noise


def summary(results: list[Result]) -> dict[str, Any]:
    """Condense to the numbers that are promised, by method."""
    methods = dict.fromkeys(r.method for r in results)
    answer: dict[str, Any] = {"files": [asdict(r) for r in results if r.group == "file"]}
    for method in methods:
        mine = [r for r in results if r.method == method and r.group != "file"]
        noisy = [r for r in mine if r.true_noise > 0]
        answered = [r for r in mine if not r.declined]
        strong = [r for r in answered if r.true_noise == 0 and r.disagreement < STRONG]
        answer[method] = {
            "noisy_sets": len(noisy),
            "f1": _mean(r.f1 for r in noisy),
            "best_f1": _mean(r.best_f1 for r in noisy),
            "ap": _mean(r.ap for r in noisy),
            # Where the judge declines to answer it counts as an estimate of 0.
            "noise_error": _mean(abs(r.estimate - r.true_noise) for r in noisy),
            "declined": sum(r.declined for r in noisy),
            "noise_error_answered": _mean(
                abs(r.estimate - r.true_noise) for r in noisy if not r.declined
            ),
            "clean_strong_sets": len(strong),
            "clean_estimate": _mean(r.estimate for r in strong),
            "clean_worst": max((r.estimate for r in strong), default=float("nan")),
            "interval_covers": _mean(float(r.inside) for r in answered if r.inside is not None),
            "groups": _groups(mine),
        }
    return answer


def _groups(results: list[Result]) -> dict[str, dict[str, float]]:
    return {
        group: {
            "sets": len(mine),
            "f1": _mean(r.f1 for r in mine),
            "ap": _mean(r.ap for r in mine),
            "estimate": _mean(r.estimate for r in mine),
            "true": _mean(r.true_noise for r in mine),
            "noise_error": _mean(abs(r.estimate - r.true_noise) for r in mine),
        }
        for group in dict.fromkeys(r.group for r in results)
        for mine in [[r for r in results if r.group == group]]
    }


def _mean(values: Iterable[float]) -> float:
    held = list(values)
    return float(np.mean(held)) if held else float("nan")
