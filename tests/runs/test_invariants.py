"""The end of a run: every row once, each with its own evidence, or no run at all."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from finished_runs import small, write_pictures
from labelclean.workflows import audit as corridor
from planted import command, plant

pytestmark = pytest.mark.usefixtures("plain_figures")


@pytest.mark.parametrize("fault", ["missing", "twice"])
def test_a_result_that_lost_a_row_is_refused(tmp_path, monkeypatch, fault):
    data = plant(tmp_path, rows=60, planted=6)
    real = corridor.judge_with_decisions

    def judge(*arguments, **more):
        found = real(*arguments, **more)
        row = found.row.copy()
        row[3] = row[4] if fault == "twice" else len(row)
        return replace(found, row=row)

    monkeypatch.setattr(corridor, "judge_with_decisions", judge)
    flags = ("--pred-probs", data.probs, "--out", tmp_path / "run")
    done = command("audit", data.table, *flags)
    assert done.exit_code == 1
    assert "do not stand exactly once" in done.output
    assert not (tmp_path / "run/run.json").exists()


def test_evidence_of_another_sample_is_refused(tmp_path, monkeypatch):
    data = plant(tmp_path, rows=60, planted=6)
    real = corridor.require_own_evidence

    def swapped(records, *rest):
        names = records["sample_id"].to_pylist()
        names[0], names[1] = names[1], names[0]
        at = records.column_names.index("sample_id")
        real(records.set_column(at, "sample_id", [names]), *rest)

    monkeypatch.setattr(corridor, "require_own_evidence", swapped)
    done = command("audit", data.table, "--pred-probs", data.probs, "--out", tmp_path / "run")
    assert done.exit_code == 1
    assert "evidence of rows 0, 1 is about other samples" in done.output


def test_a_picture_that_changes_during_the_run_is_noticed(tmp_path, monkeypatch):
    table = write_pictures(tmp_path / "data")
    flags = (*small(tmp_path / "cache"), "--threads", 1, "--out", tmp_path / "run")
    images = tmp_path / "data/images"
    content = (images / "7.png").read_bytes()
    real = corridor.judge_with_decisions

    def judge(*arguments, **more):
        (images / "7.png").write_bytes((images / "8.png").read_bytes())
        return real(*arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(corridor, "judge_with_decisions", judge)
        done = command("audit", table, *flags)
    assert done.exit_code == 3
    assert "rows 7 were changed while they were audited" in done.output
    (images / "7.png").write_bytes(content)
    done = command("audit", table, *flags, "--resume")
    assert done.exit_code == 0, done.output
    records = pq.read_table(tmp_path / "run/records.parquet")
    from hashlib import sha256

    for row, digest in zip(
        records["row"].to_pylist(), records["content_sha256"].to_pylist(), strict=True
    ):
        assert digest == sha256((images / f"{row}.png").read_bytes()).digest()


def test_a_picture_that_changes_before_its_features_does_not_poison_the_cache(
    tmp_path, monkeypatch
):
    from labelclean.training import features

    table = write_pictures(tmp_path / "data")
    images = tmp_path / "data/images"
    real = features.Pictures

    def pictures(*arguments, **more):
        (images / "7.png").write_bytes((images / "8.png").read_bytes())
        return real(*arguments, **more)

    monkeypatch.setattr(features, "Pictures", pictures)
    flags = (*small(tmp_path / "cache"), "--threads", 1, "--out", tmp_path / "run")
    done = command("audit", table, *flags)
    assert done.exit_code == 3
    assert "row 7: the picture was changed" in done.output


def test_a_folder_that_was_removed_under_the_run_is_not_called_finished(tmp_path, monkeypatch):
    data = plant(tmp_path, rows=60, planted=6)
    real = corridor.write_judged

    def removed(*arguments, **more):
        shutil.rmtree(tmp_path / "run")
        return real(*arguments, **more)

    monkeypatch.setattr(corridor, "write_judged", removed)
    done = command("audit", data.table, "--pred-probs", data.probs, "--out", tmp_path / "run")
    assert done.exit_code == 1
    assert "was removed or emptied while this run wrote into it" in done.output
    assert not (tmp_path / "run/run.json").exists()


def test_rows_of_other_splits_are_counted_as_excluded(tmp_path):
    table = write_pictures(tmp_path / "data")
    flags = (*small(tmp_path / "cache"), "--threads", 1, "--out", tmp_path / "run")
    assert command("audit", table, *flags).exit_code == 0
    rows = sorted(pq.read_table(tmp_path / "run/issues.parquet")["row"].to_pylist())
    corrected = pq.read_table(tmp_path / "run/corrected.parquet")["label_action"].to_pylist()
    assert rows == [row for row, action in enumerate(corrected) if action is not None]
    facts = json.loads((tmp_path / "run/run.json").read_bytes())
    assert facts["counts"]["audited"] == len(rows) == 90
    assert np.array_equal(rows, np.arange(90))
