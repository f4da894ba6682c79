"""Who may talk to the review server, and what every answer says to the browser.

The server listens on this machine only, but every page that a browser here shows can send it
requests. So the Host must be ours (a foreign name that resolves to this machine is refused), a
request that comes from a page must come from ours, and the path must begin with a random token.
"""

import secrets
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = "127.0.0.1"
_NAMES = (LOOPBACK, "localhost")
NOTHING_ALLOWED = "default-src 'none'; frame-ancestors 'none'"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


class Guard:
    """Lets through what may pass, and puts the same headers on every answer.

    Args:
        app: What is guarded.
        token: What paths begin with.
        port: Where the server listens.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app, self._token = app, token
        self._hosts = {f"{name}:{port}" for name in _NAMES}
        if port == 80:
            self._hosts |= set(_NAMES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Content-Security-Policy", NOTHING_ALLOWED)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send_with_headers)
        else:
            code, why = refusal
            await JSONResponse({"error": why}, code)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 403, "this server does not go by that name"
        if any(origin.lower() != f"http://{hosts[0].lower()}" for origin in origins):
            return 403, "requests of other pages are refused"
        parts = str(scope["path"]).split("/", 3)
        named = parts[2] if len(parts) == 4 and parts[:2] == ["", "t"] else ""
        # Of any length and any letters; compared without telling how much of it was right.
        if not secrets.compare_digest(quote(named), self._token):
            return 404, "nothing here"
        return None
