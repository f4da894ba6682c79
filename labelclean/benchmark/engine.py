"""The engine's promises, measured: speed, cache, processes, restarts."""

import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from scipy.stats import spearmanr

from labelclean.benchmark.extraction import ExtractionCase, time_extraction
from labelclean.benchmark.other_engines import (
    engine_difference,
    multiply_adds,
    other_engines,
    product_pace,
)
from labelclean.data.read import read_manifest
from labelclean.errors import TrainingError
from labelclean.losses import build
from labelclean.models.settings import ModelSettings
from labelclean.options import Clock, no_progress
from labelclean.records.records import Records
from labelclean.records.store import records_from_table
from labelclean.training.fit import Fitter
from labelclean.training.runtime import start_runtime
from labelclean.training.samples import Samples
from labelclean.training.settings import TrainSettings

_WIDTH, _CLASSES = 1280, 10


@dataclass(frozen=True, slots=True)
class EngineFinding:
    """One line of the table.

    Args:
        name: What was measured.
        value: The number.
        limit: What we promise, as text with the sign of the comparison; empty: no promise.
        kept: Whether the promise is kept.
    """

    name: str
    value: float
    limit: str = ""
    kept: bool = True


def measure_engine(
    case: ExtractionCase, *, rounds: int, kills: int, seed: int
) -> Iterator[EngineFinding]:
    """Measure everything, one finding after the other."""
    speed, middle = measure_engine_speed(case, rounds)
    yield from speed
    rows = len(read_manifest(case.manifest, limit=case.limit))
    yield from measure_limit(case, rows, middle["bare"])
    for name in other_engines():
        difference = engine_difference(case, name)
        yield limited_to(f"{name}, largest difference of a feature", difference, 1e-3)
    yield from measure_head(rows, middle["ours"], case.threads)
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(case, Path(folder))
        yield from measure_audit(runs, middle["bare"])
        yield from measure_cache(runs)
        yield from measure_processes(runs)
        yield from measure_kills(runs, kills, seed)


def limited_to(name: str, value: float, limit: float) -> EngineFinding:
    """Promise that a value is no larger."""
    return EngineFinding(name, value, f"<= {limit:g}", value <= limit)


def at_least(name: str, value: float, limit: float) -> EngineFinding:
    """Promise that a value is no smaller."""
    return EngineFinding(name, value, f">= {limit:g}", value >= limit)


def measure_engine_speed(
    case: ExtractionCase, rounds: int
) -> tuple[list[EngineFinding], dict[str, float]]:
    """Measure extraction; gives the findings and the median seconds of every contestant."""
    engines = other_engines()
    seconds = time_extraction(case, rounds, engines)
    middle = {name: statistics.median(values) for name, values in seconds.items()}
    # Ratios within a round: what else the machine does changes from round to round.
    pairs = list(zip(seconds["ours"], seconds["bare"], seconds["plain"], strict=True))
    findings = [
        *(EngineFinding(f"{name} extraction, seconds", value) for name, value in middle.items()),
        limited_to("ours / bare forward pass", statistics.median(o / b for o, b, _ in pairs), 1.3),
        at_least("plain loop / ours", statistics.median(p / o for o, _, p in pairs), 1.5),
        *_beside_engines(seconds, list(engines)),
    ]
    return findings, middle


def _beside_engines(seconds: Mapping[str, list[float]], names: list[str]) -> list[EngineFinding]:
    """Compare our bare forward pass with the other engines', round by round."""
    return [
        EngineFinding(
            f"{name} / bare forward pass",
            statistics.median(e / b for e, b in zip(seconds[name], seconds["bare"], strict=True)),
        )
        for name in names
    ]


def measure_limit(case: ExtractionCase, rows: int, seconds: float) -> list[EngineFinding]:
    """Say how much of what large matrix products reach the bare forward pass reaches."""
    pace = multiply_adds(case) * rows / seconds
    return [
        EngineFinding("bare forward pass, multiply-adds a second", pace),
        EngineFinding("the same / large matrix products", pace / product_pace(case)),
    ]


def measure_audit(runs: "Runs", bare_seconds: float) -> list[EngineFinding]:
    """Audit with an empty cache and default settings, beside the bare forward pass."""
    cache = ("--cache-dir", str(runs.folder / "cache-whole"))
    timings = runs.audit("whole-audit", *cache)["timings"]
    phases = sum(timings.values()) - timings["total"]
    return [
        EngineFinding("whole audit, seconds", timings["total"]),
        limited_to("whole audit / bare forward pass", timings["total"] / bare_seconds, 1.25),
        at_least("phases of run.json / total", phases / timings["total"], 0.97),
    ]


def measure_head(rows: int, extraction: float, threads: int | None) -> list[EngineFinding]:
    """Time 20 epochs of a linear head with imae on (rows, 1280) features."""
    generator = np.random.default_rng(0)
    label = generator.integers(0, _CLASSES, rows)
    matrix = generator.normal(size=(rows, _WIDTH)).astype(np.float32)
    samples = Samples(
        source=matrix,
        rows=np.arange(rows),
        digest=np.zeros((rows, 32), np.uint8),
        trained=rows,
        label=label,
        weight=np.ones(rows, np.float32),
        sample_id=np.arange(rows).astype(object),
        num_classes=_CLASSES,
        picture_side=None,
    )
    training = TrainSettings(epochs=20).resolved("head", rows)
    runtime = start_runtime("cpu", threads=threads)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        fitter = Fitter(
            samples, ModelSettings(), training, runtime, decoders=1, cache=place, workspace=place
        )
        clock = Clock()
        fitter.fit(build("imae"), clock.timed(no_progress))
        seconds = clock.timings()["train"]
    return [
        EngineFinding("head training, seconds", seconds),
        limited_to("head training / extraction", seconds / extraction, 0.25),
    ]


