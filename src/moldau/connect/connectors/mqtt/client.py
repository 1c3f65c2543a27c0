"""A connection to an MQTT broker with the settings that source and sink share."""

from __future__ import annotations

import threading
from typing import Any
from urllib.parse import urlsplit

from moldau.connect.api import (
    ConfigDef,
    ConfigError,
    Importance,
    Kind,
    Range,
    RetriableError,
)
from moldau.connect.connectors.support.libraries import library
from moldau.connect.connectors.support.web import plain


def define_mqtt(config: ConfigDef) -> ConfigDef:
    return (
        config.define("mqtt.server.uri", Kind.STRING, importance=Importance.HIGH, group="MQTT",
                      doc="tcp://HOST:PORT, or ssl://HOST:PORT")
        .define("mqtt.username", Kind.STRING, "", group="MQTT", doc="User")
        .define("mqtt.password", Kind.PASSWORD, None, group="MQTT", doc="Its password")
        .define("mqtt.client.id", Kind.STRING, "", group="MQTT",
                doc="Client id; empty: the connector's name")
        .define("mqtt.ssl.trust.store.path", Kind.STRING, None, group="MQTT",
                doc="File with PEM certificates to trust")
        .define("mqtt.qos", Kind.INT, 1, validator=Range(0, 2), group="MQTT", doc="0, 1 or 2")
        .define("mqtt.clean.session.enabled", Kind.BOOLEAN, False, group="MQTT",
                doc="Whether the broker forgets the subscription when the connector stops")
        .define("mqtt.connect.timeout.seconds", Kind.INT, 30, validator=Range(1), group="MQTT",
                doc="How long to wait for a connection")
        .define("mqtt.keepalive.interval.seconds", Kind.INT, 60, validator=Range(0), group="MQTT",
                doc="How often the connection is checked")
    )  # fmt: skip


class Mqtt:
    """A client that connects on demand; paho's own thread reads from the socket."""

    def __init__(self, config: dict[str, Any], client_id: str) -> None:
        self._paho = library("paho.mqtt.client", "paho-mqtt")
        parts = urlsplit(config["mqtt.server.uri"])
        if parts.scheme not in ("tcp", "ssl", "mqtt", "mqtts") or not parts.hostname:
            raise ConfigError.invalid(
                "mqtt.server.uri", config["mqtt.server.uri"], "must be tcp://HOST:PORT or ssl:"
            )
        secure = parts.scheme in ("ssl", "mqtts")
        self._address = (parts.hostname, parts.port or (8883 if secure else 1883))
        self._config = config
        self._timeout_s = config["mqtt.connect.timeout.seconds"]
        self._connected = threading.Event()
        self._problem: str | None = None
        self.client = self._paho.Client(
            self._paho.CallbackAPIVersion.VERSION2,
            client_id=config["mqtt.client.id"] or client_id,
            clean_session=config["mqtt.clean.session.enabled"],
            # A message counts as received when its record is in Kafka.
            manual_ack=True,
        )
        if config["mqtt.username"]:
            self.client.username_pw_set(config["mqtt.username"], plain(config["mqtt.password"]))
        if secure:
            self.client.tls_set(config["mqtt.ssl.trust.store.path"])
        self.client.on_connect = self._on_connect
        self.client.on_disconnect = self._on_disconnect
        self._running = False

    def _on_connect(self, client: Any, _: Any, __: Any, reason: Any, ___: Any) -> None:
        if reason.is_failure:
            self._problem = str(reason)
        else:
            self._problem = None
            self._connected.set()
            self.on_connected()

    def on_connected(self) -> None:
        """Replaced by who wants to subscribe."""

    def _on_disconnect(self, *_: Any) -> None:
        self._connected.clear()

    def connect(self) -> None:
        """Wait until the broker is there; RetriableError if it is not."""
        if self._connected.is_set():
            return
        host, port = self._address
        if not self._running:
            try:
                self.client.connect(host, port, self._config["mqtt.keepalive.interval.seconds"])
            except OSError as error:
                raise RetriableError(
                    f"MQTT broker {host}:{port} does not answer: {error}"
                ) from error
            self.client.loop_start()
            self._running = True
        if not self._connected.wait(self._timeout_s):
            raise RetriableError(f"MQTT broker {host}:{port}: {self._problem or 'no connection'}")

    def close(self) -> None:
        if self._running:
            self.client.disconnect()
            self.client.loop_stop()
