"""What an audit is about to do, in one line."""

from labelclean.recipe import Recipe
from labelclean.training.cost import duration_text, seconds_until_trained
from labelclean.training.fit import Fitter
from labelclean.training.runtime import Runtime
from labelclean.training.samples import Samples
from labelclean.training.settings import TrainSettings


def describe_plan(
    fitter: Fitter, samples: Samples, recipe: Recipe, training: TrainSettings, runtime: Runtime
) -> str:
    """Say what will be trained, on what, and about how long it takes."""
    what = "features"
    if fitter.backbone is not None:
        what = f"{fitter.backbone.name} at {fitter.backbone.spec.size} px"
    apart = f", {training.folds} networks more that leave rows out" if training.folds else ""
    several = f" in {runtime.processes} processes" if runtime.processes > 1 else ""
    return (
        f"{samples.trained} samples of {samples.num_classes} classes, {what}, "
        f"{training.mode} mode, {training.epochs} epochs of {recipe.loss.name} on "
        f"{runtime.device.type}{several}{apart}: about "
        f"{duration_text(seconds_until_trained(fitter))}"
    )
