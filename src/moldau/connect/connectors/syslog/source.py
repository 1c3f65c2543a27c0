"""The syslog source: a server for UDP, TCP or TLS whose messages become records.

A sender over UDP gets no answer, so messages that come while the connector does not run, or while
its queue is full, are lost. Over TCP a full queue makes senders wait.
"""

from __future__ import annotations

import contextlib
import datetime
import queue
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from moldau.connect.api import (
    ConfigDef,
    ConnectError,
    Importance,
    Kind,
    OneOf,
    Range,
    SourceRecord,
    SourceTask,
)
from moldau.connect.connectors.support.plain import SingleSource
from moldau.connect.connectors.syslog.machine.messages import BYTES_MAX, Frames, parse
from moldau.data import builders
from moldau.data.struct import Struct

_QUEUE_MAX: Final = 10_000
_WAIT_S: Final = 0.5
KEY: Final = builders.struct({"remoteAddress": builders.OPTIONAL_STRING}, name="SyslogKey")
VALUE: Final = builders.struct(
    {
        "type": builders.STRING,
        "date": builders.OPTIONAL_INT64,
        "facility": builders.OPTIONAL_INT32,
        "host": builders.OPTIONAL_STRING,
        "level": builders.OPTIONAL_INT32,
        "message": builders.OPTIONAL_STRING,
        "remoteAddress": builders.OPTIONAL_STRING,
        "appName": builders.OPTIONAL_STRING,
        "processId": builders.OPTIONAL_STRING,
        "messageId": builders.OPTIONAL_STRING,
        "version": builders.OPTIONAL_INT32,
        "structuredData": builders.map_of(
            builders.STRING, builders.map_of(builders.STRING, builders.STRING), optional=True
        ),
    },
    name="SyslogValue",
)

CONFIG: Final = (
    ConfigDef()
    .define("syslog.listener", Kind.STRING, "UDP", importance=Importance.HIGH,
            validator=OneOf(("UDP", "TCP", "TCPSSL"), ignore_case=True), doc="UDP, TCP or TCPSSL")
    .define("syslog.host", Kind.STRING, "127.0.0.1", doc="Address to listen on")
    .define("syslog.port", Kind.INT, validator=Range(0, 65535), importance=Importance.HIGH,
            doc="Port to listen on")
    .define("topic", Kind.STRING, "syslog", importance=Importance.HIGH, doc="Topic")
    .define("syslog.ssl.cert.chain.path", Kind.STRING, None, doc="PEM file for TCPSSL")
    .define("syslog.ssl.key.path", Kind.STRING, None, doc="PEM file with its key")
    .define("syslog.max.connections", Kind.INT, 100, validator=Range(1),
            doc="How many senders over TCP there may be at once")
)  # fmt: skip


class SyslogSourceConnector(SingleSource):
    DESCRIPTION = "Syslog messages of the network to a topic"
    SETTINGS = CONFIG

    def task_class(self) -> type[SourceTask]:
        return SyslogSourceTask


class SyslogSourceTask(SourceTask):
    def __init__(self) -> None:
        super().__init__()
        self._stopped = threading.Event()
        self._messages: queue.Queue[tuple[bytes, str]] = queue.Queue(_QUEUE_MAX)
        self._threads: list[threading.Thread] = []

    def start(self, props: Mapping[str, str]) -> None:
        config = self._config = CONFIG.parse(props)
        is_udp = config["syslog.listener"].upper() == "UDP"
        kind = socket.SOCK_DGRAM if is_udp else socket.SOCK_STREAM
        self._context = self._tls() if config["syslog.listener"].upper() == "TCPSSL" else None
        self._socket = socket.socket(socket.AF_INET, kind)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((config["syslog.host"], config["syslog.port"]))
        except OSError as error:
            raise ConnectError(
                f"cannot listen on {config['syslog.host']}:{config['syslog.port']}: "
                f"{error.strerror}"
            ) from error
        self._socket.settimeout(_WAIT_S)
        self._slots = threading.Semaphore(config["syslog.max.connections"])
        if not is_udp:
            self._socket.listen()
        self._run(self._receive if is_udp else self._accept)

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def _tls(self) -> ssl.SSLContext:
        path = self._config["syslog.ssl.cert.chain.path"]
        if not path:
            raise ConnectError("syslog.ssl.cert.chain.path must be set with TCPSSL")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path, self._config["syslog.ssl.key.path"])
        return context

    def _run(self, function: Any, *arguments: Any) -> None:
        thread = threading.Thread(target=function, args=arguments, name="syslog", daemon=True)
        self._threads = [each for each in self._threads if each.is_alive()] + [thread]
        thread.start()

    def _receive(self) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(TimeoutError, queue.Full, OSError):
                data, (address, _) = self._socket.recvfrom(65536)
                self._messages.put_nowait((data, address))

    def _accept(self) -> None:
        while not self._stopped.is_set():
            try:
                connection, (address, _) = self._socket.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            if not self._slots.acquire(blocking=False):
                connection.close()
                continue
            self._run(self._serve, connection, address)

    def _serve(self, connection: socket.socket, address: str) -> None:
        frames = Frames()
        try:
            connection.settimeout(_WAIT_S)
            if self._context is not None:
                connection.settimeout(10.0)
                connection = self._context.wrap_socket(connection, server_side=True)
                connection.settimeout(_WAIT_S)
            while not self._stopped.is_set():
                try:
                    data = connection.recv(65536)
                except TimeoutError:
                    continue
                for message in frames.take(data or b"\n"):
                    if message:
                        self._put(message[:BYTES_MAX], address)
                if not data:
                    return
        except OSError:
            return
        finally:
            connection.close()
            self._slots.release()

    def _put(self, message: bytes, address: str) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(queue.Full):
                self._messages.put((message, address), timeout=_WAIT_S)
                return

    def poll(self) -> Sequence[SourceRecord] | None:
        found: list[SourceRecord] = []
        with contextlib.suppress(queue.Empty):
            found.append(self._record(*self._messages.get(timeout=_WAIT_S)))
            while len(found) < 1000:
                found.append(self._record(*self._messages.get_nowait()))
        return found or None

    def _record(self, data: bytes, address: str) -> SourceRecord:
        year = datetime.datetime.now(datetime.UTC).year
        parts = parse(data.decode("utf-8", "replace"), year=year)
        value = Struct(VALUE, {**parts, "remoteAddress": address})
        return SourceRecord(
            None,
            None,
            self._config["topic"],
            key=Struct(KEY, {"remoteAddress": address}),
            key_schema=KEY,
            value=value,
            value_schema=VALUE,
            timestamp=parts.get("date") or int(time.time() * 1000),
        )

    def stop(self) -> None:
        self._stopped.set()
        self._socket.close()
        for thread in self._threads:
            thread.join(2 * _WAIT_S)
