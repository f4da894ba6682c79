"""What trains on some samples by a recipe, refused before anything is spent if it cannot work."""

from functools import partial
from pathlib import Path

from labelclean import losses
from labelclean.recipe import Recipe
from labelclean.strategies import build_strategy
from labelclean.training.fit import Fitter
from labelclean.training.runtime import Runtime
from labelclean.training.samples import Samples
from labelclean.training.selection import require_strategy


def make_fitter(
    samples: Samples, recipe: Recipe, runtime: Runtime, cache: Path, workspace: Path | None
) -> Fitter:
    """Give what trains on some samples by a recipe whose training is resolved.

    Raises:
        ConfigError: The strategy or the loss cannot work on them.
    """
    require_fit(recipe, (samples.trained, samples.num_classes))
    return Fitter(
        samples,
        recipe.model,
        recipe.training,
        runtime,
        decoders=recipe.data.workers or runtime.threads,
        cache=cache,
        workspace=workspace,
        strategy=partial(build_strategy, recipe.strategy.name, **recipe.strategy.params),
    )


def require_fit(recipe: Recipe, counts: tuple[int, int]) -> None:
    """Refuse a strategy or a loss that cannot work with so many samples and classes.

    Args:
        recipe: The settings; its training is resolved.
        counts: Numbers of samples to train on and of classes.

    Raises:
        ConfigError: One of them cannot work.
    """
    chosen = build_strategy(recipe.strategy.name, **recipe.strategy.params)
    require_strategy(recipe.strategy.name, chosen, counts, recipe.model, recipe.training)
    if recipe.loss.name in losses.LOSSES:
        loss = losses.build(recipe.loss.name, **recipe.loss.params)
        loss.bind(1, counts[1], recipe.training.epochs)
