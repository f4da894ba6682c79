"""`labelclean benchmark retrieval`: mAP and CMC of embeddings, as on MARS and Market-1501."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labelclean.errors import DataError, shortlist

if TYPE_CHECKING:
    from labelclean.benchmark.retrieval import RetrievalSet
    from labelclean.data.manifest import Manifest

_SHOWN = (1, 5, 10, 20)


@click.command("retrieval")
@click.argument("manifest")
@click.option(
    "--embeddings",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    required=True,
    help="Embeddings (N, D) as .npy, one a row of MANIFEST.",
)
@click.option("--label-col", metavar="C", help="Column of the identity.")
@click.option(
    "--camera-col", metavar="C", help="Column of the camera; default: no two rows share one."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    manifest: str, embeddings: Path, label_col: str | None, camera_col: str | None, as_json: bool
) -> None:
    """Search the rows of split `gallery` for those of split `query` by cosine.

    Frames of one `group` are averaged to one video. Gallery rows of the query's own identity and
    camera, and of identity -1, are taken out before ranks are counted. Train on other identities.
    """
    import numpy as np

    from labelclean.benchmark.retrieval import retrieval_scores
    from labelclean.data.matrices import read_matrix
    from labelclean.data.read import read_manifest

    rows = read_manifest(manifest, label_col=label_col, need_images=False)
    matrix = read_matrix(embeddings, "--embeddings", rows, whole=len(rows)).values
    camera = np.arange(len(rows)) if camera_col is None else _codes(rows, camera_col)
    query, gallery = (_side(rows, matrix, camera, name) for name in ("query", "gallery"))
    scores = retrieval_scores(query, gallery)
    if as_json:
        facts = asdict(scores)
        click.echo(json.dumps(facts | {"cmc": scores.cmc.tolist()}, indent=2))
        return
    click.echo(f"queries {scores.queries}, skipped (not in the gallery) {scores.skipped}")
    click.echo(f"mAP {scores.mean_ap:.4f} (trapezoids {scores.mean_ap_trapezoid:.4f})")
    click.echo("  ".join(f"CMC-{k} {scores.cmc[k - 1]:.4f}" for k in _SHOWN))


def _side(manifest: "Manifest", matrix: Any, camera: Any, name: str) -> "RetrievalSet":
    import numpy as np

    from labelclean.benchmark.retrieval import JUNK, RetrievalSet, mean_frames

    known = () if manifest.split is None else sorted({str(each) for each in manifest.split})
    rows = np.array([], int)
    if manifest.split is not None:
        rows = np.flatnonzero(manifest.split.astype(str) == name)
    if not len(rows):
        raise DataError(
            f"{manifest.source}: no row has split {name!r} (splits: {shortlist(known) or 'none'}); "
            "mark who is searched for as 'query' and where as 'gallery' in a column split."
        )
    code = {place: JUNK for place, each in enumerate(manifest.classes) if str(each) == str(JUNK)}
    identity = np.array([code.get(label, label) for label in manifest.label[rows].tolist()])
    side = RetrievalSet(matrix[rows].astype(np.float64), identity, camera[rows])
    if manifest.group is None:
        return side
    return mean_frames(side, np.unique(manifest.group[rows].astype(str), return_inverse=True)[1])


def _codes(manifest: "Manifest", column: str) -> Any:
    import numpy as np

    from labelclean.catalogue import unknown_name

    names = manifest.table.column_names
    if column not in names:
        raise unknown_name("column", column, names, "It was asked for by --camera-col.")
    values = [str(value) for value in manifest.table[column].to_pylist()]
    return np.unique(values, return_inverse=True)[1]
