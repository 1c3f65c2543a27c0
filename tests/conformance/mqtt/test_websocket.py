"""MQTT over websockets: paho-mqtt's transport, and section 6 of MQTT 5 frame by frame."""

from __future__ import annotations

import random
import socket
import ssl
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)

from moldau.services.mqtt.machine import encoding
from moldau.services.mqtt.machine.packets import V5, Connect
from support.certificates import Authority
from support.http_service import running
from support.mqtt import Device, devices, new_name, port_of, proxy_of
from support.processes import BrokerProcess

CONNACK = 0x20
PAGE = "https://plant.example"


@pytest.fixture(scope="module")
def web(broker: BrokerProcess) -> Iterator[int]:
    with running(lambda: proxy_of(broker.bootstrap, listeners="ws://127.0.0.1:0")) as service:
        assert service.url.endswith("/mqtt")
        yield port_of(service.url)


class Browser:
    """A websocket that sends the given bytes, valid or not."""

    def __init__(
        self, port: int, path: str = "/mqtt", subprotocols: tuple[str, ...] = ("mqtt",), **more: Any
    ) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._frames = WSConnection(ConnectionType.CLIENT)
        self._events: deque[Event] = deque()
        headers = [(b"origin", more["origin"].encode())] if "origin" in more else []
        host = f"127.0.0.1:{port}"
        self.send(Request(host, path, subprotocols=list(subprotocols), extra_headers=headers))

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, *events: Event) -> None:
        self._socket.sendall(b"".join(self._frames.send(event) for event in events))

    def next(self) -> Event | None:
        """None if the proxy has hung up."""
        while not self._events:
            data = self._socket.recv(65_536)
            if not data:
                return None
            self._frames.receive_data(data)
            self._events.extend(self._frames.events())
        return self._events.popleft()

    def packet(self) -> bytes:
        """The next frame's content, which has to be binary."""
        event = self.next()
        assert isinstance(event, BytesMessage), event
        return bytes(event.data)


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_paho_over_websockets(web: int, version: int, qos: int) -> None:
    topic = new_name("web")
    reader, writer = (Device(new_name(name), version, transport="websockets") for name in "rw")
    with devices(web, reader, writer):
        reader.subscribe(f"{topic}/#", qos)
        for number in range(20):
            writer.publish(f"{topic}/a", str(number), qos)
        # More than a frame, and more than one read.
        writer.publish(f"{topic}/a", bytes(200_000), qos)
        assert reader.payloads(20) == [str(number).encode() for number in range(20)]
        assert len(reader.next().payload) == 200_000


