"""What is interrupted: commands on small data, how to go on, and what must come out."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from finished_runs import small, write_features, write_pictures
from planted import plant

QUIET = ("--threads", "1", "--workers", "1", "--quiet")
TABLES = ("run/issues.parquet", "run/corrected.parquet", "run/records.parquet")
MODEL = "run/model/model.safetensors"


@dataclass(frozen=True)
class Scene:
    """A command inside a folder of its own.

    Args:
        name: For the table.
        command: Gives the arguments, told the folder.
        again: What is added to go on after the fault.
        whole: Files that must be as in an undisturbed run; under their name they are so always.
        mark: File that says all is done; None: the files themselves.
        needs: Folders and files of the stage that are copied in first.
        before: Command that prepares the folder, if it takes one.
    """

    name: str
    command: Callable[[Path], list[object]]
    whole: tuple[str, ...]
    again: tuple[str, ...] = ()
    mark: str | None = None
    needs: tuple[str, ...] = ()
    quick: bool = False
    old: tuple[str, ...] = field(default=())

    def arguments(self, folder: Path, *more: str) -> list[str]:
        return [*map(str, self.command(folder)), *more]

    def lay_out(self, stage: Path, folder: Path) -> None:
        """Copy what the command needs into a new folder."""
        folder.mkdir(parents=True)
        for name in self.needs:
            source, target = stage / name, folder / Path(name).name
            if source.is_dir():
                shutil.copytree(source, target)
            else:
                shutil.copyfile(source, target)


def build_inputs(stage: Path) -> None:
    """Write the small data sets."""
    plant(stage / "planted", rows=90, planted=9)
    decisions = [{"row": row, "sample_id": f"s{row}", "decision": "drop"} for row in (20, 40)]
    lines = "".join(json.dumps(line) + "\n" for line in decisions)
    (stage / "planted/decisions.jsonl").write_text(lines, encoding="utf-8")
    write_pictures(stage / "pictures")
    write_features(stage / "digits.npz")


def _probs(folder: Path) -> list[object]:
    data = folder / "planted"
    return ["audit", data / "data.csv", "--pred-probs", data / "probs.npy",
            "--out", folder / "run", *QUIET]  # fmt: skip


def _features(folder: Path) -> list[object]:
    data = folder / "planted"
    return ["audit", data / "data.csv", "--features", data / "features.npy", "--loss", "nal",
            "--epochs", 4, "--out", folder / "run", *QUIET]  # fmt: skip


def _pictures(folder: Path, *flags: object) -> list[object]:
    return ["audit", folder / "pictures/digits.csv", "--out", folder / "run",
            *small(folder / "cache"), *flags, *QUIET]  # fmt: skip


def _whole_network(folder: Path) -> list[object]:
    return _pictures(folder, "--mode", "finetune", "--set", "training.batch_size=32")


def _npz(folder: Path) -> list[object]:
    return ["audit", folder / "digits.npz", "--loss", "gce", "--epochs", 2,
            "--out", folder / "run", *QUIET]  # fmt: skip


def _export(target: str, *flags: object) -> Callable[[Path], list[object]]:
    def command(folder: Path) -> list[object]:
        return ["export", folder / "run", folder / target, "--manifest",
                folder / "planted/data.csv", *flags]  # fmt: skip

    return command


def _predict(folder: Path) -> list[object]:
    return ["predict", folder / "run", folder / "digits.npz", "--out", folder / "said.parquet",
            *QUIET]  # fmt: skip


def _inject(folder: Path) -> list[object]:
    return ["inject", folder / "digits.npz", "--noise", "symmetric", "--rate", "0.2",
            "--out", folder / "noisy.npz"]  # fmt: skip


SCENES = (
    Scene("audit --pred-probs", _probs, TABLES, ("--resume",), "run/run.json", ("planted",), True),
    Scene("audit --features", _features, (*TABLES, MODEL), ("--resume",), "run/run.json",
          ("planted",), True),
    Scene("audit of pictures", _pictures, (*TABLES, MODEL), ("--resume",), "run/run.json",
          ("pictures",)),
    Scene("audit of pictures, whole network", _whole_network, (*TABLES, MODEL), ("--resume",),
          "run/run.json", ("pictures",)),
    Scene("audit --overwrite", lambda folder: [*_features(folder), "--overwrite"],
          (*TABLES, MODEL), (), "run/run.json", ("planted", "probs/run"), old=TABLES),
    Scene("report", lambda folder: ["report", folder / "run", "--manifest",
          folder / "planted/data.csv", "--decisions", folder / "planted/decisions.jsonl"],
          TABLES, (), "run/run.json", ("planted", "probs/run"), True),
    Scene("retrain", lambda folder: ["retrain", folder / "run", *QUIET],
          ("run/retrain/model/model.safetensors", *TABLES), ("--overwrite",),
          "run/retrain/run.json", ("digits.npz", "npz/run")),
    Scene("export .csv", _export("out.csv"), ("out.csv",), ("--overwrite",), None,
          ("planted", "probs/run"), True),
    Scene("export .parquet", _export("out.parquet"), ("out.parquet",), ("--overwrite",), None,
          ("planted", "probs/run"), True),
    Scene("export .patch.jsonl", _export("out.patch.jsonl"), ("out.patch.jsonl",),
          ("--overwrite",), None, ("planted", "probs/run")),
    Scene("predict", _predict, ("said.parquet",), (), None, ("digits.npz", "npz/run")),
    Scene("inject", _inject, ("noisy.npz", "noisy.npz.noise.json"), (), None, ("digits.npz",)),
)  # fmt: skip

FINISHED = {"probs": (_probs, ("planted",)), "npz": (_npz, ("digits.npz",))}
"""Runs that some scenes start from."""
