"""The folder model/ of a run: what training gave, with the card that says where it comes from."""

from collections.abc import Mapping
from pathlib import Path

from labelclean.data.manifest import Manifest
from labelclean.models.saved import SavedModel, save_model
from labelclean.outputs.model_card import CardFacts, model_card
from labelclean.recipe import Recipe
from labelclean.training.samples import Fitted


def write_model(
    folder: Path, fitted: Fitted, recipe: Recipe, manifest: Manifest, facts: Mapping[str, object]
) -> None:
    """Write model.safetensors, config.json and README.md.

    Args:
        folder: The folder model/.
        fitted: The trained model.
        recipe: The resolved settings.
        manifest: What it was trained on.
        facts: The fields of `CardFacts` that only the caller knows: counts, noise_rate, ...
    """
    mode, loss = recipe.training.mode, recipe.loss
    saved = SavedModel(
        classes=manifest.classes,
        mode=mode,
        model=fitted.model,
        scaling=fitted.scaling,
        backbone=fitted.backbone,
        stages=recipe.model.stages,
        pretrained=recipe.model.pretrained and mode != "scratch",
        notes={
            "loss": {"name": loss.name, "params": dict(loss.params)},
            "epochs": fitted.epochs,
            "input_digest": manifest.digest,
        },
    )
    backbone = fitted.backbone
    card = CardFacts(
        data=manifest.source.name,
        digest=manifest.digest,
        classes=manifest.classes,
        backbone=saved.name,
        license=saved.license,
        mode=mode,
        image_size=None if backbone is None else backbone.spec.size,
        loss=loss.name,
        rows=len(fitted.records.label),
        **facts,  # type: ignore[arg-type]
    )
    save_model(saved, folder, model_card(card))
