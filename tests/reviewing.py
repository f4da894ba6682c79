"""A run with pictures and hostile names, and a real review server to talk to."""

import http.client
import json
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
from PIL import Image

from planted import command, opinions

CLASSES = ("<script>alert(1)</script>", "say \"x\" & 'y'", "\u202ertl" + "n" * 300)
ROWS = 80
DAMAGED, OUTSIDE, LARGE = 3, 4, 5
PLACE = 0x8825  # where a camera says it was


def pictured(folder: Path, rows: int = ROWS) -> Path:
    """Write pictures, audit probabilities about them, give the run folder; 16 labels are wrong."""
    rng = np.random.default_rng(3)
    true = rng.integers(0, 3, rows)
    given = np.where(np.arange(rows) % 5 == 0, (true + 1) % 3, true)
    (folder / "images").mkdir(parents=True)
    paths = []
    for row in range(rows):
        pixels = rng.integers(0, 256, (24, 20, 3), dtype=np.uint8)
        name = f"images/<b>{row}.jpg" if row == 0 else f"images/{row}.jpg"
        exif = Image.Exif()
        exif[PLACE] = {1: "N", 2: (52.0, 31.0, 12.0)}
        size = (1200, 900) if row == LARGE else (20, 24)
        Image.fromarray(pixels).resize(size).save(folder / name, exif=exif)
        paths.append(name)
    (folder / paths[DAMAGED]).write_bytes(b"no picture")
    Image.new("RGB", (8, 8)).save(folder.parent / f"{folder.name}-secret.png")
    paths[OUTSIDE] = f"../{folder.name}-secret.png"
    names = np.array(CLASSES)
    frame = pd.DataFrame({"image": paths, "label": names[given], "true": names[true]})
    frame["sample_id"] = [f"id {row} <i>" for row in range(rows)]
    frame.to_csv(folder / "data.csv", index=False)
    order = np.argsort(names)  # probabilities are in the order of the classes
    np.save(folder / "probs.npy", opinions(true, 3)[:, order].astype(np.float32))
    flags = ("--pred-probs", folder / "probs.npy", "--out", folder / "run", "--allow-outside-root")
    done = command("audit", folder / "data.csv", *flags)
    assert done.exit_code == 0, done.output
    return folder / "run"


@dataclass
class Answer:
    """What the server said."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self):
        return json.loads(self.content)


@dataclass
class Server:
    """A review server in its own process."""

    run: Path
    flags: tuple[str, ...] = ()
    process: subprocess.Popen | None = None
    said: dict = field(default_factory=dict)

    def __enter__(self) -> "Server":
        words = [sys.executable, "-m", "labelclean", "review", self.run, "--no-open", "--json"]
        self.process = subprocess.Popen(
            [*map(str, words), *self.flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read().decode()
        self.said = json.loads(line)
        return self

    def __exit__(self, *_) -> None:
        self.process.kill()
        self.process.communicate()

    @property
    def port(self) -> int:
        return urlsplit(self.said["url"]).port

    @property
    def home(self) -> str:
        return urlsplit(self.said["url"]).path

    def ask(self, method: str, target: str, body: bytes | None = None, headers=None) -> Answer:
        """Send one request to a path as it is; a Host given among the headers replaces ours."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        given = {name.lower() for name in headers or {}}
        connection.putrequest(method, target, skip_host="host" in given)
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        got = connection.getresponse()
        answer = Answer(got.status, dict(got.getheaders()), got.read())
        connection.close()
        return answer

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", self.home + path, headers=headers)

    def post(self, path: str, entry: object, **headers: str) -> Answer:
        kinds = {"Content-Type": "application/json", **headers}
        return self.ask("POST", self.home + path, json.dumps(entry).encode(), kinds)

    def decide(self, row: int, decision: str = "confirm", label: str | None = None) -> Answer:
        entry = {"row": row, "sample_id": f"id {row} <i>", "decision": decision, "label": label}
        return self.post("api/decisions", entry)

    def interrupt(self) -> tuple[int, str]:
        """Press Ctrl-C; give the exit code and what was said."""
        self.process.send_signal(signal.SIGINT)
        _, words = self.process.communicate(timeout=30)
        return self.process.returncode, words.decode()


def lines(run: Path) -> list[dict]:
    """Read decisions.jsonl."""
    text = (run / "decisions.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
