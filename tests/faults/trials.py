"""One trial: a fault at one operation of a scene, what is left, and the way on."""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from faults.fork import KILLED, End, run
from faults.scenes import FINISHED, SCENES, Scene, build_inputs
from faults.trap import KILL
from labelclean.errors import LabelCleanError
from labelclean.runs.folder import RunFolder
from labelclean.runs.verify import verify_run

REMOVALS = ("unlink", "remove", "rmdir")


@dataclass(frozen=True)
class Undisturbed:
    """A scene that went well: its operations, what it wrote, what stood there before.

    `sizes` are those of all new files.
    """

    scene: Scene
    log: list[str]
    files: Mapping[str, bytes]
    before: Mapping[str, bytes]
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Trial:
    """What a fault led to; `faults` is empty where all was as it should be."""

    scene: str
    what: str
    operation: str
    faults: tuple[str, ...]


class Stage:
    """Inputs, finished runs and undisturbed results; every trial gets a folder of its own.

    Always the same folder, one after the other: paths are part of some results.
    """

    def __init__(self, folder: Path, scenes: tuple[Scene, ...] = SCENES) -> None:
        self.folder, self.theatre = folder, folder / "theatre"
        build_inputs(folder)
        for name, (command, needs) in FINISHED.items():
            if not any(f"{name}/run" in scene.needs for scene in scenes):
                continue
            made = Scene(name, command, (), needs=needs)
            made.lay_out(folder, self.theatre)
            end = run(made.arguments(self.theatre), self.theatre)
            if end.code:
                raise RuntimeError(end.text)
            shutil.copytree(self.theatre / "run", folder / name / "run")
            shutil.rmtree(self.theatre)
        self.undisturbed = [self._undisturbed(scene) for scene in scenes]

    def _undisturbed(self, scene: Scene) -> Undisturbed:
        scene.lay_out(self.folder, self.theatre)
        before = _read(self.theatre, scene.whole)
        old = set(self.theatre.rglob("*"))
        end = run(scene.arguments(self.theatre), self.theatre)
        if end.code:
            raise RuntimeError(f"{scene.name}: {end.text}")
        files = _read(self.theatre, scene.whole)
        if set(files) != set(scene.whole):
            raise RuntimeError(f"{scene.name} wrote {sorted(files)}")
        new = tuple(path.stat().st_size for path in set(self.theatre.rglob("*")) - old)
        shutil.rmtree(self.theatre)
        return Undisturbed(scene, end.log, files, before, new)

    def trial(self, known: Undisturbed, at: int, what: str) -> Trial:
        """Let operation `at` go wrong, look, go on, and compare."""
        operation = known.log[at].split()[0]
        words = known.scene.arguments(self.theatre)
        return self.hold(known, what, operation, lambda: run(words, self.theatre, at, what))

    def hold(
        self,
        known: Undisturbed,
        what: str,
        operation: str,
        disturbed: Callable[[], End],
        relieve: Callable[[], object] = lambda: None,
    ) -> Trial:
        """Run a scene disturbed, look at what is left, end the disturbance, go on, and compare.

        Args:
            known: How the scene goes undisturbed.
            what: The fault, for the table.
            operation: Where it strikes, for the table.
            disturbed: Runs the command in the folder that is laid out by then.
            relieve: Ends what goes on disturbing.
        """
        scene, folder = known.scene, self.theatre
        scene.lay_out(self.folder, folder)
        inputs = _digests(folder, scene)
        end = disturbed()
        relieve()
        faults = _ending(end, what)
        faults += [*_left(known, folder), *_whole(folder)]
        removal = operation in REMOVALS
        if what != KILL and end.code and not removal:
            faults += [f"{path.name} was left behind" for path in folder.rglob("*.part")]
        faults += [f"the input {name} changed" for name in _changed(inputs, folder, scene)]
        again = run(scene.arguments(folder, *scene.again), folder)
        if again.code:
            faults.append(f"could not go on: exit {again.code}: {again.text[-300:]}")
        found = _read(folder, scene.whole)
        faults += [
            f"{name} differs" for name in scene.whole if found.get(name) != known.files[name]
        ]
        faults += _whole(folder)
        # Beside a target of the user's own choice nobody but the user may remove anything.
        faults += [f"{path.name} remains" for path in (folder / "run").rglob("*.part")]
        shutil.rmtree(folder)
        return Trial(scene.name, what, operation, tuple(faults))


def _whole(folder: Path) -> list[str]:
    """Give what `labelclean verify` says of the run, if it claims to be finished."""
    if not RunFolder(folder / "run").complete:
        return []
    try:
        return [f"verify: {fault}" for fault in verify_run(folder / "run").faults]
    except LabelCleanError as error:
        return [f"verify: {error}"]


def _ending(end: End, what: str) -> list[str]:
    if what == KILL:
        return [] if end.code == KILLED else [f"was not killed: exit {end.code}"]
    if "Traceback" in end.text or end.code not in (0, 1):
        return [f"exit {end.code}: {end.text[-600:]}"]
    if end.code and "Error: " not in end.text:
        return [f"failed without a word: {end.text[-300:]}"]
    return []


def _left(known: Undisturbed, folder: Path) -> list[str]:
    """Find what stands under its name and is not whole."""
    found = _read(folder, known.scene.whole)
    faults = [
        f"{name} is half written"
        for name, content in found.items()
        if content not in (known.files[name], known.before.get(name))
    ]
    mark = known.scene.mark
    if mark is not None and (folder / mark).is_file():
        json.loads((folder / mark).read_bytes())
        mixed = found not in (known.files, known.before)
        faults += [f"{mark} says done, and it is not"] if mixed else []
    return faults


def _read(folder: Path, names: tuple[str, ...]) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in names if (folder / name).is_file()}


def _digests(folder: Path, scene: Scene) -> dict[str, str]:
    tops = {Path(name).name for name in scene.needs} - {"run"}
    paths = [path for top in tops for path in [folder / top, *(folder / top).rglob("*")]]
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
        if path.is_file()
    }


def _changed(before: Mapping[str, str], folder: Path, scene: Scene) -> list[str]:
    after = _digests(folder, scene)
    return [name for name, digest in before.items() if after.get(name) != digest]