def test_paho_over_secure_websockets(broker: BrokerProcess, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    identity = authority.issue("proxy", "/CN=proxy")
    settings = {
        "listeners": "wss://127.0.0.1:0",
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": str(identity.pem),
    }
    with running(lambda: proxy_of(broker.bootstrap, **settings)) as service:
        topic = new_name("wss")
        device = Device(new_name("wss"), transport="websockets")
        device.client.tls_set_context(ssl.create_default_context(cafile=authority.certificate))
        with devices(port_of(service.url), device):
            device.subscribe(f"{topic}/#", 2)
            device.publish(f"{topic}/a", b"secret", 2)
            assert device.next().payload == b"secret"


def test_the_subprotocol_is_mqtt_and_packets_need_not_end_where_frames_do(web: int) -> None:
    connect = encoding.connect(Connect(V5, new_name("web"), True, 60))
    stream = connect + encoding.PINGREQ * 3
    with Browser(web, subprotocols=("other", "mqtt")) as browser:
        accepted = browser.next()
        assert isinstance(accepted, AcceptConnection)
        assert accepted.subprotocol == "mqtt"
        # Byte by byte, then a message in two fragments with a ping between them.
        browser.send(*(BytesMessage(data=stream[at : at + 1]) for at in range(len(stream) - 3)))
        browser.send(
            BytesMessage(data=stream[-3:-1], message_finished=False),
            Ping(b"still there?"),
            BytesMessage(data=stream[-1:]),
        )
        answers, pongs = b"", 0
        while not answers.endswith(encoding.PINGRESP * 3) or not pongs:
            event = browser.next()
            if isinstance(event, Pong):
                pongs += 1
            else:
                assert isinstance(event, BytesMessage)
                answers += event.data
        assert answers[0] == CONNACK


def test_a_text_frame_ends_the_connection(web: int) -> None:
    with Browser(web) as browser:
        assert isinstance(browser.next(), AcceptConnection)
        browser.send(BytesMessage(data=encoding.connect(Connect(V5, new_name("web"), True, 60))))
        assert browser.packet()[0] == CONNACK
        browser.send(TextMessage(data="hello"))
        event = browser.next()
        assert isinstance(event, CloseConnection)
        assert event.code == 1003
        assert browser.next() is None


@pytest.mark.parametrize(
    ("path", "subprotocols", "status", "why"),
    [
        ("/elsewhere", ("mqtt",), 404, b"/mqtt"),
        ("/mqtt", (), 400, b"subprotocol"),
        ("/mqtt", ("mqttv3.1",), 400, b"subprotocol"),
    ],
)
def test_other_handshakes_are_refused_in_words(
    web: int, path: str, subprotocols: tuple[str, ...], status: int, why: bytes
) -> None:
    with Browser(web, path, subprotocols) as browser:
        rejected = browser.next()
        assert isinstance(rejected, RejectConnection)
        assert rejected.status_code == status
        body = browser.next()
        assert isinstance(body, RejectData)
        assert why in bytes(body.data)


def test_pages_of_other_origins_are_refused(broker: BrokerProcess) -> None:
    settings = {"listeners": "ws://127.0.0.1:0", "websocket.origins": PAGE}
    with running(lambda: proxy_of(broker.bootstrap, **settings)) as service:
        port = port_of(service.url)
        with Browser(port, origin="https://evil.example") as browser:
            rejected = browser.next()
            assert isinstance(rejected, RejectConnection)
            assert rejected.status_code == 403
        # Programs, which are not pages, need not say where they come from.
        for own in ({"origin": PAGE}, {}):
            with Browser(port, **own) as browser:
                assert isinstance(browser.next(), AcceptConnection)


def test_a_reason_reaches_the_client_before_the_websocket_is_closed(web: int) -> None:
    with Browser(web) as browser:
        assert isinstance(browser.next(), AcceptConnection)
        browser.send(BytesMessage(data=encoding.connect(Connect(V5, new_name("web"), True, 60))))
        assert browser.packet()[0] == CONNACK
        browser.send(BytesMessage(data=b"\xe1\x00"))
        assert browser.packet()[0] == 0xE0
        assert isinstance(browser.next(), CloseConnection)


def test_what_is_no_websocket_disturbs_nobody(web: int) -> None:
    chance = random.Random(6)
    topic = new_name("web")
    device = Device(new_name("web"), transport="websockets")
    with devices(web, device):
        device.subscribe(f"{topic}/#", 1)
        for number in range(100):
            with socket.create_connection(("127.0.0.1", web), 5) as attacker:
                if number % 4 == 0:
                    attacker.sendall(b"GET /mqtt HTTP/1.1\r\n" + b"x: y\r\n" * 5000)
                elif number % 4 == 1:
                    attacker.sendall(chance.randbytes(200))
                elif number % 4 == 2:
                    attacker.sendall(b"GET /mqtt HTTP/1.1\r\nhost: x\r\n\r\n")
                else:
                    with Browser(web) as browser:
                        assert isinstance(browser.next(), AcceptConnection)
                        browser.send(BytesMessage(data=chance.randbytes(60)))
                        browser._socket.sendall(chance.randbytes(60))
        device.publish(f"{topic}/a", b"calm", 1)
        assert device.next().payload == b"calm"