class Runs:
    """Audits of one manifest by the command line, in a folder of their own.

    Args:
        case: What to audit.
        folder: Where.
    """

    def __init__(self, case: ExtractionCase, folder: Path) -> None:
        self.case, self.folder = case, folder

    def command(self, name: str, *flags: str, processes: int = 1) -> list[str]:
        """Give the command of an audit into the folder `name`."""
        launch = [sys.executable, "-m"]
        if processes > 1:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            count = f"--nproc-per-node={processes}"
            launch += ["torch.distributed.run", count, f"--master-port={port}", "-m"]
        case = self.case
        limit = [] if case.limit is None else ["--limit", str(case.limit)]
        size = ["--backbone", case.backbone, "--set", f"model.image_size={case.size}"]
        place = ["--device", "cpu", "--mode", "head", "--out", str(self.folder / name)]
        return [*launch, "labelclean", "audit", case.manifest, *limit, *size, *place, *flags]

    def audit(self, name: str, *flags: str, processes: int = 1) -> dict[str, dict[str, float]]:
        """Run an audit to its end; gives what run.json says."""
        arguments = self.command(name, *flags, processes=processes)
        done = subprocess.run(  # noqa: S603 (our own command)
            arguments, capture_output=True, text=True, check=False, env=_environment()
        )
        if done.returncode != 0:
            raise TrainingError(f"{' '.join(arguments)} failed:\n{done.stderr}")
        facts: dict[str, dict[str, float]] = json.loads(
            (self.folder / name / "run.json").read_text(encoding="utf-8")
        )
        return facts

    def records(self, name: str) -> Records:
        """Read the records of a finished audit."""
        return records_from_table(pq.read_table(self.folder / name / "records.parquet"))

    def kill(self, name: str, seconds: float, *flags: str) -> bool:
        """Start an audit and kill it so many seconds after its plan; give whether it was alive."""
        with subprocess.Popen(  # noqa: S603 (our own command)
            self.command(name, *flags),
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=_environment(),
        ) as run:
            if run.stderr is not None:
                run.stderr.readline()
            time.sleep(seconds)
            alive = run.poll() is None
            run.kill()
        return alive


def _environment() -> dict[str, str]:
    # A checkout that is not installed is found by the processes we start, too.
    root = str(Path(__file__).resolve().parents[2])
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": root if not known else os.pathsep.join((root, known))}


def measure_cache(runs: Runs) -> list[EngineFinding]:
    """Audit twice with different losses; the second time features come from the cache."""
    cache = ("--cache-dir", str(runs.folder / "cache"))
    first = runs.audit("first", "--loss", "imae", *cache)["timings"]["features"]
    second = runs.audit("second", "--loss", "gce", *cache)["timings"]["features"]
    return [
        EngineFinding("features of a first audit, seconds", first),
        limited_to("features of a second audit / first", second / first, 0.05),
    ]


def measure_processes(runs: Runs) -> list[EngineFinding]:
    """Compare the records of two processes with those of one."""
    cache = ("--cache-dir", str(runs.folder / "cache-two"))
    runs.audit("two", "--loss", "imae", *cache, processes=2)
    one, two = runs.records("first"), runs.records("two")
    own = np.arange(len(one.label)), one.label
    agreement = float(spearmanr(one.probs[own], two.probs[own]).statistic)
    difference = float(np.abs(one.probs - two.probs).max())
    unseen = 0 if two.p_given is None else int(np.isnan(two.p_given).sum())
    return [
        limited_to("two processes, largest difference of p", difference, 1e-4),
        at_least("two processes, Spearman of the ranking", agreement, 0.999),
        limited_to("two processes, samples not recorded", unseen, 0),
    ]


def measure_kills(runs: Runs, kills: int, seed: int) -> list[EngineFinding]:
    """Kill audits at random moments, resume them, and compare their bytes."""
    flags = ("--loss", "nal", "--cache-dir", str(runs.folder / "cache"))
    # Killed runs find the features in the cache, so the length that counts is that of such a run.
    runs.audit("warm", *flags)
    whole = runs.audit("whole", *flags)["timings"]
    length = whole["features"] + whole["train"] + whole["score"] + whole["write"]
    expected = (runs.folder / "whole" / "records.parquet").read_bytes()
    draw = random.Random(seed)  # noqa: S311 (moments, not secrets)
    same = alive = 0
    for number in range(kills):
        name = f"killed-{number}"
        alive += runs.kill(name, draw.uniform(0, length), *flags)
        runs.audit(name, *flags, "--resume")
        same += (runs.folder / name / "records.parquet").read_bytes() == expected
    return [
        EngineFinding("runs killed while they worked", alive),
        at_least("of these and the others, resumed to the same bytes", same, kills),
    ]
