"""decisions.jsonl under a writer: what was acknowledged stays, what is torn is not believed."""

import json
import os
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labelclean.correction.decisions import CONFIRM, GIVE_LABEL, LEAVE_OUT, UNDO, UNSURE, Decision
from labelclean.errors import DataError, OutputError
from labelclean.review.journal import Journal
from labelclean.runs.decisions_file import read_decisions
from labelclean.runs.reading import open_audited
from reviewing import lines

made = st.one_of(
    st.sampled_from([Decision(what, None) for what in (CONFIRM, LEAVE_OUT, UNSURE)]),
    st.integers(0, 2).map(lambda label: Decision(GIVE_LABEL, label)),
)
steps = st.lists(st.one_of(st.none(), st.tuples(st.integers(0, 5), made)), max_size=12)
any_time = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def manifest(finished):
    return open_audited(finished).manifest


def fresh(tmp_path):
    shutil.rmtree(tmp_path / "j", ignore_errors=True)
    (tmp_path / "j").mkdir()
    return tmp_path / "j"


@any_time
@given(steps=steps)
def test_it_does_what_a_list_would_do(steps, tmp_path, manifest):
    """A list of decisions, the last of which `undo` removes; the latest about a row counts."""
    folder, stack = fresh(tmp_path), []
    for step in steps:
        with Journal(folder, manifest) as journal:  # a restart before every step
            if step is None:
                undone = journal.undo()
                assert (undone is None) == (not stack)
                if stack:
                    assert undone["row"] == stack.pop()[0]
            else:
                journal.add(*step)
                stack.append(step)
            assert journal.history.current == dict(stack)
    if (folder / "decisions.jsonl").exists():
        assert read_decisions(folder / "decisions.jsonl", manifest) == dict(stack)
        undos = [line for line in lines(folder) if line["decision"] == UNDO]
        assert len(lines(folder)) - 2 * len(undos) == len(stack)


@any_time
@given(data=st.data(), steps=st.lists(st.tuples(st.integers(0, 5), made), min_size=1, max_size=6))
def test_a_cut_anywhere_loses_no_whole_line(data, steps, tmp_path, manifest):
    folder = fresh(tmp_path)
    path = folder / "decisions.jsonl"
    with Journal(folder, manifest) as journal:
        for step in steps:
            journal.add(*step)
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    # A line that lacks nothing but its end was written whole.
    whole = content[: cut + 1].count(b"\n")
    with Journal(folder, manifest) as journal:
        assert journal.history.log == steps[:whole]
        journal.add(0, Decision(UNSURE, None))
    kept = b"".join(content.splitlines(keepends=True)[:whole])
    assert path.read_bytes().startswith(kept)
    assert len(lines(folder)) == whole + 1
    torn = content[len(kept) : cut]
    found = folder / "decisions.jsonl.torn"
    assert (found.read_bytes() if found.exists() else b"") == (torn + b"\n" if torn else b"")


def test_zeros_after_a_power_cut_are_moved_away(run, manifest):
    with Journal(run, manifest) as journal:
        journal.add(1, Decision(CONFIRM, None))
    with (run / "decisions.jsonl").open("ab") as file:
        file.write(bytes(100))
    with Journal(run, manifest) as journal:
        assert journal.history.current == {1: Decision(CONFIRM, None)}
    assert len(lines(run)) == 1


def test_one_writer(run, manifest):
    words = r"decisions.jsonl is in use: `labelclean review` \(process \d+"
    with Journal(run, manifest), pytest.raises(OutputError, match=words):
        Journal(run, manifest)
    with Journal(run, manifest) as journal:
        journal.add(1, Decision(CONFIRM, None))


def test_foreign_and_damaged_lines_are_named_and_stay(run, manifest):
    path = run / "decisions.jsonl"
    strange = {"row": 1, "sample_id": "another", "decision": "confirm", "label": None}
    content = json.dumps(strange) + "\nrubbish\n" + json.dumps(strange)
    path.write_text(content)
    with pytest.raises(DataError, match=r"3 lines.*line 1: sample_id 'another'.*line 2.*line 3"):
        Journal(run, manifest)
    assert path.read_text().strip() == content


def test_a_look_leaves_nothing_behind(run, manifest):
    with Journal(run, manifest) as journal:
        assert journal.undo() is None
    assert not (run / "decisions.jsonl").exists()


@pytest.mark.skipif(os.name != "posix", reason="open files cannot be removed here")
def test_a_file_that_went_away_is_not_written_to(run, manifest):
    with Journal(run, manifest) as journal:
        journal.add(1, Decision(CONFIRM, None))
        (run / "decisions.jsonl").rename(run / "elsewhere.jsonl")
        with pytest.raises(OutputError, match="removed or replaced"):
            journal.add(2, Decision(CONFIRM, None))
        with pytest.raises(OutputError, match="removed or replaced"):
            journal.undo()
        assert list(journal.history.current) == [1]


def test_a_full_disk_leaves_nothing_behind(run, manifest, monkeypatch):
    with Journal(run, manifest) as journal:
        journal.add(1, Decision(CONFIRM, None))
        before = (run / "decisions.jsonl").read_bytes()

        def full(_):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", full)
            with pytest.raises(OutputError, match="not saved"):
                journal.add(2, Decision(CONFIRM, None))
        assert (run / "decisions.jsonl").read_bytes() == before
        assert list(journal.history.current) == [1]
        journal.add(2, Decision(CONFIRM, None))
    assert [line["row"] for line in lines(run)] == [1, 2]
