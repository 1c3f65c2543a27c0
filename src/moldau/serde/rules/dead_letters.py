"""DLQ: the record that a rule refused goes to a topic, with the reason in headers; the call fails.

Written data goes as JSON, with the fields that other rules would have encrypted replaced; data that
was read goes as it was.
"""

from __future__ import annotations

import json
import logging
import struct
import threading
from collections.abc import Mapping
from typing import Any, Final

from moldau.client.errors import KafkaError, SerializationError
from moldau.serde.rules.machine.errors import RuleError
from moldau.serde.rules.machine.fields import Field
from moldau.serde.rules.running import RULE_NAME_HEADER, RuleContext

__all__ = ["DeadLetters"]

logger = logging.getLogger(__name__)

FLUSH_S: Final = 30.0
_HIDDEN: Final = "<REDACTED>"
_ENCRYPTING: Final = ("ENCRYPT", "ENCRYPT_PAYLOAD")
_OF_CLUSTER: Final = ("bootstrap.servers", "client.id", "security.", "sasl.", "ssl.")


class DeadLetters:
    """One producer for all topics, made when it is first needed."""

    def __init__(self, config: Mapping[str, Any], topic: str | None) -> None:
        """`config` are the client's settings: they say where the cluster is."""
        self._settings = {
            key: value for key, value in config.items() if key.startswith(_OF_CLUSTER)
        }
        self._topic = topic
        self._producer: Any = None
        self._lock = threading.Lock()

    def send(self, context: RuleContext, error: Exception | None) -> None:
        """Raises SerializationError in any case."""
        topic = self._topic or context.parameter("dlq.topic")
        if not topic:
            raise RuleError(f"rule {context.rule.name}: there is no dlq.topic")
        record = context.record
        data = self._bytes(context, record.original)
        key, value = (data, None) if record.is_key else (None, data)
        headers = [
            *(record.headers or ()),
            (RULE_NAME_HEADER, context.rule.name.encode()),
            ("__rule.mode", context.mode.encode()),
            ("__rule.subject", context.subject.encode()),
            ("__rule.topic", record.topic.encode()),
        ]
        if error is not None:
            headers.append(("__rule.exception", str(error).encode()))
        try:
            self._made().send(topic, value, key=key, headers=headers).result(FLUSH_S)
        except KafkaError as problem:
            logger.error("could not send to the dead-letter topic %s: %s", topic, problem)
        raise RuleError(f"Rule failed: {context.rule.name}") from error

    def close(self) -> None:
        with self._lock:
            producer, self._producer = self._producer, None
        if producer is not None:
            producer.close()

    def _made(self) -> Any:
        from moldau.client.producer import Producer

        with self._lock:
            if self._producer is None:
                if not self._settings.get("bootstrap.servers"):
                    raise SerializationError("there are no bootstrap.servers for dead letters")
                self._producer = Producer(self._settings, acks="all", linger_ms=0)
            return self._producer

    @staticmethod
    def _bytes(context: RuleContext, data: Any) -> bytes | None:
        match data:
            case None:
                return None
            case bytes() | bytearray() | memoryview():
                return bytes(data)
            case str():
                return data.encode()
            case bool():
                return json.dumps(data).encode()
            case int() if -(2**63) <= data < 2**63:
                return struct.pack(">q", data)
            case float():
                return struct.pack(">d", data)
        shown = _redacted(context, data)
        if hasattr(shown, "DESCRIPTOR"):
            from google.protobuf import json_format

            return str(json_format.MessageToJson(shown)).encode()
        return json.dumps(shown, default=_json_default).encode()


def _redacted(context: RuleContext, data: Any) -> Any:
    """Without what encrypting rules of the schema would have hidden."""
    tags = frozenset(tag for each in context.rules if each.type in _ENCRYPTING for tag in each.tags)
    if not tags or context.walk is None:
        return data

    def hide(field: Field, value: Any) -> Any:
        if value is None or not tags & context.tags(field):
            return value
        if field.type == "STRING":
            return _HIDDEN
        return _HIDDEN.encode() if field.type == "BYTES" else value

    return context.walk(data, hide)


def _json_default(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
