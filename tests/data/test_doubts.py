"""Warnings worth having: odd labels and folders are said, ordinary ones are not."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from labelclean.data.doubts import label_doubts
from planted import command
from small_manifests import manifest_of


def doubts(labels):
    return label_doubts(manifest_of(labels))


def test_ordinary_labels_raise_no_doubt():
    assert doubts(["cat", "dog"] * 20) == ()
    assert doubts([str(at % 10) for at in range(200)]) == ()
    assert doubts(list(range(100)) * 10) == ()  # a hundred numbered classes
    assert doubts(["Rock, Paper", "Scissors"] * 20) == ()


def test_small_classes():
    (said,) = doubts(["cat", "dog"] * 20 + ["dgo", "bird", "bird", "bird"])
    assert said.startswith("2 of 4 classes have one to 3 rows ('bird' 3, 'dgo' 1)")


def test_a_measurement_is_no_class():
    rng = np.random.default_rng(0)
    (said,) = doubts([f"{value:.1f}" for value in rng.integers(0, 30, 900) / 2])
    assert "30 different numbers (from 0 to 14.5)" in said
    assert "--label-col" in said


@pytest.mark.parametrize("separator", ["|", ";", ", "])
def test_several_labels_in_one(separator):
    both, three = f"a{separator}b", f"b{separator}c"
    (said,) = doubts(["a", "b", both, three] * 20)
    assert repr(both) in said
    assert "one label per picture" in said


def test_pictures_outside_the_folder(tmp_path):
    manifest = manifest_of(["a", "b"] * 10)
    inside = replace(manifest, image_col="path", source=tmp_path / "data.csv", image_root=tmp_path)
    assert label_doubts(inside) == ()
    (said,) = label_doubts(replace(inside, source=tmp_path / "out" / "data.csv"))
    assert "outside its own folder" in said


def test_check_and_audit_say_it(tmp_path):
    (tmp_path / "images").mkdir()
    rng = np.random.default_rng(0)
    for row in range(24):
        picture = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(picture).save(tmp_path / f"images/{row}.png")
    table = Path(tmp_path / "data.csv")
    labels = ["a"] * 11 + ["b"] * 11 + ["a|b"] * 2
    frame = pd.DataFrame({"image": [f"images/{row}.png" for row in range(24)], "label": labels})
    frame.to_csv(table, index=False)
    told = command("check", table, "--workers", 0)
    assert told.exit_code == 0
    assert "warning     1 of 3 classes have one to 3 rows" in told.stdout
    assert "labels such as 'a|b'" in told.stdout
    facts = json.loads(command("check", table, "--json", "--workers", 0).stdout)
    assert len(facts["warnings"]) == 2
    probs = rng.dirichlet(np.ones(3), 24)
    np.save(tmp_path / "p.npy", probs)
    done = command("audit", table, "--pred-probs", tmp_path / "p.npy", "--out", tmp_path / "run")
    assert done.exit_code == 0, done.output
    assert done.stderr.count("Note: ") >= 2
    assert "labels such as 'a|b'" in done.stderr
