"""Serve the review page on this machine until somebody ends it."""

import errno
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import uvicorn

from labelclean.errors import ConfigError
from labelclean.options import Log
from labelclean.outputs.report import SERVED, content_policy, render_page
from labelclean.outputs.run_folder import RECORDS
from labelclean.outputs.truth import read_truth
from labelclean.review.app import build_app
from labelclean.review.guard import LOOPBACK
from labelclean.review.state import ReviewState, open_review

_PATIENCE = 3  # seconds for requests under way when the server is ended


def serve_review(
    folder: Path,
    *,
    manifest: Path | None,
    port: int,
    ready: Callable[[str, ReviewState], None],
    wait: Log | None = None,
) -> int:
    """Serve the review of a run until it is interrupted.

    Args:
        folder: The run folder.
        manifest: Where the audited manifest is now; None: where it was.
        port: Where to listen; 0: wherever it is free.
        ready: Told the page's address once it can be opened.
        wait: Told for whom we wait to write into the folder; None: we do not.

    Returns:
        How many rows are decided at the end.

    Raises:
        DataError: There is no run to review.
        OutputError: It is being reviewed already, or another process writes into its folder.
        ConfigError: The port is taken.
    """
    opened = open_review(folder, manifest, wait=wait)
    with opened as review, _listen(port) as listening:
        token, port = secrets.token_urlsafe(24), listening.getsockname()[1]
        app = build_app(review, _page(review), content_policy(SERVED), token=token, port=port)
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                lifespan="off",
                ws="none",
                http="h11",
                timeout_graceful_shutdown=_PATIENCE,
            )
        )
        ready(f"http://{LOOPBACK}:{port}/t/{token}/", review)
        # Ctrl-C is how a review ends; uvicorn raises it again after it has closed everything.
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listening])
        return int(review.state()["decided"])


def _page(review: ReviewState) -> bytes:
    run = review.run
    known = run.facts.get("truth")
    truth = None if not isinstance(known, dict) else read_truth(run.manifest, known["column"])
    records = run.folder / RECORDS
    return render_page(
        run.facts, review.rows.table, records if records.is_file() else None, truth=truth
    )


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            why = "is in use; name another with --port, or leave it out"
        else:
            why = f"cannot be used ({error.strerror}); name another with --port"
        raise ConfigError(f"port {port} of {LOOPBACK} {why}.") from error
