"""The review server's answers: the page, rows, pictures, decisions."""

import json
import math
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from labelclean.correction.actions import ACTIONS
from labelclean.correction.kinds import LISTS
from labelclean.errors import DataError, OutputError
from labelclean.review.guard import Guard
from labelclean.review.pictures import Encoded
from labelclean.review.rows import Wanted
from labelclean.review.state import ORDERS, ReviewState

MOST_ROWS = 500
MOST_BYTES = 16_384
KEYS = {"row", "sample_id", "decision", "label"}


def build_app(review: ReviewState, page: bytes, policy: str, *, token: str, port: int) -> ASGIApp:
    """Give the whole server, guarded.

    Args:
        review: What is reviewed.
        page: The page.
        policy: Its Content-Security-Policy.
        token: What every path must begin with, /t/TOKEN/.
        port: Where the server listens.
    """
    routes = [
        Route("/", _Page(page, policy), methods=["GET"]),
        Route("/api/rows", _rows, methods=["GET"]),
        Route("/api/state", _state, methods=["GET"]),
        Route("/api/decisions", _decide, methods=["POST"]),
        Route("/api/undo", _undo, methods=["POST"]),
        Route("/thumb/{row:int}", _thumb, methods=["GET"]),
        Route("/image/{row:int}", _image, methods=["GET"]),
    ]
    app = Starlette(
        routes=[Mount(f"/t/{token}", routes=routes)],
        exception_handlers={HTTPException: _say, OutputError: _failed, ClientDisconnect: _gone},
    )
    app.state.review = review
    # A path that lacks or has a slash too many is wrong, not a reason to send people elsewhere.
    app.router.redirect_slashes = False
    return Guard(app, token, port)


class _Page:
    """Answers with the page, whole."""

    def __init__(self, content: bytes, policy: str) -> None:
        self._content = content
        self._policy = f"{policy}; frame-ancestors 'none'"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = {"Content-Security-Policy": self._policy}
        answer = Response(self._content, media_type="text/html", headers=headers)
        await answer(scope, receive, send)


def _say(_: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)


def _failed(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 500)


def _gone(_: Request, __: Exception) -> Response:
    return JSONResponse({"error": "the request ended half way"}, 400)  # nobody hears it any more


def _review(request: Request) -> ReviewState:
    review: ReviewState = request.app.state.review
    return review


def _rows(request: Request) -> Response:
    words = request.query_params
    order = words.get("order", "rank")
    actions = words.getlist("action")
    decided = words.get("decided")
    finding = words.get("finding")
    unknown = [name for name in actions if name not in ACTIONS]
    unknown += [finding] if finding is not None and finding not in LISTS else []
    if order not in ORDERS or unknown or decided not in (None, "yes", "no"):
        raise HTTPException(400, "order, action, decided or finding has an unknown value")
    wanted = Wanted(
        given=words.getlist("given"),
        suggested=words.getlist("suggested"),
        action=actions,
        least=_number(words.get("min")),
        largest=_number(words.get("max")),
        text=words.get("q", ""),
        decided=None if decided is None else decided == "yes",
        finding=finding,
    )
    offset, limit = _count(words.get("offset", "0")), _count(words.get("limit", "50"))
    return JSONResponse(_review(request).page(wanted, order, offset, min(limit, MOST_ROWS)))


def _state(request: Request) -> Response:
    return JSONResponse(_review(request).state())


async def _decide(request: Request) -> Response:
    entry = await _body(request)
    strange = sorted(set(entry) - KEYS)
    if strange:
        raise HTTPException(400, f"unknown keys {', '.join(map(repr, strange))[:200]}")
    try:
        state = await run_in_threadpool(_review(request).decide, entry)
    except ValueError as error:
        raise HTTPException(400, str(error)[:500]) from error
    return JSONResponse({"saved": True, "state": state})


async def _undo(request: Request) -> Response:
    if await _body(request):
        raise HTTPException(400, "undo takes an empty object")
    undone, state = await run_in_threadpool(_review(request).undo)
    return JSONResponse({"undone": undone, "state": state})


def _thumb(request: Request) -> Response:
    return _picture(request, whole=False)


def _image(request: Request) -> Response:
    return _picture(request, whole=True)


def _picture(request: Request, *, whole: bool) -> Response:
    review, row = _review(request), int(request.path_params["row"])
    pictures = review.pictures
    if pictures is None or not review.rows.shown(row):
        raise HTTPException(404, "no such picture")
    try:
        found: Encoded = pictures.whole(row) if whole else pictures.small(row)
    except DataError as error:
        raise HTTPException(404, f"the picture cannot be read: {error}") from error
    return Response(found.content, media_type=found.media_type)


async def _body(request: Request) -> dict[str, Any]:
    """Read a JSON object, no larger than a decision can be."""
    if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        raise HTTPException(415, "send application/json")
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > MOST_BYTES:
            raise HTTPException(413, f"more than {MOST_BYTES} bytes")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, "not valid JSON") from error
    if not isinstance(found, dict):
        raise HTTPException(400, "not a JSON object")
    return found


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError as error:
        raise HTTPException(400, "min and max are numbers") from error
    if not math.isfinite(value):
        raise HTTPException(400, "min and max are finite numbers")
    return value


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise HTTPException(400, "offset and limit are whole numbers")
    return int(text)
