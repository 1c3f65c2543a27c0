"""A message as a record: which property is which header, and back.

The headers of the proxy begin with `mqtt.`. A user property becomes a header of the same name; one
that begins with `mqtt.` itself gets `mqtt.user.` in front, so that a device cannot write the
proxy's own. Any other header of a record becomes a user property if its value is UTF-8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from moldau.services.mqtt.machine.properties import NO_PROPERTIES, Properties, Property

__all__ = ["CLIENT", "MESSAGE_ID", "QOS", "RETAIN", "Message", "base_headers", "property_headers",
           "read_message"]  # fmt: skip

QOS: Final = "mqtt.qos"
RETAIN: Final = "mqtt.retain"
CLIENT: Final = "mqtt.client.id"
#: Marks a QoS 2 message, so that it can be found in the log after a failure.
MESSAGE_ID: Final = "mqtt.message.id"
EXPIRY: Final = "mqtt.message.expiry"
USER: Final = "mqtt.user."
_PREFIX: Final = "mqtt."

Header = tuple[str, bytes]

_TEXTS: Final = {
    Property.CONTENT_TYPE: "mqtt.content.type",
    Property.RESPONSE_TOPIC: "mqtt.response.topic",
}
_TEXT_HEADERS: Final = {name: number.value for number, name in _TEXTS.items()}
_CORRELATION: Final = "mqtt.correlation.data"
_FORMAT: Final = "mqtt.payload.format"
EXPIRY_MAX: Final = 0xFFFFFFFF


class Message:
    """A message for subscribers, however many there are."""

    __slots__ = (
        "expires_ms", "offset", "partition", "payload", "properties", "publisher", "qos", "retain",
        "topic", "wires",
    )  # fmt: skip

    def __init__(
        self,
        topic: str,
        payload: bytes,
        qos: int = 2,
        retain: bool = False,
        properties: Properties = NO_PROPERTIES,
        publisher: str = "",
        expires_ms: int = 0,
        partition: Any = None,
        offset: int = -1,
    ) -> None:
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.properties = properties
        self.publisher = publisher
        #: On the wall clock; 0 if it does not expire.
        self.expires_ms = expires_ms
        #: Where it was read, if from a log.
        self.partition = partition
        self.offset = offset
        #: Its PUBLISH with QoS 0 by protocol version: the same bytes for all subscribers.
        self.wires: dict[int, bytes] = {}


def base_headers(client_id: str) -> tuple[list[Header], ...]:
    """Of messages without properties, by QoS."""
    client = (CLIENT, client_id.encode())
    return tuple([(QOS, str(qos).encode()), client] for qos in range(3))


def property_headers(properties: Mapping[int, Any]) -> list[Header]:
    found: list[Header] = []
    for number, value in properties.items():
        if number == Property.USER_PROPERTY:
            found += [
                (USER + name if name.startswith(_PREFIX) else name, text.encode())
                for name, text in value
            ]
        elif number in _TEXTS:
            found.append((_TEXTS[Property(number)], value.encode()))
        elif number == Property.CORRELATION_DATA:
            found.append((_CORRELATION, value))
        elif number == Property.PAYLOAD_FORMAT:
            found.append((_FORMAT, str(value).encode()))
        elif number == Property.MESSAGE_EXPIRY:
            found.append((EXPIRY, str(value).encode()))
    return found


def read_message(
    topic: str,
    payload: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
    *,
    timestamp_ms: int,
    partition: Any = None,
    offset: int = -1,
) -> Message:
    """A record with an MQTT topic. Headers that cannot be read are left out, never an error."""
    message = Message(topic, payload or b"", partition=partition, offset=offset)
    properties: Properties = {}
    users: list[tuple[str, str]] = []
    for name, value in headers:
        if value is None:
            continue
        if not name.startswith(_PREFIX):
            _add_user(users, name, value)
        elif name == QOS:
            if value in _QOS_VALUES:
                message.qos = _QOS_VALUES[value]
        elif name == CLIENT:
            message.publisher = value.decode(errors="replace")
        elif name == RETAIN:
            message.retain = value == b"1"
        elif name == EXPIRY:
            expiry_s = _number(value, EXPIRY_MAX)
            if expiry_s is not None:
                message.expires_ms = timestamp_ms + expiry_s * 1000
        elif name.startswith(USER):
            _add_user(users, name.removeprefix(USER), value)
        else:
            _read_property(properties, name, value)
    if users:
        properties[Property.USER_PROPERTY.value] = users
    if properties:
        message.properties = properties
    return message


_QOS_VALUES: Final = {b"0": 0, b"1": 1, b"2": 2}
_TEXT_BYTES_MAX: Final = 65_535


def _read_property(properties: Properties, name: str, value: bytes) -> None:
    if name in _TEXT_HEADERS:
        text = _text(value)
        if text is not None and (name != "mqtt.response.topic" or _is_plain(text)):
            properties[_TEXT_HEADERS[name]] = text
    elif name == _CORRELATION and len(value) <= _TEXT_BYTES_MAX:
        properties[Property.CORRELATION_DATA.value] = value
    elif name == _FORMAT:
        number = _number(value, 1)
        if number is not None:
            properties[Property.PAYLOAD_FORMAT.value] = number


def _is_plain(text: str) -> bool:
    return bool(text) and "+" not in text and "#" not in text


def _add_user(users: list[tuple[str, str]], name: str, value: bytes) -> None:
    text = _text(value)
    if text is not None and "\0" not in name and len(name) * 4 <= _TEXT_BYTES_MAX:
        users.append((name, text))


def _text(value: bytes) -> str | None:
    if len(value) > _TEXT_BYTES_MAX:
        return None
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _number(value: bytes, largest: int) -> int | None:
    if not value.isdigit() or len(value) > 10:
        return None
    return min(int(value), largest)
