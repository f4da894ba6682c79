"""No file can make labelclean run code, and it speaks to nobody who was not asked for."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import labelclean
from planted import plant

PACKAGE = Path(labelclean.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
MODULES = {
    "pickle", "marshal", "shelve", "dill", "cloudpickle", "yaml", "code", "codeop", "pty",
    "urllib.request", "requests", "http.client", "ftplib", "smtplib", "telnetlib", "xmlrpc",
    "subprocess", "pip", "cffi",
}  # fmt: skip
"""Modules that load code from data, start programs or open connections."""
ALLOWED = {
    "training/checkpoint.py": {"pickle.UnpicklingError"},  # to catch it
    "benchmark": {"subprocess"},  # measures itself in processes of its own
    "cli/benchmark": {"subprocess"},
}
CALLS = {
    "eval", "exec", "compile", "__import__", "os.system", "os.popen", "pd.read_pickle",
    "pandas.read_pickle", "joblib.load", "torch.hub.load", "torch.jit.load", "torch.package",
    "runpy.run_path", "runpy.run_module", "os.execv", "os.execvp", "os.spawnv",
}  # fmt: skip


def faults(tree: ast.AST) -> list[str]:
    """List what a module does that it must not."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if _is_banned(alias.name)]
        elif isinstance(node, ast.ImportFrom) and _is_banned(node.module or ""):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call):
            found += _call_faults(node)
    return found


def _is_banned(module: str) -> bool:
    parts = module.split(".")
    return any(".".join(parts[:length]) in MODULES for length in range(1, len(parts) + 1))


def _call_faults(node: ast.Call) -> list[str]:
    called = ast.unparse(node.func)
    words = {word.arg: ast.unparse(word.value) for word in node.keywords}
    found = [called] if called in CALLS or called.startswith(("os.exec", "os.spawn")) else []
    if words.get("shell", "False") != "False":
        found.append(f"{called}(shell=...)")
    if called.split(".")[-1] == "load" and called.split(".")[0] in ("np", "numpy"):
        found += [] if words.get("allow_pickle") == "False" else ["np.load that may unpickle"]
    if words.get("allow_pickle", "False") != "False":
        found.append("allow_pickle")
    if called == "torch.load" and words.get("weights_only") != "True":
        found.append("torch.load that may unpickle")
    if words.get("trust_remote_code", "False") != "False":
        found.append("trust_remote_code")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_can_run_what_a_file_says(path):
    name = path.relative_to(PACKAGE).as_posix()
    allowed = {word for start, words in ALLOWED.items() if name.startswith(start) for word in words}
    found = faults(ast.parse(path.read_text(encoding="utf-8")))
    assert [fault for fault in found if fault not in allowed] == []


@pytest.mark.parametrize(
    "code",
    [
        "import pickle", "from pickle import loads", "import yaml", "eval('1')", "exec(text)",
        "np.load(path)", "np.load(path, allow_pickle=True)", "torch.load(path)",
        "torch.load(path, weights_only=False)", "subprocess.run(x, shell=True)", "os.system('x')",
        "joblib.load(path)", "import urllib.request", "from subprocess import run",
        "os.execv('a', [])", "pd.read_pickle(path)", "compile(text, 'x', 'exec')",
    ],
)  # fmt: skip
def test_the_rule_sees_what_it_forbids(code):
    assert faults(ast.parse(code))


DEAF = """
import os, sys

def hook(event, arguments):
    # urllib3, which others import where it is installed, asks for a port of this machine to see
    # whether it knows IPv6; nobody can hear that.
    probe = event == "socket.bind" and arguments[1:] == (("::1", 0),)
    speech = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.bind")
    if event in speech and not probe:
        # Not an exception, which somebody could catch.
        os.write(2, f"tried to speak: {event} {arguments[1:]}".encode())
        os._exit(99)

sys.addaudithook(hook)
if sys.argv[1] == "--self-test":
    import socket
    socket.create_connection(("127.0.0.1", 9), timeout=1)
from labelclean.cli import main
main()
"""


def deaf(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", DEAF, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_an_audit_with_the_embedded_backbone_speaks_to_nobody(tmp_path):
    assert deaf("--self-test").returncode == 99
    from finished_runs import write_pictures

    table = write_pictures(tmp_path / "data")
    flags = ("--set", "model.image_size=32", "--epochs", 2, "--workers", 1, "--threads", 1)
    out = tmp_path / "run"
    done = deaf("audit", table, "--out", out, "--cache-dir", tmp_path / "cache", *flags)
    assert done.returncode == 0, done.stderr[-2000:]
    assert (out / "run.json").is_file()
    done = deaf("predict", out, table, "--out", tmp_path / "said.parquet", "--no-cache")
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
def test_probabilities_and_exports_speak_to_nobody(tmp_path):
    data = plant(tmp_path, rows=60, planted=6)
    out = tmp_path / "run"
    done = deaf("audit", data.table, "--pred-probs", data.probs, "--out", out)
    assert done.returncode == 0, done.stderr[-2000:]
    done = deaf("export", out, tmp_path / "clean.csv")
    assert done.returncode == 0, done.stderr[-2000:]
