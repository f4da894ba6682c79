"""The READMEs' promises, executed: every shell block and every Python block, in order."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from labelclean.cli import cli

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
EXECUTED = (README, ROOT / "labelclean" / "README.md")
ALL = (*EXECUTED, ROOT / "recipes" / "README.md", ROOT / "tests" / "README.md")
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SOURCE = re.compile(r"`((?:[\w.]+/)*\w+\.(?:py|toml))`")
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
STEP = re.compile(r"^\|[^|]*\| `([\w/]+\.py)` \| (`\w+`(?:, `\w+`)*) \|$", re.MULTILINE)
AUDIT = "audit digits/dataset.csv --out digits/run"


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def example(language: str) -> list[str]:
    """The lines of the front page's only block in a language."""
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", read(README), re.MULTILINE | re.DOTALL)
    return text.splitlines()


def anchors(text: str) -> list[str]:
    """The names by which headings are linked to."""
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return [re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads]


def run(arguments: list[str], folder: Path) -> str:
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("reader")


@pytest.fixture(scope="module")
def printed() -> dict[str, str]:
    """What each labelclean command of the blocks so far printed."""
    return {}


@pytest.mark.parametrize(
    ("language", "text"), [block for path in EXECUTED for block in BLOCK.findall(read(path))]
)
def test_block_runs(language, text, folder, printed):
    if language == "python":
        run([sys.executable, "-c", text], folder)
        return
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words or words[0] == "pip":
            continue  # installing is tested where it can be: in a fresh environment, by .ci/run
        assert words[0] == "labelclean", f"the README test knows only labelclean, not {words[0]}"
        said = run([sys.executable, "-m", "labelclean", *words[1:]], folder)
        printed[" ".join(words[1:])] = said


def test_the_sample_table_and_the_sample_output_are_real(folder, printed):
    assert AUDIT in printed, "run the whole file: the blocks come first"
    table = read(folder / "digits" / "dataset.csv").splitlines()
    sample = example("csv")
    assert table[: len(sample)] == sample
    said = printed[AUDIT].replace("\\", "/").splitlines()
    # Figures may differ in the last digit between machines; words may not.
    words = [line for line in example("text") if not re.search(r"\d", line)]
    assert words
    assert [line for line in words if line not in said] == []


def test_the_two_commands_are_there():
    lines = read(README).splitlines()
    assert "pip install . && labelclean demo" in lines
    assert "pip install '.[test]' && pytest" in lines
    assert len(lines) <= 200


@pytest.mark.parametrize("path", ALL, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_named_exists(path):
    text = read(path)
    files = {
        found.relative_to(ROOT).as_posix()
        for room in ("labelclean", "recipes", "tests")
        for found in (ROOT / room).rglob("*")
    } | {found.name for found in ROOT.iterdir()}
    for name in SOURCE.findall(text):
        assert any(f"/{file}".endswith(f"/{name}") for file in files), name
    for target, anchor in LINK.findall(text):
        found = path.parent / target if target else path
        assert found.exists(), target
        assert not anchor or anchor in anchors(read(found)), anchor


def test_the_way_of_an_audit_names_functions_that_exist():
    steps = STEP.findall(read(ROOT / "labelclean" / "README.md"))
    assert len(steps) > 20
    for file, names in steps:
        source = read(ROOT / "labelclean" / file)
        for name in re.findall(r"\w+", names):
            assert re.search(rf"^ *(def|class) {name}\b", source, re.MULTILINE), f"{file} {name}"


def test_the_dockerfile_installs_as_the_front_page_says():
    """No engine runs it here: its words are held to the front page's and to our own parser."""
    inside = read(ROOT / "labelclean" / "README.md")
    (text,) = re.findall(r"^```dockerfile\n(.*?)^```$", inside, re.MULTILINE | re.DOTALL)
    steps = [line.split(" ", 1) for line in text.splitlines()]
    assert [word for word, _ in steps] == [
        "FROM", "RUN", "WORKDIR", "COPY", "RUN", "ENV", "WORKDIR", "ENTRYPOINT"
    ]  # fmt: skip
    front = read(README)
    for word, rest in steps:
        if word == "RUN":
            assert re.search(rf"^{re.escape(rest)} &&|`{re.escape(rest)}`", front, re.MULTILINE)
    version = re.search(r"python:(\d+\.\d+)", text)
    with (ROOT / "pyproject.toml").open("rb") as file:
        oldest = tomllib.load(file)["project"]["requires-python"].removeprefix(">=")
    assert version is not None
    assert [int(n) for n in version[1].split(".")] >= [int(n) for n in oldest.split(".")]
    assert "ENV LABELCLEAN_CACHE=" in text
    (called,) = re.findall(r"^docker run .* labelclean (.*)$", inside, re.MULTILINE)
    name, *words = shlex.split(called)
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.make_context(name, words).params["manifest"] == "dataset.csv"
