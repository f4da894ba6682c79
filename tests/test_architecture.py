"""The house rules as tests: rooms, who may import whom, one meaning a name, how long a file is."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import labelclean

PACKAGE = Path(labelclean.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
TESTS = Path(__file__).parent
LONGEST_FILE = 300
LONGEST_FUNCTION = 70

DOORS = {"arrays", "atomic", "catalogue", "errors", "options"}
"""Loose modules that every room may import and that import no room."""
MOST_LOOSE = 8
ENGINE = {
    "data", "losses", "records", "models", "strategies", "training", "evidence", "calibration",
    "correction", "outputs", "recipe", "runs",
}  # fmt: skip
"""What the corridor is made of; none of it knows the corridor."""
MAY_IMPORT = {
    "data": set(),
    "losses": set(),
    "records": set(),
    "models": {"data"},
    "strategies": {"losses", "records", "evidence"},
    "training": {"data", "losses", "models", "records", "strategies"},
    "evidence": {"records", "calibration"},
    "calibration": {"records", "evidence"},
    "correction": {"data", "evidence", "calibration"},
    "outputs": {"data", "records", "correction"},
    "recipe": {"data", "models", "training", "evidence", "correction", "strategies"},
    "runs": ENGINE,
    "workflows": ENGINE,
    "review": ENGINE | {"workflows"},
    "estimators": ENGINE | {"workflows"},
    "compat": {"evidence", "workflows"},
    "benchmark": ENGINE | {"workflows", "estimators"},
    "cli": ENGINE | {"workflows", "review", "benchmark"},
    "__init__": {"data", "losses", "estimators", "workflows"},
    "__main__": {"cli"},
}
"""Room, or door that opens one, to the rooms it may import."""
AGAINST_THE_STREAM = {
    ("evidence/features.py", "losses"),  # trains its own small heads
    ("evidence/features.py", "training"),
    ("evidence/noise_aware.py", "training"),  # the batch size of heads
    ("losses/transition.py", "evidence"),  # one confident joint for both
    ("evidence/value.py", "correction"),  # carries what people decided
    ("correction/outcome.py", "outputs"),  # the corrected table and its four columns
    ("data/demo.py", "benchmark"),  # plants the demo's errors
    ("outputs/truth.py", "benchmark"),  # scores against the truth
}
"""File and room: known exceptions; this list may only become shorter."""

TRAINING_EVIDENCE = {"evidence/features.py", "evidence/noise_aware.py"}
"""Sources that train heads of their own."""
FILE_ACCESS = {"pathlib", "os", "io", "shutil", "tempfile", "glob"}
ARITHMETIC = {"losses", "records", "evidence", "calibration", "correction"}
MODEL_FREE = {"calibration", "correction", "outputs"}
ONLY_IN = {"timm": "models", "click": "cli"}


def inside(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> set[str]:
    """Name the imported modules; of `from labelclean import losses` the room, too."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            found.add(node.module or "")
            if node.module == "labelclean":
                found |= {f"labelclean.{alias.name}" for alias in node.names}
    return found


def rooms_of(names: set[str]) -> set[str]:
    """Name the rooms and doors of labelclean among imported modules."""
    parts = (name.split(".") for name in names)
    return {part[1] for part in parts if part[0] == "labelclean" and len(part) > 1}


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_the_rooms_are_those_of_the_design():
    rooms = {room(path) for path in FILES if path.parent != PACKAGE}
    loose = {room(path) for path in FILES if path.parent == PACKAGE}
    assert rooms - {"strategies"} == set(MAY_IMPORT) - loose - {"strategies"}
    assert loose == DOORS | {"__init__", "__main__", "recipe"}
    assert len(loose) <= MOST_LOOSE


def test_the_tests_mirror_the_rooms():
    folders = {path.parent.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}
    rooms = {room(path) for path in FILES if path.parent != PACKAGE}
    assert folders - {"."} == rooms | {"browser", "faults", "fuzz", "hostile_corpus"}
    loose = {path.stem.removeprefix("test_") for path in TESTS.glob("test_*.py")}
    about_the_whole = {"architecture", "readme", "recipes", "supply_chain"}
    assert loose <= DOORS | about_the_whole


@pytest.mark.parametrize("path", FILES, ids=inside)
def test_rooms_import_with_the_stream(path):
    known = rooms_of(imports(parse(path))) - DOORS - {room(path), "__version__"}
    allowed = MAY_IMPORT.get(room(path), set())
    wrong = {name for name in known - allowed if (inside(path), name) not in AGAINST_THE_STREAM}
    assert not wrong, f"{room(path)} may import {sorted(allowed)}, not {sorted(wrong)}"


