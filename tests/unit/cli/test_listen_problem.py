"""Whether one could listen somewhere is found out without anybody noticing."""

from __future__ import annotations

import socket

import pytest

from moldau.cli.support.failures import listen_problem


def test_nobody_can_connect_to_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that waits for the broker would take it for up, and its connection would break."""
    connected = []
    plain = socket.socket

    class Probe(plain):
        def close(self) -> None:
            with plain() as client:
                connected.append(client.connect_ex(self.getsockname()) == 0)
            super().close()

    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
    with monkeypatch.context() as patch:
        patch.setattr(socket, "socket", Probe)
        assert listen_problem("127.0.0.1", port) is None
    assert connected == [False]


def test_a_port_on_which_somebody_listens_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        problem = listen_problem("127.0.0.1", port)
    assert problem is not None
    assert f"port {port} is in use" in problem
