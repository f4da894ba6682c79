"""Runs to review."""

import shutil
from pathlib import Path

import pytest

from reviewing import pictured


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Path:
    """A run with pictures that nobody has touched."""
    with pytest.MonkeyPatch.context() as patch:
        # Drawing heat maps would take most of the time.
        patch.setattr("labelclean.outputs.run_folder.matrix_png", lambda *_, **__: b"a picture")
        return pictured(tmp_path_factory.mktemp("reviewed") / "data")


@pytest.fixture
def run(finished, tmp_path) -> Path:
    """A copy of it, with its data."""
    shutil.copytree(finished.parent, tmp_path / "data")
    secret = f"{finished.parent.name}-secret.png"
    shutil.copy(finished.parent.parent / secret, tmp_path / secret)
    return tmp_path / "data" / "run"
