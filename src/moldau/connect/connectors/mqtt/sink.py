"""The MQTT sink: a commit waits until the broker has acknowledged everything before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from moldau.connect.api import (
    ConfigDef,
    Kind,
    OffsetAndMetadata,
    RetriableError,
    SinkConnector,
    SinkRecord,
    SinkTask,
    TopicPartition,
)
from moldau.connect.connectors.mqtt.client import Mqtt, define_mqtt
from moldau.connect.connectors.support.documents import json_bytes, text_of

_FLUSH_S: Final = 60.0

CONFIG: Final = (
    define_mqtt(ConfigDef())
    .define("mqtt.topic.format", Kind.STRING, "${topic}", group="MQTT",
            doc="Topic of a message; ${topic} and ${key} are replaced")
    .define("mqtt.retained.enabled", Kind.BOOLEAN, False, group="MQTT",
            doc="Whether the broker keeps the last message of each topic")
)  # fmt: skip


class MqttSinkConnector(SinkConnector):
    DESCRIPTION = "Records to messages of an MQTT broker"

    def __init__(self) -> None:
        super().__init__()
        self._props: dict[str, str] = {}

    @classmethod
    def config(cls) -> ConfigDef:
        return CONFIG

    def start(self, props: Mapping[str, str]) -> None:
        CONFIG.parse(props)
        self._props = dict(props)

    def task_class(self) -> type[SinkTask]:
        return MqttSinkTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [{**self._props, "task.number": str(number)} for number in range(max_tasks)]


class MqttSinkTask(SinkTask):
    def start(self, props: Mapping[str, str]) -> None:
        self._config = CONFIG.parse(props)
        name = f"connect-{props.get('name', 'mqtt-sink')}-{props.get('task.number', '0')}"
        self._mqtt = Mqtt(self._config, name)
        self._sent: list[Any] = []

    def put(self, records: Sequence[SinkRecord]) -> None:
        if not records:
            return
        self._mqtt.connect()
        for record in records:
            topic = self._config["mqtt.topic.format"].replace("${topic}", record.topic)
            if "${key}" in topic:
                key = text_of(record.key, record.key_schema, "the key of an MQTT topic")
                topic = topic.replace("${key}", key)
            self._sent.append(
                self._mqtt.client.publish(
                    topic,
                    _payload(record.value),
                    qos=self._config["mqtt.qos"],
                    retain=self._config["mqtt.retained.enabled"],
                )
            )

    def flush(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        for each in self._sent:
            try:
                each.wait_for_publish(_FLUSH_S)
            except (RuntimeError, ValueError) as error:
                raise RetriableError(f"a message was not sent: {error}") from error
            if not each.is_published():
                raise RetriableError(f"the broker did not acknowledge within {_FLUSH_S:.0f} s")
        self._sent.clear()

    def stop(self) -> None:
        self._mqtt.close()


def _payload(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else json_bytes(value)
