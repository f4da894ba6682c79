"""Shards of work: what a look at some rows and the frozen network say, in a file of its own.

A part is a run of consecutive rows. Computing it needs nothing but the plan and the pictures, so
any process on any machine may do any part, twice too: it appears whole or not at all, and says the
same whoever computed it.
"""

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from labelclean.atomic import atomic_path, write_bytes
from labelclean.data.looks import LIGHT, THUMBNAIL_SIDE
from labelclean.data.scan import DIGEST_BYTES, Scan, scan_images
from labelclean.data.sources import ImageSource
from labelclean.data.stored_images import RemotePart
from labelclean.errors import DataError
from labelclean.models.backbones import build_backbone
from labelclean.models.embedder import Embedder
from labelclean.models.settings import ModelSettings
from labelclean.training.batches import Rows
from labelclean.training.features import Extractor
from labelclean.training.pictures import Pictures
from labelclean.training.runtime import Runtime, one_thread_each

FOLDER, PLAN, PATHS = "parts", "plan.json", "paths.parquet"
_MARK = b"labelclean part"
_PIXELS = THUMBNAIL_SIDE**2


@dataclass(frozen=True, slots=True)
class PartPlan:
    """What every worker must agree on.

    Args:
        manifest: Where the manifest is.
        digest: SHA-256 of it.
        root: Where paths start from, if the pictures are named by paths; None: they are inside.
        settings: The [data] section.
        model: The [model] section, as the frozen network takes it.
        picture_side: Typical shorter side of the pictures, in pixels.
        device: Kind of device that computes.
        precision: How exactly; see `TrainSettings.precision`.
        seed: Seed of the run, of which networks without pretrained weights are drawn.
        key: Everything a feature depends on beside the picture; see `Extractor.key`.
        width: Number of features D.
        bounds: (P + 1,) rows where the P parts begin, and the number of all rows.
    """

    manifest: str
    digest: str
    root: str | None
    settings: Mapping[str, object]
    model: Mapping[str, object]
    picture_side: int | None
    device: str
    precision: str
    seed: int
    key: str
    width: int
    bounds: tuple[int, ...]

    @property
    def text(self) -> str:
        """The plan as it is stored."""
        return json.dumps(asdict(self), indent=1, sort_keys=True)

    @property
    def mark(self) -> str:
        """What tells this plan from others."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def parts(self) -> range:
        """The numbers of the parts."""
        return range(len(self.bounds) - 1)

    def rows(self, number: int) -> slice:
        """Give the rows of a part."""
        return slice(self.bounds[number], self.bounds[number + 1])

    def share(self, worker: int, workers: int) -> range:
        """Give the parts that are for one of several workers, 1 to `workers`; neighbours."""
        count = len(self.parts)
        return range(count * (worker - 1) // workers, count * worker // workers)


def cut_rows(count: int, most: int, edges: NDArray[np.int64] | None = None) -> tuple[int, ...]:
    """Cut rows into parts of at most `most`, and at the edges of shards if there are any."""
    inner = np.zeros(0, np.int64) if edges is None else edges
    starts = [0, *inner.tolist(), count]
    bounds = [0]
    for begin, end in itertools.pairwise(starts):
        pieces = max(1, -(-(end - begin) // most))
        bounds += [begin + (end - begin) * piece // pieces for piece in range(1, pieces + 1)]
    return tuple(sorted(set(bounds)))


def build_extractor(
    model: ModelSettings, picture_side: int | None, runtime: Runtime, threads: int
) -> Extractor:
    """Give the frozen network of a plan."""
    with runtime.seeded():
        backbone = build_backbone(
            model.backbone,
            pretrained=model.pretrained,
            image_size=model.image_size,
            picture_side=picture_side,
        )
    with one_thread_each():
        embedder = Embedder(backbone, model.stages).to(runtime.device)
    return Extractor(embedder, backbone, runtime, threads)


def compute_part(source: ImageSource, extractor: Extractor, start: int) -> pa.Table:
    """Decode, digest and embed the rows of a source that begins at row `start` of the whole."""
    if isinstance(source, RemotePart):
        source = source.fetched()  # looked at twice, asked for once
    scan = scan_images(source, workers=0)
    rows = np.flatnonzero(scan.readable)
    spec, threads = extractor.backbone.spec, extractor.threads
    digest = scan.digest[rows]
    pictures = Pictures(source, rows, spec, threads=threads, keep_bytes=0, digest=digest)
    features = np.zeros((len(source), extractor.embedder.width), np.float32)
    for samples, values in extractor.stream(pictures, np.arange(len(rows))):
        features[rows[samples]] = values
    if scan.thumbnail is None or scan.light is None:
        raise TypeError("a look at pictures has thumbnails")
    return pa.table(
        {
            "row": pa.array(np.arange(start, start + len(source))),
            "readable": pa.array(scan.readable),
            "reason": pa.array(scan.reason.tolist(), pa.string()),
            "digest": _binary(scan.digest),
            "width": pa.array(scan.width),
            "height": pa.array(scan.height),
            "thumbnail": _binary(scan.thumbnail.reshape(len(source), -1)),
            "light": _lists(scan.light),
            "feature": _lists(features),
        }
    )


def _binary(values: NDArray[np.uint8]) -> pa.Array:
    kind, buffer = pa.binary(values.shape[1]), pa.py_buffer(np.ascontiguousarray(values))
    return pa.FixedSizeBinaryArray.from_buffers(kind, len(values), [None, buffer])


def _lists(values: NDArray[np.float32]) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])


class PartStore:
    """The parts of a run that are done, and where the others will be.

    Args:
        work: The run's working folder.
        plan: What they are about.
    """

    def __init__(self, work: Path, plan: PartPlan) -> None:
        self.folder, self.plan = work / FOLDER, plan

    @staticmethod
    def stored_plan(work: Path) -> PartPlan | None:
        """Read the plan of a run; None: there is none.

        Raises:
            DataError: It is damaged.
        """
        path = work / FOLDER / PLAN
        if not path.is_file():
            return None
        try:
            found = json.loads(path.read_bytes())
            return PartPlan(**{**found, "bounds": tuple(found["bounds"])})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{path} is damaged ({type(error).__name__}: {error}); begin the audit again with "
                "--overwrite."
            ) from error

    def begin(self) -> None:
        """Store the plan."""
        write_bytes(self.folder / PLAN, self.plan.text.encode())

    def path(self, number: int) -> Path:
        """Give the file of a part."""
        return self.folder / f"{number:06d}.parquet"

    def missing(self) -> list[int]:
        """List the parts that are not done."""
        return [number for number in self.plan.parts if not self.is_done(number)]

    def is_done(self, number: int) -> bool:
        """Tell whether a part is there, whole and of this plan."""
        try:
            stored = pq.read_schema(self.path(number)).metadata or {}
        except (OSError, pa.ArrowException):
            return False
        return bool(stored.get(_MARK) == self.plan.mark.encode())

    def write(self, number: int, table: pa.Table) -> None:
        """Store a part, whole or not at all."""
        marked = table.replace_schema_metadata({_MARK: self.plan.mark.encode()})
        with atomic_path(self.path(number)) as temporary:
            pq.write_table(marked, temporary, compression="zstd", use_dictionary=False)

    def read(self, number: int, *columns: str) -> pa.Table:
        """Read some columns of a part.

        Raises:
            DataError: It is damaged.
        """
        path, rows = self.path(number), self.plan.rows(number)
        try:
            table = pq.read_table(path, columns=list(columns))
        except (OSError, pa.ArrowException, ValueError) as error:
            reason = (str(error).splitlines() or ["unknown reason"])[0]
            raise DataError(
                f"{path} is damaged ({reason}). Remove it, then go on with --resume."
            ) from error
        if table.num_rows != rows.stop - rows.start:
            raise DataError(f"{path} has other rows than planned. Remove it, then use --resume.")
        return table

    def scan(self) -> Scan:
        """Put together what all parts saw."""
        count = self.plan.bounds[-1]
        found = Scan(
            readable=np.zeros(count, bool),
            reason=np.full(count, "", dtype=object),
            digest=np.zeros((count, DIGEST_BYTES), np.uint8),
            width=np.zeros(count, np.int32),
            height=np.zeros(count, np.int32),
            thumbnail=np.zeros((count, THUMBNAIL_SIDE, THUMBNAIL_SIDE), np.uint8),
            light=np.zeros((count, len(LIGHT)), np.float32),
        )
        names = ("readable", "reason", "digest", "width", "height", "thumbnail", "light")
        for number in self.plan.parts:
            rows, table = self.plan.rows(number), self.read(number, *names).combine_chunks()
            for name in ("readable", "width", "height"):
                getattr(found, name)[rows] = table[name].to_numpy()
            found.reason[rows] = table["reason"].to_pylist()
            found.digest[rows] = _bytes_of(table["digest"], DIGEST_BYTES)
            if found.thumbnail is not None and found.light is not None:
                pixels = _bytes_of(table["thumbnail"], _PIXELS)
                found.thumbnail[rows] = pixels.reshape(-1, THUMBNAIL_SIDE, THUMBNAIL_SIDE)
                found.light[rows] = _floats_of(table["light"], len(LIGHT))
        return found

    def features(self, rows: Rows) -> "PartFeatures":
        """Give the features of some rows."""
        return PartFeatures(self, rows)


def _bytes_of(column: pa.ChunkedArray, width: int) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(column.to_pylist()), np.uint8).reshape(-1, width)


def _floats_of(column: pa.ChunkedArray, width: int) -> NDArray[np.float32]:
    flat: NDArray[np.float32] = column.combine_chunks().flatten().to_numpy()
    return flat.reshape(-1, width)


class PartFeatures:
    """Features of some rows, read part by part; a `FeatureTable`.

    Args:
        store: The parts, all of them done.
        rows: (M,) rows of the manifest; sample i is row `rows[i]`.
    """

    def __init__(self, store: PartStore, rows: Rows) -> None:
        self.store, self.rows = store, rows

    @property
    def shape(self) -> tuple[int, int]:
        """M and D."""
        return len(self.rows), self.store.plan.width

    def tiles(self) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """Give the features in tiles of consecutive samples of one part."""
        plan = self.store.plan
        part = np.searchsorted(np.array(plan.bounds), self.rows, side="right") - 1
        edges = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(self.rows)]
        for start, stop in itertools.pairwise(edges):
            number = int(part[start])
            features = _floats_of(self.store.read(number, "feature")["feature"], plan.width)
            yield slice(start, stop), features[self.rows[start:stop] - plan.bounds[number]]
