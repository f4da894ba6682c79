"""Finished runs that several commands read."""

from pathlib import Path

import pandas as pd
import pytest

from finished_runs import call, small, write_features, write_pictures


@pytest.fixture(scope="session")
def world(tmp_path_factory) -> Path:
    """Pictures with a test split, `new.csv` without labels, and a run in head mode."""
    folder = tmp_path_factory.mktemp("world")
    manifest = write_pictures(folder)
    call("audit", manifest, "--out", folder / "run", *small(folder / "cache"), "--quiet")
    frame = pd.read_csv(manifest).drop(columns=["label", "true"])
    frame.to_csv(folder / "new.csv", index=False)
    return folder


@pytest.fixture(scope="session")
def features(tmp_path_factory) -> Path:
    """Feature vectors without any split, and a run that took every suggestion."""
    folder = tmp_path_factory.mktemp("features")
    manifest = write_features(folder / "digits.npz")
    flags = ("--loss", "cce", "--epochs", "8", "--set", "correction.mode=relabel", "--quiet")
    call("audit", manifest, "--out", folder / "run", *flags)
    return folder
