"""Does shards of an audit: the same steps in whatever process, on whatever machine."""

import json
import os
import platform
import time
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow.parquet as pq

from labelclean.atomic import write_bytes
from labelclean.data.images import ImageLimits
from labelclean.data.opening import open_manifest
from labelclean.data.places import as_place
from labelclean.data.settings import DataSettings
from labelclean.data.sources import ImageSource, open_source, path_source
from labelclean.errors import DataError
from labelclean.models.settings import ModelSettings
from labelclean.training.features import Extractor
from labelclean.training.parts import PATHS, PartPlan, PartStore, build_extractor, compute_part
from labelclean.training.runtime import start_runtime


@dataclass(frozen=True, slots=True)
class Done:
    """What one worker did for one part.

    Args:
        number: The part.
        worker: Machine and process.
        rows: How many rows it has.
        seconds: How long it took.
    """

    number: int
    worker: str
    rows: int
    seconds: float


class PartWorker:
    """Does parts of a plan, one after the other.

    Args:
        work: The run's working folder.
        threads: Threads that decode and compute.
    """

    def __init__(self, work: Path, threads: int) -> None:
        plan = PartStore.stored_plan(work)
        if plan is None:
            raise DataError(
                f"{work.parent} has no shards to work on: begin with `labelclean audit MANIFEST "
                f"--out {work.parent} --engine workers`, or the audit has ended already."
            )
        self.store, self.plan = PartStore(work, plan), plan
        self.source = self._source(plan)
        self.extractor = self._extractor(plan, threads)

    def _extractor(self, plan: PartPlan, threads: int) -> Extractor:
        runtime = start_runtime(
            plan.device, threads=threads, seed=plan.seed, precision=plan.precision
        )
        model = ModelSettings(**plan.model)  # type: ignore[arg-type]
        extractor = build_extractor(model, plan.picture_side, runtime, threads)
        if extractor.key != plan.key:
            raise DataError(
                f"this worker would compute other features than the plan of {self.store.folder} "
                f"asks for: {_difference(plan.key, extractor.key)}. Install the same versions of "
                "labelclean, torch and Pillow everywhere, on the same kind of device."
            )
        return extractor

    def _source(self, plan: PartPlan) -> ImageSource:
        settings = DataSettings(**plan.settings)  # type: ignore[arg-type]
        limits = ImageLimits(settings.max_bytes, settings.max_pixels)
        if plan.root is not None:
            paths = pq.read_table(self.store.folder / PATHS)["path"].to_pylist()
            return path_source(paths, as_place(plan.root), settings.allow_outside_root, limits)
        # With its labels, by which --limit chooses rows.
        manifest = open_manifest(as_place(plan.manifest), settings)
        if manifest.digest != plan.digest:
            raise DataError(
                f"{manifest.source} is not what the shards were planned for; restore it, or begin "
                "again with --overwrite."
            )
        return open_source(manifest, limits)

    def do(self, number: int) -> Done:
        """Do a part, unless it is done already."""
        began, rows = time.perf_counter(), self.plan.rows(number)
        who = f"{platform.node()}:{os.getpid()}"
        if self.store.is_done(number):
            return Done(number, who, 0, 0.0)
        part = self.source.part(rows.start, rows.stop)
        self.store.write(number, compute_part(part, self.extractor, rows.start))
        done = Done(number, who, rows.stop - rows.start, time.perf_counter() - began)
        write_bytes(_note(self.store, number), json.dumps(asdict(done)).encode())
        return done


def _difference(planned: str, here: str) -> str:
    pairs = zip(planned.split(), here.split(), strict=False)
    return ", ".join(f"{one} there, {other} here" for one, other in pairs if one != other)


def _note(store: PartStore, number: int) -> Path:
    return store.path(number).with_suffix(".json")


@lru_cache(maxsize=1)
def _worker(work: str, mark: str, threads: int) -> PartWorker:
    """Give this process's worker, which keeps its network from part to part."""
    worker = PartWorker(Path(work), threads)
    if worker.plan.mark != mark:
        raise DataError(f"the plan in {work} was changed while it was worked on; start again.")
    return worker


def do_part(work: str, mark: str, number: int, threads: int) -> Done:
    """Do one part of a plan: what every engine runs, in whatever process."""
    return _worker(work, mark, threads).do(number)


def describe_workers(store: PartStore) -> list[str]:
    """Say what every worker did."""
    told: dict[str, list[Done]] = {}
    for number in store.plan.parts:
        try:
            done = Done(**json.loads(_note(store, number).read_bytes()))
        except (OSError, ValueError, TypeError):
            continue  # a note is only for people
        told.setdefault(done.worker, []).append(done)
    return [
        f"worker {worker}: {len(parts)} shards, {sum(part.rows for part in parts)} rows, "
        f"{sum(p.rows for p in parts) / max(1e-9, sum(p.seconds for p in parts)):.0f} rows a second"
        for worker, parts in sorted(told.items())
    ]
