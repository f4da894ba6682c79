"""The house rules as tests: who may import whom, how long a file may be, what never appears."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import labelclean

PACKAGE = Path(labelclean.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
LONGEST_FILE = 300
LONGEST_FUNCTION = 70

HEAVY = ("torch", "timm", "sklearn", "pandas", "pyarrow")
FORBIDDEN = {
    "losses": {"timm", "click", "pathlib"},
    "records": {"timm", "click"},
    "evidence": {"timm", "click", "pathlib"},
    "calibration": {"timm", "click", "torch", "pathlib"},
    "correction": {"timm", "click", "torch", "pathlib"},
    "outputs": {"torch", "timm", "click"},
}
ONLY_IN = {"timm": "models", "click": "cli"}


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            found.add(node.module or "")
    return found


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_file_keeps_the_rules(path):
    tree = parse(path)
    names = imports(tree)
    tops = {name.split(".")[0] for name in names}
    assert not tops & FORBIDDEN.get(room(path), set())
    for module, home in ONLY_IN.items():
        assert module not in tops or room(path) == home, f"only {home}/ imports {module}"
    if room(path) in {"calibration", "correction", "outputs"}:
        inner = {"labelclean.losses", "labelclean.models", "labelclean.training"}
        assert not any(name.startswith(tuple(inner)) for name in names)
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


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
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


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_the_door_opens_at_once(arguments):
    code = (
        "import sys, time, runpy\n"
        f"sys.argv = ['labelclean', *{arguments!r}]\n"
        "try:\n    runpy.run_module('labelclean', run_name='__main__')\n"
        "except SystemExit as end:\n    assert end.code == 0, end.code\n"
        f"loaded = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "print('\\n', loaded, time.process_time())\n"
    )
    seconds = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        loaded, spent = done.stdout.strip().splitlines()[-1].rsplit(" ", 1)
        assert loaded.strip() == "[]"
        seconds.append(float(spent))
    assert min(seconds) < 0.5


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
