"""Who does the shards of an audit: processes of this machine, or a Ray cluster."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any

import torch
from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.process_executor import BrokenProcessPool

from labelclean.data.manifest import Manifest
from labelclean.errors import ConfigError, LabelCleanError
from labelclean.options import Log, OnProgress, RunOptions
from labelclean.recipe import Recipe
from labelclean.training.parts import PartStore
from labelclean.training.runtime import Runtime
from labelclean.workflows.part_plan import plan_parts
from labelclean.workflows.part_worker import Done, describe_workers, do_part

LOCAL, RAY, WORKERS = "local", "ray", "workers"
"""Engines; the last one leaves the work to `labelclean worker`."""
_ATTEMPTS = 3


def do_parts(
    store: PartStore, engine: str, processes: int, log: Log, on_progress: OnProgress
) -> list[Done]:
    """Do all parts that are not done yet.

    Args:
        store: The plan and its parts.
        engine: LOCAL or RAY.
        processes: How many parts are done at a time on this machine.
        log: Told what every worker did.
        on_progress: Told how many rows are done.

    Raises:
        LabelCleanError: Workers died again and again, or a part cannot be done.
    """
    total = store.plan.bounds[-1]
    run = _with_ray if engine == RAY else _with_processes
    found: list[Done] = []
    for _ in range(_ATTEMPTS):
        missing = store.missing()
        rows = total - sum(_rows(store, number) for number in missing)
        on_progress(rows, total)
        if not missing:
            break
        for done in run(store, missing, processes):
            found.append(done)
            rows += _rows(store, done.number)
            on_progress(min(rows, total), total)
    missing = store.missing()
    if missing:
        raise LabelCleanError(
            f"{len(missing)} of {len(store.plan.parts)} shards are not done: the processes that "
            "worked on them ended, killed or out of memory. Go on with --resume, with fewer "
            "--workers if memory is short."
        )
    for line in describe_workers(store):
        log(line)
    return found


def _rows(store: PartStore, number: int) -> int:
    rows = store.plan.rows(number)
    return int(rows.stop - rows.start)


def _with_processes(store: PartStore, numbers: Sequence[int], processes: int) -> Iterator[Done]:
    work, mark = str(store.folder.parent), store.plan.mark
    if min(processes, len(numbers)) <= 1:
        threads = torch.get_num_threads()
        yield from (do_part(work, mark, number, threads) for number in numbers)
        return
    pool = ProcessPoolExecutor(min(processes, len(numbers)))
    try:
        waiting = [pool.submit(do_part, work, mark, number, 1) for number in numbers]
        for future in as_completed(waiting):
            yield future.result()
    except BrokenProcessPool:
        return  # what it did is done; the rest is tried again
    finally:
        pool.shutdown(wait=True, kill_workers=True)


def _with_ray(store: PartStore, numbers: Sequence[int], processes: int) -> Iterator[Done]:
    """Let a Ray cluster do parts: the one that is running, or one of this machine."""
    try:
        import ray  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise ConfigError("--engine ray needs Ray: pip install 'labelclean[ray]'.") from error
    if not ray.is_initialized():
        address = os.environ.get("RAY_ADDRESS")
        local: Mapping[str, Any] = {} if address else {"num_cpus": max(1, processes)}
        ray.init(address=address, log_to_driver=False, **local)
    # Nodes may come and go: Ray gives a part that was lost with its node to another one.
    gpus = 1 if store.plan.device == "cuda" else 0
    task = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=-1)(do_part)
    work, mark = str(store.folder.parent.absolute()), store.plan.mark
    waiting = [task.remote(work, mark, number, 1) for number in numbers]
    try:
        while waiting:
            ready, waiting = ray.wait(waiting, num_returns=1)
            yield from ray.get(ready)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, LabelCleanError):
            raise error.cause from error
        raise


def shared_out(
    manifest: Manifest,
    recipe: Recipe,
    runtime: Runtime,
    options: RunOptions,
    work: Path | None,
    claim: Callable[[], object] | None,
) -> PartStore | None:
    """Have an engine do all shards, if one is asked for; None: none is.

    Args:
        manifest: The samples.
        recipe: Every setting.
        runtime: Where the audit computes.
        options: Names the engine.
        work: The run's working folder.
        claim: Makes it ready.
    """
    if options.engine is None or work is None:
        return None
    if claim is not None:
        claim()
    store = plan_parts(manifest, recipe, runtime, work)
    # A second process on a GPU would only hold the network twice.
    alone = runtime.device.type != "cpu"
    processes = 1 if alone else recipe.data.workers or runtime.threads
    with options.progress("shards") as on_progress:
        do_parts(store, options.engine, processes, options.log, on_progress)
    return store
