"""What commands load before they work: of the heavy packages only those they need."""

import subprocess
import sys

import pytest

TABLES = {"numpy", "pyarrow"}
COMMANDS = {
    "losses": ({"numpy", "torch", "tqdm"}, 1350),
    "cache show": ({"numpy"}, 350),
    "check {}/digits.csv": (TABLES | {"PIL", "pandas", "scipy", "tqdm"}, 1200),
    "export {}/run {}/clean.csv --overwrite": (TABLES | {"PIL", "jinja2", "pandas", "scipy"}, 1300),
    "verify {}/run": (TABLES | {"PIL", "jinja2", "pandas", "scipy"}, 1300),
    "report {}/run": (TABLES | {"PIL", "jinja2", "pandas", "scipy", "matplotlib"}, 1500),
}
"""A command to what of HEAVY it may load (pyarrow loads pandas), and how many modules."""
HEAVY = {
    "PIL", "accelerate", "jinja2", "joblib", "matplotlib", "numpy", "pandas", "pyarrow", "scipy",
    "sklearn", "starlette", "timm", "torch", "torchvision", "tqdm",
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_load_what_they_need_and_no_more(command, world):
    may, most = COMMANDS[command]
    words = [word.format(world) for word in command.split()]
    code = (
        "import atexit, sys, runpy\n"
        "atexit.register(lambda: print('\\n', *sys.modules))\n"
        f"sys.argv = ['labelclean', *{words!r}]\n"
        "runpy.run_module('labelclean', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.strip().splitlines()[-1].split()
    assert HEAVY & set(loaded) <= may
    assert len(loaded) <= most
    # Most of a second to import, for distributions that scipy.special has, too.
    assert "scipy.stats" not in loaded


@pytest.mark.slow
def test_short_commands_end_with_their_own_code(world):
    """Threads of Arrow are still at work when they end; Python must not be taken apart then."""
    wrong = [sys.executable, "-m", "labelclean", "export", f"{world}/run", f"{world}/clean.xlsx"]
    codes = [subprocess.run(wrong, capture_output=True, check=False).returncode for _ in range(25)]
    assert set(codes) == {2}
