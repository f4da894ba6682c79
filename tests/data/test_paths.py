"""Nothing outside the root is opened, however the path is written."""

import os
import pickle

import pytest

from labelclean.data.paths import Confinement, PathError, confine, escaping_rows

posix = pytest.mark.skipif(os.name != "posix", reason="symbolic links and POSIX names")


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "data"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "x.png").write_bytes(b"x")
    (tmp_path / "secret.png").write_bytes(b"s")
    (tmp_path / "data-too").mkdir()
    return folder


INSIDE = ["a/x.png", "./a/x.png", "a/b/../x.png", "a//x.png", "a\\x.png", "a\\b\\..\\x.png"]
OUTSIDE = [
    "../secret.png",
    "a/../../secret.png",
    "..\\secret.png",
    "a\\..\\..\\secret.png",
    "/etc/passwd",
    "../data-too/x.png",
    "..",
    "a/../..",
    "C:\\Users\\x.png",
    "C:/x.png",
    "\\\\server\\share\\x.png",
    "nowhere/../../secret.png",
]


@pytest.mark.parametrize("text", INSIDE)
def test_paths_inside_are_found(root, text):
    assert confine(root, text, allow_outside=False) == root / "a" / "x.png"


@pytest.mark.parametrize("text", OUTSIDE)
def test_paths_that_leave_are_refused(root, text):
    with pytest.raises(PathError, match="leaves the image root") as caught:
        confine(root, text, allow_outside=False)
    assert repr(text) in str(caught.value)
    assert "--allow-outside-root" in str(caught.value)


def test_escaping_rows_finds_those_and_only_those(root):
    paths = [path for pair in zip(OUTSIDE, INSIDE * 2, strict=True) for path in pair]
    assert escaping_rows(root, paths) == list(range(0, len(paths), 2))
    odd = ["", "nul\0byte", "n" * 5000, "\ud800.png", "a" * 300 + "/x.png", "weiß/ü.png"]
    assert escaping_rows(root, odd) == []


def test_absolute_paths_inside_are_accepted(root):
    assert confine(root, str(root / "a" / "x.png"), allow_outside=False).name == "x.png"
    assert escaping_rows(root, [str(root / "a" / "x.png")]) == []


def test_outside_is_allowed_on_demand(root):
    assert confine(root, "../secret.png", allow_outside=True).read_bytes() == b"s"


@pytest.mark.parametrize("text", ["nul\0byte.png", "\ud800.png"])
def test_text_that_is_no_path_is_refused(root, text):
    for allow_outside in (False, True):
        with pytest.raises(PathError, match="no path can hold"):
            confine(root, text, allow_outside=allow_outside)


@posix
def test_links_are_judged_by_where_they_lead(root):
    (root / "out.png").symlink_to("../secret.png")
    (root / "in.png").symlink_to("a/x.png")
    (root / "up").symlink_to("..")
    (root / "down").symlink_to("a")
    assert confine(root, "in.png", allow_outside=False) == root / "a" / "x.png"
    assert confine(root, "down/x.png", allow_outside=False) == root / "a" / "x.png"
    for text in ("out.png", "up/secret.png", "down/../../secret.png"):
        with pytest.raises(PathError, match="leaves"):
            confine(root, text, allow_outside=False)
    # A file that is a link costs a call to the system to find; that is left to the scan.
    assert escaping_rows(root, ["in.png", "out.png", "down/x.png", "up/secret.png"]) == [3]


@posix
def test_a_linked_root_holds_its_files_under_both_names(root, tmp_path):
    (tmp_path / "alias").symlink_to(root)
    for text in ("a/x.png", str(root / "a" / "x.png"), str(tmp_path / "alias" / "a" / "x.png")):
        assert confine(tmp_path / "alias", text, allow_outside=False) == root / "a" / "x.png"


@posix
def test_a_backslash_in_a_real_name_is_no_separator(root):
    (root / "odd\\name.png").write_bytes(b"odd")
    assert confine(root, "odd\\name.png", allow_outside=False).read_bytes() == b"odd"


def test_folders_are_resolved_once(root, monkeypatch):
    calls = []
    real = os.path.realpath
    monkeypatch.setattr(os.path, "realpath", lambda path: calls.append(path) or real(path))
    assert escaping_rows(root, [f"a/b/{row}.png" for row in range(1000)]) == []
    assert len(calls) == 2


def test_confinement_travels_without_what_it_has_learnt(root):
    bounds = Confinement(root, allow_outside=False)
    fresh = len(pickle.dumps(bounds))
    for row in range(500):
        bounds.escapes(f"folder-{row}/x.png")
    assert len(pickle.dumps(bounds)) == fresh
    assert pickle.loads(pickle.dumps(bounds)).locate("a/x.png") == bounds.locate("a/x.png")  # noqa: S301


def test_path_errors_survive_pickling(root):
    error = PathError("reason", "text", str(root))
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301
