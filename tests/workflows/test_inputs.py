"""Side inputs of an audit: read, checked against the manifest, and named by their content."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from labelclean.correction.decisions import Decision
from labelclean.data.settings import DataSettings
from labelclean.errors import ConfigError, DataError
from labelclean.workflows.inputs import SideInputs, read_audit_inputs
from planted import NAMES, Planted, plant

ROWS = 60


@pytest.fixture
def data(tmp_path: Path) -> Planted:
    return plant(tmp_path / "data", rows=ROWS, planted=6)


def decide(path: Path, *lines: tuple[int, str, str | None]) -> Path:
    entries = (
        {"row": row, "sample_id": f"s{row}", "decision": what, "label": label, "time": str(at)}
        for at, (row, what, label) in enumerate(lines)
    )
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


def read(data: Planted, limit: int | None = None, **side):
    return read_audit_inputs(data.table, DataSettings(limit=limit), SideInputs(**side))


def test_everything_is_read_and_joined(data, tmp_path):
    wrong = int(np.flatnonzero(data.wrong)[0])
    right = NAMES[data.true[wrong]]
    people = decide(tmp_path / "d.jsonl", (wrong, "relabel", right), (9, "unsure", None))
    inputs = read(
        data,
        features=data.features,
        pred_probs=data.probs,
        truth_col="true_label",
        decisions=people,
    )
    assert np.array_equal(inputs.features.values, np.load(data.features))
    assert np.array_equal(inputs.pred_probs.values, np.load(data.probs))
    assert np.array_equal(inputs.truth.label, data.true)
    assert inputs.people[wrong] == Decision("relabel", int(data.true[wrong]))
    samples = inputs.trainable()
    assert np.array_equal(samples.arrays, np.load(data.features))
    assert samples.label_values()[wrong] == right
    assert np.flatnonzero(samples.verified).tolist() == [wrong]
    assert np.array_equal(inputs.manifest.label, data.given)  # what the user gave stays


def test_nothing_is_invented(data):
    inputs = read(data, pred_probs=data.probs)
    assert (inputs.features, inputs.truth, dict(inputs.people)) == (None, None, {})
    assert inputs.trainable() is inputs.manifest
    assert list(inputs.digests()) == ["pred_probs"]


def test_without_numbers_pictures_are_needed(data):
    with pytest.raises(DataError, match="image"):
        read(data, truth_col="true_label")


def test_content_is_named_so_that_a_changed_file_is_noticed(data, tmp_path):
    first = read(data, features=data.features).digests()
    assert first == {"features": hashlib.sha256(data.features.read_bytes()).hexdigest()}
    np.save(data.features, np.load(data.features) + 1)
    assert read(data, features=data.features).digests() != first

    def named(*lines) -> str | None:
        people = decide(tmp_path / "d.jsonl", *lines)
        return read(data, features=data.features, decisions=people).digests().get("decisions")

    one, two = (3, "confirm", None), (5, "relabel", "cat")
    assert named(one, two) == named(two, one)  # rows that do not touch each other
    assert named(one, two) == named((3, "drop", None), one, two)  # a later line wins
    assert named(one, two) == named(one, two, (7, "unsure", None), (7, "undo", None))
    assert len({named(one), named(two), named(one, two), named((5, "relabel", "bee"))}) == 4
    assert named() is None


@pytest.mark.parametrize("brought", [ROWS, 20])
def test_a_limit_takes_the_first_rows_of_numbers_about_all_of_them(data, brought):
    features = np.load(data.features)
    np.save(data.features, features[:brought])
    inputs = read(data, limit=20, features=data.features)
    assert len(inputs.manifest) == 20
    assert np.array_equal(inputs.features.values, features[:20])


@pytest.mark.parametrize("limit", [None, 20])
def test_numbers_about_other_rows_are_refused(data, limit):
    np.save(data.features, np.load(data.features)[:30])
    with pytest.raises(DataError, match=rf"--features .* has 30 rows, .* has {ROWS}"):
        read(data, limit=limit, features=data.features)


def test_probabilities_of_other_classes_are_refused(data):
    np.save(data.probs, np.load(data.probs)[:, :2])
    with pytest.raises(DataError, match=r"has 2 columns, .* has 3 classes .*ant, bee, cat\)"):
        read(data, pred_probs=data.probs)


def test_a_truth_that_is_none_is_refused(data):
    with pytest.raises(ConfigError, match="the label column itself"):
        read(data, pred_probs=data.probs, truth_col="label")
    with pytest.raises(DataError, match="no column 'truth'"):
        read(data, pred_probs=data.probs, truth_col="truth")


def test_decisions_about_other_samples_are_refused(data, tmp_path):
    people = decide(tmp_path / "d.jsonl", (ROWS, "confirm", None))
    with pytest.raises(DataError, match=f"row {ROWS} is not in 0 to {ROWS - 1}"):
        read(data, pred_probs=data.probs, decisions=people)


def test_a_manifest_that_is_read_already_is_taken_as_it_is(data, tmp_path):
    manifest = read(data, pred_probs=data.probs).manifest
    people = decide(tmp_path / "d.jsonl", (2, "confirm", None))
    inputs = read_audit_inputs(manifest, DataSettings(), SideInputs(decisions=people))
    assert inputs.manifest is manifest
    assert dict(inputs.people) == {2: Decision("confirm", None)}
