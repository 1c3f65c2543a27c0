"""A tool at a port that is not Kafka's, or where nobody is: one line, as soon as it is certain."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from moldau.cli.main import main
from moldau.cli.support import connecting
from moldau.cli.support.connecting import wait_until_reachable
from moldau.cli.support.failures import ToolError
from moldau.cli.support.probe import judge

LINES = b"\r\n\r\n"


@contextmanager
def listening(serve: Callable[[socket.socket], object]) -> Iterator[str]:
    """The address of a port whose connections are served by `serve`, one after the other."""
    served: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            while True:
                try:
                    served.append(listener.accept()[0])
                except OSError:
                    return
                with served[-1]:
                    serve(served[-1])

        thread = threading.Thread(target=run)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        # Ends the thread, wherever it waits.
        listener.shutdown(socket.SHUT_RDWR)
        for each in served:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        thread.join()


def says_nothing(connection: socket.socket) -> None:
    while connection.recv(1024):
        pass


def answers_as_kafka(connection: socket.socket) -> None:
    request = connection.recv(1024)
    connection.sendall(struct.pack(">i", 10) + request[8:12] + bytes(6))


class Quiet(BaseHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def http() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "REACHABLE_SECONDS_MAX", 0.2)
    monkeypatch.setattr(connecting, "ANSWER_SECONDS_MAX", 0.2)


@pytest.mark.parametrize(
    "words",
    [
        "topics --list --bootstrap-server",
        "groups --list --bootstrap-server",
        "console-consumer --topic t --bootstrap-server",
        "console-producer --topic t --bootstrap-server",
        "console-share-consumer --topic t --bootstrap-server",
        "broker-api-versions --bootstrap-server",
        "metadata-quorum --bootstrap-controller {} describe --status",
    ],
)
def test_an_http_server_is_told_of_at_once(
    words: str, http: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever waited for anything here would wait for ever.
    monkeypatch.setattr(connecting, "REACHABLE_SECONDS_MAX", 10**6)
    command = words.format(http) if "{}" in words else f"{words} {http}"
    assert main(command.split()) == 1
    output = capsys.readouterr()
    kind = "controller" if "controller" in words else "broker"
    assert output.err == (
        f"no {kind} can be reached at {http}: an HTTP server answers, not a Kafka node. "
        f"Give the address of a {kind}.\n"
    )
    assert output.out == ""


@pytest.mark.usefixtures("impatient")
def test_a_port_that_says_nothing_ends_with_the_time_for_an_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with listening(says_nothing) as silent:
        assert main(["topics", "--list", "--bootstrap-server", silent]) == 1
    assert capsys.readouterr().err == (
        f"no broker can be reached at {silent}: accepts connections, but does not answer within "
        "0.2 s. Check that it is running and that the address is right.\n"
    )


@pytest.mark.usefixtures("impatient")
def test_a_connection_that_ends_without_an_answer() -> None:
    with (
        listening(lambda connection: connection.recv(1024)) as closing,
        pytest.raises(ToolError, match="closes the connection without an answer"),
    ):
        wait_until_reachable({"bootstrap.servers": closing})


def test_one_that_answers_is_enough(http: str) -> None:
    with listening(says_nothing) as silent, listening(answers_as_kafka) as node:
        wait_until_reachable({"bootstrap.servers": f"{silent},{http},127.0.0.1:1,{node}"})


def test_one_that_comes_late_is_waited_for(http: str) -> None:
    """What is certain of one address says nothing of the others."""
    with listening(lambda connection: late.pop(0)(connection)) as node:
        late = [says_goodbye, says_goodbye, answers_as_kafka]
        wait_until_reachable({"bootstrap.servers": f"{http},{node}"})
        assert not late


def says_goodbye(connection: socket.socket) -> None:
    connection.recv(1024)


@pytest.mark.parametrize(
    ("config", "idle_ms_max", "shown"),
    [
        ({}, None, "30 s"),
        ({"default.api.timeout.ms": "100"}, None, "0.1 s"),
        ({"default.api.timeout.ms": "no number"}, None, "30 s"),
        ({}, 100, "5 s"),
        ({}, 7_000, "7 s"),
        ({}, 10**6, "30 s"),
        ({}, -1, "30 s"),
    ],
)
def test_how_long_an_answer_may_take(
    config: dict[str, str], idle_ms_max: int | None, shown: str
) -> None:
    assert f"{connecting._answer_seconds_max(config, idle_ms_max):g} s" == shown


@pytest.mark.parametrize(
    ("received", "words"),
    [
        pytest.param(b"HTTP/1.1", "HTTP", id="HTTP"),
        pytest.param(b"<!DOCTYP", "HTTP", id="a page"),
        pytest.param(b"\x15\x03\x03\x00\x02\x02\x0a", "TLS", id="TLS alert"),
        pytest.param(b"SSH-2.0-", "not a Kafka node", id="SSH"),
        pytest.param(b"-ERR unk", "not a Kafka node", id="Redis"),
        pytest.param(b"E\x00\x00\x00\x2fSFA", "not a Kafka node", id="PostgreSQL"),
        pytest.param(struct.pack(">i", 10) + b"\0\0\0\1", "not a Kafka node", id="other request"),
        pytest.param(struct.pack(">i", -1) + LINES, "not a Kafka node", id="negative size"),
        pytest.param(b"no", "not a Kafka node", id="a word"),
    ],
)
def test_answers_that_are_none(received: bytes, words: str) -> None:
    problem = judge(received)
    assert problem is not None
    assert problem.certain
    assert words in problem.text


def test_answers() -> None:
    assert judge(struct.pack(">i", 400) + LINES) is None
    nothing = judge(b"")
    assert nothing is not None
    assert not nothing.certain
