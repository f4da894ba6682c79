"""The gallery of bad and odd images, as a source of pictures."""

import pytest

from gallery import build
from labelclean.data.images import ImageLimits
from labelclean.data.paths import Confinement
from labelclean.data.sources import FileImages


@pytest.fixture(scope="module")
def gallery(tmp_path_factory):
    root = tmp_path_factory.mktemp("gallery")
    cases = build(root)
    bounds = Confinement(root / "images", allow_outside=False)
    return cases, FileImages([case.path for case in cases], bounds, ImageLimits())
