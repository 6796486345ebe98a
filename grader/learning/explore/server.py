"""Serves the page on the loopback address, to whoever knows the address with its token."""

from __future__ import annotations

import json
import secrets
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any
from urllib.parse import parse_qs

from grader.learning.explore.page import Answer
from grader.types.errors import KitError

_ADDRESS = "127.0.0.1"
_NAMES = (_ADDRESS, "localhost")  # another name leads here only by DNS rebinding
_LARGEST = 10_000  # bytes of a request
_SECONDS = 10.0  # until a silent client is dropped
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # the page itself states the rest
    "Referrer-Policy": "no-referrer",  # the address holds the token
    "X-Content-Type-Options": "nosniff",
}


class PageServer(ThreadingHTTPServer):
    """Serves `page`, and the results that `answer` returns for settings and a swap.

    `answer` is called by one thread at a time; the others only keep an idle connection, which
    browsers open in advance, from blocking the rest. If `port` is taken, another one is used.
    """

    allow_reuse_address = False  # so that a port in use is an error, on Windows too

    def __init__(self, port: int, page: str, answer: Answer) -> None:
        try:
            super().__init__((_ADDRESS, port), _Handler)
        except OSError:
            super().__init__((_ADDRESS, 0), _Handler)
        self.page, self.answer = page.encode(), answer
        self.token = secrets.token_urlsafe(16)
        self.one_at_a_time = Lock()

    @property
    def address(self) -> str:
        """The address to open, with the token."""
        return f"http://{_ADDRESS}:{self.server_port}/?token={self.token}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a connection that broke, because the browser has left the page."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Refused(Exception):
    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    server_version, sys_version = "grade", ""
    timeout = _SECONDS

    def do_GET(self) -> None:
        """Send the page."""
        path, _, asked = self.path.partition("?")
        try:
            self._admit(parse_qs(asked).get("token", [""])[0])
            if path != "/":
                raise _Refused(HTTPStatus.NOT_FOUND, "There is only one page here.")
        except _Refused as refused:
            self._send(refused.status, "text/plain", str(refused).encode())
        else:
            self._send(HTTPStatus.OK, "text/html", self.server.page)

    def do_POST(self) -> None:
        """Send the result for the settings and the swap in the request."""
        status = HTTPStatus.OK
        try:
            self._admit(self.headers.get("X-Token", ""))
            settings, swap = self._asked()
            with self.server.one_at_a_time:
                found = self.server.answer(settings, swap)
        except _Refused as refused:
            status, found = refused.status, {"error": str(refused)}
        except KitError as error:
            found = {"error": str(error)}
        self._send(status, "application/json", json.dumps(found, allow_nan=False).encode())

    def _admit(self, token: str) -> None:
        """Raise _Refused unless the request comes from the page, under a name of this machine."""
        if self.headers.get("Host", "").partition(":")[0] not in _NAMES:
            raise _Refused(HTTPStatus.FORBIDDEN, f"Open this page at http://{_ADDRESS}.")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            raise _Refused(
                HTTPStatus.FORBIDDEN, "Open the whole address that `grade explore` printed."
            )

    def _asked(self) -> tuple[list[Any], str]:
        length = self.headers.get("Content-Length", "")
        if self.path != "/compute":
            raise _Refused(HTTPStatus.NOT_FOUND, "Only /compute answers.")
        if not length.isdecimal() or int(length) > _LARGEST:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"Send at most {_LARGEST} bytes.")
        try:
            asked = json.loads(self.rfile.read(int(length)))
            settings, swap = asked["settings"], asked["swap"]
        except (ValueError, TypeError, KeyError, RecursionError):
            settings = swap = None
        if not isinstance(settings, list) or not isinstance(swap, str):
            raise _Refused(HTTPStatus.BAD_REQUEST, "Send settings, a list, and swap, a text.")
        return settings, swap

    def _send(self, status: HTTPStatus, kind: str, data: bytes) -> None:
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: the terminal belongs to the learner."""
