"""The MQTT source. A message is acknowledged once its record is in Kafka: at least once with QoS 1
and 2."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from moldau.connect.api import (
    ConfigDef,
    Header,
    Importance,
    Kind,
    Range,
    SourceRecord,
    SourceTask,
)
from moldau.connect.connectors.mqtt.client import Mqtt, define_mqtt
from moldau.connect.connectors.support.plain import SingleSource
from moldau.data.builders import BOOLEAN, BYTES, INT32, STRING

_WAIT_S: Final = 0.5

CONFIG: Final = (
    define_mqtt(ConfigDef())
    .define("mqtt.topics", Kind.LIST, importance=Importance.HIGH, group="MQTT",
            doc="Topic filters to subscribe to")
    .define("kafka.topic", Kind.STRING, "mqtt", importance=Importance.HIGH, group="Kafka",
            doc="Topic to write to")
    .define("records.buffer.queue.size", Kind.INT, 20_000, validator=Range(1), group="Kafka",
            doc="How many messages may wait")
    .define("records.buffer.queue.max.batch.size", Kind.INT, 4096, validator=Range(1),
            group="Kafka", doc="How many records one poll returns")
)  # fmt: skip


class MqttSourceConnector(SingleSource):
    DESCRIPTION = "Messages of an MQTT broker to a topic"
    SETTINGS = CONFIG

    def task_class(self) -> type[SourceTask]:
        return MqttSourceTask


class MqttSourceTask(SourceTask):
    def __init__(self) -> None:
        super().__init__()
        self._stopped = threading.Event()

    def start(self, props: Mapping[str, str]) -> None:
        config = self._config = CONFIG.parse(props)
        self._messages: queue.Queue[Any] = queue.Queue(config["records.buffer.queue.size"])
        #: Messages whose records were returned, in order.
        self._unacknowledged: deque[Any] = deque()
        self._mqtt = Mqtt(config, f"connect-{props.get('name', 'mqtt-source')}")
        self._mqtt.on_connected = self._subscribe  # type: ignore[method-assign]
        self._mqtt.client.on_message = self._on_message

    def _subscribe(self) -> None:
        qos = self._config["mqtt.qos"]
        self._mqtt.client.subscribe([(each, qos) for each in self._config["mqtt.topics"]])

    def _on_message(self, client: Any, _: Any, message: Any) -> None:
        # A full queue makes paho's thread wait, and so the broker.
        while not self._stopped.is_set():
            with contextlib.suppress(queue.Full):
                self._messages.put(message, timeout=_WAIT_S)
                return

    def poll(self) -> Sequence[SourceRecord] | None:
        self._mqtt.connect()
        found: list[SourceRecord] = []
        with contextlib.suppress(queue.Empty):
            found.append(self._record(self._messages.get(timeout=_WAIT_S)))
            while len(found) < self._config["records.buffer.queue.max.batch.size"]:
                found.append(self._record(self._messages.get_nowait()))
        return found or None

    def _record(self, message: Any) -> SourceRecord:
        self._unacknowledged.append(message)
        return SourceRecord(
            None,
            None,
            self._config["kafka.topic"],
            key=message.topic,
            key_schema=STRING,
            value=bytes(message.payload),
            value_schema=BYTES,
            headers=[
                Header("mqtt.message.id", int(message.mid), INT32),
                Header("mqtt.qos", int(message.qos), INT32),
                Header("mqtt.retained", bool(message.retain), BOOLEAN),
                Header("mqtt.duplicate", bool(message.dup), BOOLEAN),
            ],
        )

    def commit_record(self, record: SourceRecord, metadata: Any) -> None:
        if self._unacknowledged:
            message = self._unacknowledged.popleft()
            self._mqtt.client.ack(message.mid, message.qos)

    def stop(self) -> None:
        self._stopped.set()
        self._mqtt.close()
