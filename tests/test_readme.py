"""The README's promises, executed: every shell block and every Python block, in order."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    return BLOCK.findall(README.read_text(encoding="utf-8"))


def run(arguments: list[str], folder: Path) -> None:
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("desk")


@pytest.mark.parametrize(("language", "text"), blocks())
def test_block_runs(language, text, desk):
    if language == "python":
        run([sys.executable, "-c", text], desk)
        return
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words or words[0] == "pip":
            continue  # installing is tested where it can be: in a fresh environment, by .ci/run
        assert words[0] == "labelclean", f"the README test knows only labelclean, not {words[0]}"
        run([sys.executable, "-m", "labelclean", *words[1:]], desk)


def test_the_two_commands_are_there():
    text = README.read_text(encoding="utf-8")
    assert "pip install . && labelclean demo" in text
    assert "pip install '.[test]' && pytest" in text
