"""A manifest read as the [data] section of a recipe says."""

from labelclean.data.manifest import Manifest
from labelclean.data.places import Place
from labelclean.data.read import read_manifest
from labelclean.data.settings import DataSettings


def open_manifest(
    path: str | Place,
    settings: DataSettings,
    *,
    need_images: bool = True,
    need_labels: bool = True,
) -> Manifest:
    """Read a manifest as the recipe says."""
    return read_manifest(
        path,
        image_col=settings.image_col,
        label_col=settings.label_col,
        image_root=settings.image_root,
        allow_outside_root=settings.allow_outside_root,
        limit=settings.limit,
        need_images=need_images,
        need_labels=need_labels,
        budget=settings.budget,
    )
