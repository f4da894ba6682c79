"""Make the k-th write of this process go wrong: it is killed there, or the write fails.

Everything that changes a file below one folder is counted: opening for writing, each write, sync,
rename, removal, new folder, and the end of a training epoch. At the chosen one the process kills
itself with SIGKILL (half of a write has reached the file by then), or the call raises OSError.
Nothing of this is in the package: functions of the standard library are replaced in the child.
"""

import builtins
import errno
import io
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path

KILL = "kill"
ERRORS = {name: getattr(errno, name) for name in ("ENOSPC", "EACCES", "EIO")}
_WRITING = set("wax+")


@dataclass
class Trap:
    """Counts what changes files below a folder; goes off once."""

    root: Path
    at: int = -1
    what: str = KILL
    count: int = 0
    log: list[str] = field(default_factory=list)

    def step(self, kind: str, name: object = "", torn: object = None) -> None:
        """Count one operation; `torn` writes a part before the process dies."""
        here = self.count
        self.count += 1
        self.log.append(f"{kind} {Path(str(name)).name}")
        if here != self.at:
            return
        if self.what == KILL:
            if torn is not None:
                torn()
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(ERRORS[self.what], os.strerror(ERRORS[self.what]), str(name))

    def below(self, path: object) -> bool:
        """Whether a path lies in the watched folder."""
        if not isinstance(path, str | os.PathLike):
            return False
        return str(Path(os.fspath(path)).absolute()).startswith(str(self.root))

    def spring(self) -> None:
        """Replace the functions that change files, for the rest of this process."""
        self._watch_files()
        for name in ("replace", "rename", "unlink", "remove", "rmdir", "mkdir", "truncate"):
            self._watch(name)
        real = os.fsync
        names = self._names

        def fsync(handle: int) -> None:
            if self.below(names(handle)):
                self.step("fsync", names(handle))
            real(handle)

        os.fsync = fsync
        if "labelclean.records.recorder" in sys.modules:
            self._watch_epochs(sys.modules["labelclean.records.recorder"].Recorder)

    @staticmethod
    def _names(handle: int) -> str:
        try:
            return str(Path(f"/proc/self/fd/{handle}").readlink())
        except OSError:
            return ""

    def _watch(self, name: str) -> None:
        real = getattr(os, name)

        def call(path, *rest, **more):
            if more.get("dir_fd") is not None or self.below(path):
                self.step(name, path)
            return real(path, *rest, **more)

        setattr(os, name, call)

    def _watch_epochs(self, recorder: type) -> None:
        real = recorder.after_epoch

        def after_epoch(this, *arguments, **more):
            self.step("epoch")
            return real(this, *arguments, **more)

        recorder.after_epoch = after_epoch

    def _watch_files(self) -> None:
        trap, real = self, io.open

        class Watched(io.FileIO):
            def write(self, data):
                part = memoryview(data).cast("B")
                half = part[: len(part) // 2]
                trap.step("write", self.name, lambda: super(Watched, self).write(half))
                return super().write(data)

        def opened(path, mode="r", buffering=-1, *rest, **more):
            if not (_WRITING & set(mode) and "b" in mode and trap.below(path)):
                return real(path, mode, buffering, *rest, **more)
            trap.step("open", path)
            raw = Watched(os.fspath(path), mode.replace("b", "").replace("t", ""))
            return io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)

        io.open = opened
        builtins.open = opened
