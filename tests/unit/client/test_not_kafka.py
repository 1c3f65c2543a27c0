"""Clients whose bootstrap.servers is the port of something else: one clear error, at once."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from moldau.client import Admin, Consumer, KafkaError, Producer, ShareConsumer
from moldau.client.errors import NotKafkaError

HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
TLS_ALERT = bytes.fromhex("15030300020246")


@contextmanager
def server(answer: bytes) -> Iterator[int]:
    """Answers whatever comes first with these bytes, and closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def administer(address: str, timeout: float = 30) -> None:
    with Admin(bootstrap_servers=address) as admin:
        admin.list_topics(timeout=timeout)


def produce(address: str) -> None:
    with Producer(bootstrap_servers=address) as producer:
        producer.send("orders", b"x").result(timeout=30)


def consume(address: str) -> None:
    with Consumer(bootstrap_servers=address, group_id="g") as consumer:
        consumer.subscribe(["orders"])
        consumer.poll(30)


def consume_partition(address: str) -> None:
    with Consumer(bootstrap_servers=address) as consumer:
        consumer.assign([("orders", 0)])
        consumer.poll(30)


def share(address: str) -> None:
    with ShareConsumer(bootstrap_servers=address, group_id="g") as consumer:
        consumer.subscribe(["orders"])
        consumer.poll(30)


@pytest.mark.timeout(25)
@pytest.mark.parametrize("use", [administer, produce, consume, consume_partition, share])
def test_every_client_names_the_address_and_what_it_got(use: Callable[[str], None]) -> None:
    with server(HTTP) as port, pytest.raises(NotKafkaError) as caught:
        use(f"127.0.0.1:{port}")
    text = str(caught.value)
    assert f"127.0.0.1:{port}" in text
    assert "an HTTP response, 'HTTP/1.1 400 Bad Request'" in text
    assert "bootstrap.servers" in text
    assert not caught.value.retriable


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        pytest.param(TLS_ALERT, "a TLS record", id="TLS"),
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n", "the text 'SSH-2.0-OpenSSH_9.6'", id="SSH"),
        pytest.param(b"-ERR unknown command\r\n", "the text '-ERR unknown command'", id="Redis"),
        pytest.param(b"\xff\xff\xff\xff\x00", "the bytes ff ff ff ff 00", id="binary"),
    ],
)
def test_what_other_servers_send_is_shown(answer: bytes, shown: str) -> None:
    with server(answer) as port, pytest.raises(NotKafkaError, match=shown):
        administer(f"127.0.0.1:{port}")


def test_a_broker_may_still_come_up_at_another_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        unused = free.getsockname()[1]
        with server(HTTP) as port, pytest.raises(KafkaError) as caught:
            administer(f"127.0.0.1:{port},127.0.0.1:{unused}", timeout=1)
        assert caught.value.retriable
