"""An audit by several processes: the data, the command of one, and two hosts to run them on."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

HERE = Path(__file__).resolve().parent
ODD = 203  # neither even nor a multiple of three
HOSTS = ("10.213.77.1", "10.213.77.2")


def write_digits(folder: Path) -> Path:
    """Write features of four classes, the first twenty labels wrong."""
    table = load_digits(n_class=4)
    label = table.target[:ODD].copy()
    label[:20] = (label[:20] + 1) % 4
    path = folder / "digits.npz"
    np.savez(path, X=table.data[:ODD].astype(np.float32), y=label)
    return path


def audit_command(manifest: Path, out: Path, *flags: str) -> list[str]:
    """Give what follows `torchrun ...`."""
    return [str(HERE / "dying_rank.py"), "audit", str(manifest), "--out", str(out),
            "--loss", "nal", "--epochs", "6", "--threads", "1", "--device", "cpu", "--quiet",
            *flags]  # fmt: skip


def environment(**more: str) -> dict[str, str]:
    """Give the environment of the processes."""
    paths = os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", **more}


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)


@contextmanager
def two_hosts() -> Iterator[list[str]]:
    """Give the names of two network namespaces with one cable between them, and nothing else.

    Raises:
        OSError, subprocess.SubprocessError: They cannot be made here.
    """
    names = [f"lc{os.getpid()}{side}" for side in "ab"]
    made: list[str] = []
    try:
        for name in names:
            _ip("netns", "add", name)
            made.append(name)
        _ip("link", "add", "lc0", "netns", names[0], "type", "veth",
            "peer", "name", "lc0", "netns", names[1])  # fmt: skip
        for name, address in zip(names, HOSTS, strict=True):
            _ip("-n", name, "addr", "add", f"{address}/30", "dev", "lc0")
            _ip("-n", name, "link", "set", "lc0", "up")
            _ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in made:
            _ip("netns", "del", name)


def launch_on(
    hosts: list[str], manifest: Path, out: Path, *flags: str, **fault: str
) -> list[tuple[int, str]]:
    """Run one process on each host; give exit code and messages of both."""
    started = []
    for rank, host in enumerate(hosts):
        run = ["ip", "netns", "exec", host, sys.executable, "-m", "torch.distributed.run",
               f"--nnodes={len(hosts)}", f"--node-rank={rank}", "--nproc-per-node=1",
               f"--master-addr={HOSTS[0]}", "--master-port=29511"]  # fmt: skip
        process = subprocess.Popen(
            [*run, *audit_command(manifest, out, *flags)],
            env=environment(GLOO_SOCKET_IFNAME="lc0", **fault),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
    ends = []
    try:
        for process in started:
            _, said = process.communicate(timeout=900)
            ends.append((process.returncode, said))
    finally:
        for process in started:
            process.kill()
    return ends
