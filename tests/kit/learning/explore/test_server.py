"""The page's server: who gets an answer, and who does not."""

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from grader.learning.explore.server import PageServer
from grader.types.errors import KitError


def answer(settings: list[Any], swap: str) -> dict[str, Any]:
    if swap == "wrong":
        raise KitError("there is no such swap")
    return {"settings": settings, "swap": swap}


@pytest.fixture(scope="module")
def server() -> Iterator[PageServer]:
    with PageServer(0, "<p>The page</p>", answer) as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def ask(
    server: PageServer, method: str, path: str, body: bytes = b"", **headers: str
) -> tuple[int, str, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body, named)
    reply = connection.getresponse()
    found = reply.status, reply.read().decode(), reply.headers
    connection.close()
    return found


def compute(server: PageServer, body: bytes, **headers: str) -> tuple[int, Any]:
    status, text, _ = ask(server, "POST", "/compute", body, **{"X_Token": server.token, **headers})
    return status, json.loads(text)


ASKED = b'{"settings": ["x", 1], "swap": ""}'


def test_the_page_and_its_results(server: PageServer) -> None:
    path = server.address.removeprefix(f"http://127.0.0.1:{server.server_port}")
    status, text, headers = ask(server, "GET", path)
    assert (status, text) == (200, "<p>The page</p>")
    assert headers["Referrer-Policy"] == "no-referrer" and headers["Cache-Control"] == "no-store"
    assert "Python" not in headers["Server"]
    assert compute(server, ASKED) == (200, {"settings": ["x", 1], "swap": ""})
    wrong = b'{"settings": [], "swap": "wrong"}'
    assert compute(server, wrong) == (200, {"error": "there is no such swap"})


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=guess", "/?token=%ff%00"])
def test_without_its_token_nobody_gets_the_page(server: PageServer, path: str) -> None:
    status, text, _ = ask(server, "GET", path)
    assert (status, text) == (403, "Open the whole address that `grade explore` printed.")


@pytest.mark.parametrize("token", ["", "guess"])
def test_without_its_token_nothing_is_computed(server: PageServer, token: str) -> None:
    assert compute(server, ASKED, X_Token=token)[0] == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "[", ""]
)
def test_another_name_that_leads_here_is_refused(server: PageServer, host: str) -> None:
    assert compute(server, ASKED, Host=host) == (
        403,
        {"error": "Open this page at http://127.0.0.1."},
    )


@pytest.mark.parametrize("host", ["localhost:1234", "127.0.0.1"])
def test_this_machine_may_have_another_port_in_front(server: PageServer, host: str) -> None:
    assert compute(server, ASKED, Host=host)[0] == 200


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b"null", b'{"settings": 3, "swap": ""}', b'{"settings": []}'),
        *(b'{"settings": [], "swap": 3}', b"\xff", b"[" * 9_000),
    ],
)
def test_what_is_no_request_is_refused(server: PageServer, body: bytes) -> None:
    status, found = compute(server, body)
    assert (status, found) == (400, {"error": "Send settings, a list, and swap, a text."})


def test_a_large_request_is_refused_unread(server: PageServer) -> None:
    for length in ("10001", "-1", "many"):
        status, _ = compute(server, b"", Content_Length=length)
        assert status == 413


def test_there_is_nothing_else(server: PageServer) -> None:
    assert ask(server, "GET", f"/etc/passwd?token={server.token}")[0] == 404
    assert ask(server, "POST", "/", ASKED, X_Token=server.token)[0] == 404
    assert ask(server, "PUT", "/compute", ASKED, X_Token=server.token)[0] == 501


def test_it_listens_on_the_loopback_address_only(server: PageServer) -> None:
    assert server.server_address[0] == "127.0.0.1"


def test_an_idle_connection_blocks_nobody(server: PageServer) -> None:
    with socket.create_connection(("127.0.0.1", server.server_port)):
        assert compute(server, ASKED)[0] == 200


def test_a_taken_port_is_not_used(server: PageServer) -> None:
    with PageServer(server.server_port, "", answer) as other:
        assert other.server_port != server.server_port
        assert other.token != server.token
