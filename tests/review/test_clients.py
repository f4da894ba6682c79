"""Clients that are slow, stop half way or never read: others are served, nothing half is saved."""

import contextlib
import json
import socket
import struct
import time

import pytest

from planted import command
from reviewing import Server, lines


@pytest.fixture
def server(run):
    with Server(run) as server:
        yield server


def head(server, length: int) -> bytes:
    """Give the head of a request that posts a decision."""
    return (
        f"POST {server.home}api/decisions HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def body(row: int) -> bytes:
    entry = {"row": row, "sample_id": f"id {row} <i>", "decision": "confirm", "label": None}
    return json.dumps(entry).encode()


def talk(server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=20)


def said(talking: socket.socket) -> bytes:
    """Read until the server has ended."""
    heard = b""
    with contextlib.suppress(OSError):
        while part := talking.recv(1 << 16):
            heard += part
    return heard


def reset(talking: socket.socket) -> None:
    """Leave without the good manners of TCP."""
    talking.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    talking.close()


def test_a_decision_that_arrives_in_drops_is_saved(server):
    whole = head(server, len(body(6))) + body(6)
    with talk(server) as talking:
        for at in range(0, len(whole), 16):
            talking.sendall(whole[at : at + 16])
            time.sleep(0.005)
        assert b" 200 OK" in talking.recv(1 << 16)
    assert [line["row"] for line in lines(server.run)] == [6]


def test_half_a_decision_is_none_and_half_a_connection_is_enough(server):
    entry = body(6)
    with talk(server) as talking:
        talking.sendall(head(server, len(entry)) + entry[:-9])
        talking.shutdown(socket.SHUT_WR)
        assert b" 200 OK" not in said(talking)
    for cut in (head(server, len(entry)) + entry[:20], head(server, 40)[:60], b"\x16\x03\x01\0"):
        talking = talk(server)
        talking.sendall(cut)
        time.sleep(0.05)
        reset(talking)
    assert server.get("api/state").json["decided"] == 0
    with talk(server) as talking:
        talking.sendall(head(server, len(entry)) + entry)
        talking.shutdown(socket.SHUT_WR)
        said(talking)  # whoever has said all may not wait for the answer: it is saved all the same
    until = time.monotonic() + 10
    while server.get("api/state").json["decided"] < 1 and time.monotonic() < until:
        time.sleep(0.05)
    assert [line["row"] for line in lines(server.run)] == [6]
    code, words = server.interrupt()
    assert code == 0
    assert "Traceback" not in words


def test_idle_and_deaf_clients_keep_nobody_waiting(server):
    idle = [talk(server) for _ in range(150)]
    for number, talking in enumerate(idle):
        talking.sendall(head(server, 90)[: number % 70])
    deaf = [talk(server) for _ in range(20)]
    for talking in deaf:
        target = f"GET {server.home}api/rows?limit=500 HTTP/1.1\r\nHost: 127.0.0.1:{server.port}"
        talking.sendall(f"{target}\r\n\r\n".encode() * 20)
    began = time.monotonic()
    for row in (6, 7, 8):
        assert server.decide(row).status == 200
    assert server.get("thumb/6").status == 200
    assert time.monotonic() - began < 10
    code, words = server.interrupt()  # with all of them still there
    assert code == 0
    assert "Traceback" not in words
    for talking in [*idle, *deaf]:
        talking.close()
    assert command("verify", server.run).exit_code == 0
    assert len(lines(server.run)) == 3