@pytest.mark.parametrize("path", FILES, ids=inside)
def test_arithmetic_knows_no_files_and_judging_no_networks(path):
    tree = parse(path)
    names = imports(tree)
    tops = {name.split(".")[0] for name in names}
    for module, home in ONLY_IN.items():
        assert module not in tops or room(path) == home, f"only {home}/ imports {module}"
    if room(path) in ARITHMETIC:
        assert not tops & FILE_ACCESS
        calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
        assert not any(isinstance(called, ast.Name) and called.id == "open" for called in calls)
    if room(path) in MODEL_FREE:
        assert "torch" not in tops
        assert not rooms_of(names) & {"losses", "models", "training", "strategies"}
    if room(path) == "evidence" and inside(path) not in TRAINING_EVIDENCE:
        assert "torch" not in tops, "only evidence that trains imports torch"


def test_judging_loads_no_network_in_a_roundabout_way():
    modules = [inside(path) for path in FILES if room(path) in MODEL_FREE]
    names = ["labelclean." + name.removesuffix(".py").replace("/", ".") for name in modules]
    code = (
        "import importlib, sys\n"
        f"for name in {names!r}:\n    importlib.import_module(name)\n"
        "print([name for name in ('torch', 'timm', 'click') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def public_names(tree: ast.Module) -> set[str]:
    """Name what a module defines itself."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {
                part.id
                for target in targets
                for part in ast.walk(target)
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
            }
    return {name for name in found if not name.startswith("_")}


def test_one_public_name_means_one_thing():
    defined = defaultdict(set)
    for path in FILES:
        for name in public_names(parse(path)):
            defined[name].add(inside(path))
    # Click finds every command by the same name; cleanlab's function is called as ours is.
    defined["command"] = {name for name in defined["command"] if not name.startswith("cli/")}
    defined["find_label_issues"].discard("compat/cleanlab.py")
    assert not {name: sorted(places) for name, places in defined.items() if len(places) > 1}


@pytest.mark.parametrize("path", FILES, ids=inside)
def test_file_is_short_and_hides_no_fault(path):
    tree = parse(path)
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= LONGEST_FILE, f"{lines} lines"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < LONGEST_FUNCTION, node.name
        if isinstance(node, ast.ExceptHandler):
            caught = getattr(node.type, "id", "") if node.type else "everything"
            rethrows = any(isinstance(n, ast.Raise) and n.exc is None for n in ast.walk(node))
            assert caught not in {"everything", "Exception", "BaseException"} or rethrows
    assert path.stem not in {"utils", "helpers", "common", "misc"}


DANGEROUS_CALLS = {
    "eval", "exec", "compile", "pickle.load", "pickle.loads", "yaml.load", "os.system", "os.popen",
    "marshal.loads", "shelve.open", "joblib.load", "pd.read_pickle", "pandas.read_pickle",
}  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=inside)
def test_nothing_runs_code_from_files(path):
    for node in ast.walk(parse(path)):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        assert called not in DANGEROUS_CALLS, called
        keywords = {word.arg: ast.unparse(word.value) for word in node.keywords}
        assert keywords.get("shell", "False") == "False"
        assert keywords.get("allow_pickle", "False") == "False"
        if called in {"np.load", "numpy.load"}:
            assert "allow_pickle" in keywords, "say allow_pickle=False"
        if called == "torch.load":
            assert keywords.get("weights_only") == "True"


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["audit", "--help"]])
def test_the_door_opens_at_once(arguments):
    """What takes time is loading: of everything installed click alone may be."""
    code = (
        "import atexit, sys, runpy\n"
        "known = set(sys.modules)\n"
        "def tell():\n"
        "    loaded = {name.split('.')[0] for name in set(sys.modules) - known}\n"
        "    print('\\n', *sorted(loaded - set(sys.stdlib_module_names)))\n"
        "atexit.register(tell)\n"
        f"sys.argv = ['labelclean', *{arguments!r}]\n"
        "runpy.run_module('labelclean', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.strip().splitlines()[-1].split())
    assert loaded <= {"click", "labelclean"}


def test_timm_waits_until_a_backbone_is_built():
    """It takes seconds, and those who bring features or probabilities build none."""
    eager = {
        str(path.relative_to(PACKAGE))
        for path in FILES
        for statement in parse(path).body
        if isinstance(statement, ast.Import | ast.ImportFrom)
        and re.search(r"\b(timm|cifar_resnet)\b", ast.unparse(statement))
    }
    assert eager == {"models/cifar_resnet.py"}


def test_public_names():
    assert set(labelclean.__all__) <= set(dir(labelclean))
    for name in labelclean.__all__:
        assert getattr(labelclean, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = labelclean.nothing  # type: ignore[attr-defined]
