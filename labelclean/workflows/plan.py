"""What an audit is about to do, in one line."""

from labelclean.evidence.features import CANDIDATE_LOSSES
from labelclean.recipe import Recipe
from labelclean.training.cost import busy_factor, duration_text, seconds_until_trained
from labelclean.training.fit import Fitter
from labelclean.workflows.forecast import EvidenceLoad, evidence_seconds, written_seconds


def describe_plan(fitter: Fitter, frozen: Fitter | None, recipe: Recipe) -> str:
    """Say what will be trained, on what, and about how long it takes until all is written.

    Args:
        fitter: What trains.
        frozen: What computes features that no label has touched; None: nothing does.
        recipe: The settings, as asked for.
    """
    samples, training, runtime = fitter.samples, fitter.training, fitter.runtime
    what = "features"
    if fitter.backbone is not None:
        what = f"{fitter.backbone.name} at {fitter.backbone.spec.size} px"
    apart = f", {training.folds} networks more that leave rows out" if training.folds else ""
    several = f" in {runtime.processes} processes" if runtime.processes > 1 else ""
    busy = busy_factor()
    seconds = seconds_until_trained(fitter, frozen, busy)
    seconds += busy * written_seconds(samples.trained)
    if frozen is not None:
        trials = len(CANDIDATE_LOSSES) if recipe.loss.name == "auto" else 1
        load = EvidenceLoad(samples.trained, frozen.width(), samples.num_classes, trials)
        seconds += busy * evidence_seconds(load)
    return (
        f"{samples.trained} samples of {samples.num_classes} classes, {what}, "
        f"{training.mode} mode, {training.epochs} epochs of {recipe.loss.name} on "
        f"{runtime.device.type}{several}{apart}: about "
        f"{duration_text(seconds)}"
    )
