"""MQTT proxies in tests, and paho-mqtt's client with what it received."""

from __future__ import annotations

import itertools
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from moldau.client import Consumer
from moldau.services.mqtt.config import MqttConfig
from moldau.services.mqtt.service import MqttService
from support.ports import free_port
from support.processes import BrokerProcess
from support.waiting import eventually

WAIT_S = 20.0
_numbers = itertools.count(1)
ROOT = Path(__file__).parents[2]


def new_name(prefix: str) -> str:
    """Of a topic or client: tests of one file share a broker and a proxy."""
    return f"{prefix}{next(_numbers)}"


def proxy_of(bootstrap: str, **settings: str) -> MqttService:
    texts = {name.replace("_", "."): value for name, value in settings.items()}
    return MqttService(
        MqttConfig.of(
            {
                "bootstrap.servers": bootstrap,
                "listeners": "mqtt://127.0.0.1:0",
                "topics.refresh.ms": "300",
                "session.commit.interval.ms": "200",
                **texts,
            }
        )
    )


def port_of(url: str) -> int:
    return int(url.removesuffix("/mqtt").rsplit(":", 1)[1])


class ProxyProcess:
    """`moldau mqtt start` in a process of its own, to be killed."""

    def __init__(self, bootstrap: str, folder: Path, *overrides: str) -> None:
        self.port = free_port()
        self._log = folder / f"proxy-{self.port}.log"
        self._command = [
            sys.executable, "-m", "moldau.cli", "mqtt", "start", "--port", str(self.port),
            "--bootstrap-server", bootstrap,
        ]  # fmt: skip
        for each in overrides:
            self._command += ["--override", each]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> ProxyProcess:
        shown = len(self.output) if self._log.exists() else 0
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, cwd=ROOT, env={"PYTHONPATH": "src"}
            )
        eventually(lambda: "Ctrl-C" in self.output[shown:], what="the proxy is up")
        return self

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(20)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)

    @property
    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def __enter__(self) -> ProxyProcess:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()


class Device:
    """paho-mqtt's client; `got` has what it received, in order."""

    def __init__(self, client_id: str, version: int = 5, **connect: Any) -> None:
        self.version = version
        protocol = paho.MQTTv5 if version == 5 else paho.MQTTv311
        options: dict[str, Any] = {}
        if version != 5:
            options["clean_session"] = connect.pop("clean", True)
        self._clean = connect.pop("clean", True)
        self._expiry = connect.pop("expiry", 0)
        self._connect_properties = connect.pop("properties", {})
        options["transport"] = connect.pop("transport", "tcp")
        self.client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, client_id, protocol=protocol, **options
        )
        self.got: queue.Queue[paho.MQTTMessage] = queue.Queue()
        self.connack: Any = None
        self.connack_properties: Any = None
        self.session_present = False
        self.disconnected: Any = None
        self._connected = threading.Event()
        self._gone = threading.Event()
        self._subscribed: dict[int, Any] = {}
        self._changed = threading.Condition()
        self.client.on_connect = self._on_connect
        self.client.on_disconnect = self._on_disconnect
        self.client.on_message = lambda _client, _data, message: self.got.put(message)
        self.client.on_subscribe = self._on_codes
        self.client.on_unsubscribe = self._on_codes

    def _on_connect(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        self.connack, self.connack_properties = reason, properties
        self.session_present = flags.session_present
        self._connected.set()

    def _on_disconnect(
        self, client: Any, data: Any, flags: Any, reason: Any, properties: Any
    ) -> None:
        self.disconnected = reason
        self._gone.set()

    def _on_codes(self, client: Any, data: Any, mid: int, codes: Any, properties: Any) -> None:
        with self._changed:
            self._subscribed[mid] = codes
            self._changed.notify_all()

    def connect(self, port: int, *, keepalive: int = 30) -> Device:
        options: dict[str, Any] = {}
        if self.version == 5:
            options["clean_start"] = self._clean
            properties = Properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = self._expiry
            for name, value in self._connect_properties.items():
                setattr(properties, name, value)
            options["properties"] = properties
        self._connected.clear()
        self._gone.clear()
        self.client.connect("127.0.0.1", port, keepalive, **options)
        self.client.loop_start()
        assert self._connected.wait(WAIT_S), "no CONNACK"
        return self

    def subscribe(self, filter_text: str, qos: int = 1, **options: Any) -> Any:
        """The reason code."""
        identifier = options.pop("identifier", 0)
        if self.version == 5:
            properties = Properties(PacketTypes.SUBSCRIBE)
            if identifier:
                properties.SubscriptionIdentifier = identifier
            chosen = SubscribeOptions(qos=qos, **options)
            _, mid = self.client.subscribe(filter_text, options=chosen, properties=properties)
        else:
            _, mid = self.client.subscribe(filter_text, qos)
        return self._codes(mid)[0]

    def unsubscribe(self, filter_text: str) -> None:
        _, mid = self.client.unsubscribe(filter_text)
        self._codes(mid)

    def _codes(self, mid: int | None) -> Any:
        assert mid is not None
        with self._changed:
            assert self._changed.wait_for(lambda: mid in self._subscribed, WAIT_S), "no SUBACK"
            return self._subscribed[mid]

    def publish(
        self, topic: str, payload: bytes | str = b"", qos: int = 1, *, retain: bool = False,
        **properties: Any,
    ) -> None:  # fmt: skip
        """Returns when the proxy has acknowledged it."""
        options: dict[str, Any] = {}
        if properties:
            options["properties"] = Properties(PacketTypes.PUBLISH)
            for name, value in properties.items():
                setattr(options["properties"], name, value)
        info = self.client.publish(topic, payload, qos, retain, **options)
        info.wait_for_publish(WAIT_S)
        assert info.is_published(), f"{topic} was not acknowledged"

    def next(self, timeout: float = WAIT_S) -> paho.MQTTMessage:
        return self.got.get(timeout=timeout)

    def payloads(self, count: int) -> list[bytes]:
        return [self.next().payload for _ in range(count)]

    def has_nothing(self, marker_topic: str, sender: Device) -> bool:
        """Whether a marker is the next message that comes."""
        sender.publish(marker_topic, b"marker")
        return self.next().payload == b"marker"

    def disconnect(self) -> None:
        self.client.disconnect()
        self._gone.wait(5)
        self.client.loop_stop()

    def drop(self) -> None:
        """Without DISCONNECT."""
        sock = self.client.socket()
        if sock is not None:
            sock.shutdown(socket.SHUT_RDWR)
        self.client.loop_stop()

    def wait_gone(self) -> Any:
        assert self._gone.wait(WAIT_S), "not disconnected"
        return self.disconnected


@contextmanager
def devices(port: int, *made: Device) -> Iterator[None]:
    for each in made:
        each.connect(port)
    try:
        yield
    finally:
        for each in made:
            each.disconnect()


def records_of(broker: BrokerProcess, topic: str, count: int) -> list:
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": new_name("reader")}
    found: list = []
    with Consumer(settings, auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        eventually(
            lambda: found.extend(consumer.poll(0.5)) or len(found) >= count,
            what=f"{count} records of {topic}",
        )
    return found
