"""A message as a record: the body is the value, everything else is headers.

Header fields have JMS's names. A property is a header of the same name with its value as text, and
the types of all that are not strings are in one header: any Kafka client can read and write them.
A record of another client is a bytes message, its headers are string properties.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any, Final

from moldau.messaging.machine.destinations import parse_destination
from moldau.messaging.machine.errors import MessageFormatError, MessagingError
from moldau.messaging.machine.messages import (
    BytesMessage,
    DeliveryMode,
    MapMessage,
    Message,
    ObjectMessage,
    StreamMessage,
    TextMessage,
    check_property_name,
)

__all__ = ["ATTEMPTS", "CONNECTION", "DELIVERY_TIME", "Pickling", "headers_of", "read_message",
           "value_of"]  # fmt: skip

KIND: Final = "JMSXMessageType"
TYPES: Final = "JMSXPropertyTypes"
CONNECTION: Final = "JMSXConnection"
DELIVERY_TIME: Final = "JMSDeliveryTime"
#: How often a message was put back, besides the deliveries that the broker counts.
ATTEMPTS: Final = "JMSXPutBack"
Headers = list[tuple[str, bytes]]


class Pickling:
    """What pickles objects; None for both refuses them."""

    def __init__(self, dumps: Any = None, loads: Any = None) -> None:
        self.dumps = dumps
        self.loads = loads


_TEXTS: Final = (
    ("JMSMessageID", "message_id"),
    ("JMSCorrelationID", "correlation_id"),
    ("JMSType", "type"),
)
_NUMBERS: Final = (
    ("JMSExpiration", "expiration", 0),
    ("JMSPriority", "priority", 4),
    (DELIVERY_TIME, "delivery_time", 0),
)


def headers_of(message: Message) -> Headers:
    found: Headers = [(KIND, message.kind.encode())]
    for name, attribute in _TEXTS:
        text = getattr(message, attribute)
        if text is not None:
            found.append((name, str(text).encode()))
    for name, attribute, usual in _NUMBERS:
        number = getattr(message, attribute)
        if number != usual:
            found.append((name, str(int(number)).encode()))
    if message.reply_to is not None:
        found.append(("JMSReplyTo", str(message.reply_to).encode()))
    if message.destination is not None:
        found.append(("JMSDestination", str(message.destination).encode()))
    if message.delivery_mode != DeliveryMode.PERSISTENT:
        found.append(("JMSDeliveryMode", str(int(message.delivery_mode)).encode()))
    types: dict[str, str] = {}
    for name, value in message.properties.items():
        if isinstance(value, bool):
            types[name], text = "boolean", "true" if value else "false"
        elif isinstance(value, int):
            types[name], text = "long", str(value)
        elif isinstance(value, float):
            types[name], text = "double", repr(value)
        else:
            text = value
        found.append((name, text.encode()))
    if types:
        found.append((TYPES, json.dumps(types).encode()))
    return found


def value_of(message: Message, pickling: Pickling) -> bytes | None:
    """Raises MessageFormatError."""
    if isinstance(message, TextMessage):
        return None if message.text is None else message.text.encode()
    if isinstance(message, BytesMessage):
        return message.data
    if isinstance(message, MapMessage):
        content: Any = {name: _plain(value) for name, value in message.values.items()}
        return json.dumps(content).encode()
    if isinstance(message, StreamMessage):
        return json.dumps([_plain(value) for value in message.values]).encode()
    if isinstance(message, ObjectMessage):
        if pickling.dumps is None:
            raise _no_pickle("sent")
        return bytes(pickling.dumps(message.value))
    return None


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    return value


def _unplain(value: Any) -> Any:
    return base64.b64decode(value["bytes"]) if isinstance(value, dict) else value


def _no_pickle(what: str) -> MessageFormatError:
    return MessageFormatError(
        f"object messages are not {what}, because reading them runs code of whoever wrote them: "
        "pass allow_pickle=True to the ConnectionFactory if all who can write are trusted"
    )


def read_message(
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
    *,
    timestamp: int,
    delivery_count: int,
    pickling: Pickling,
) -> Message:
    """A message from a record, read-only. Raises MessageFormatError."""
    texts = {name: data for name, data in headers if data is not None}
    try:
        message = _body(texts.get(KIND, b"bytes").decode(), value, pickling)
        for name, attribute in _TEXTS:
            if name in texts:
                setattr(message, attribute, texts[name].decode())
        for name, attribute, usual in _NUMBERS:
            setattr(message, attribute, int(texts.get(name, usual)))
        if "JMSReplyTo" in texts:
            message.reply_to = parse_destination(texts["JMSReplyTo"].decode())
        if "JMSDestination" in texts:
            message.destination = parse_destination(texts["JMSDestination"].decode())
        message.delivery_mode = DeliveryMode(int(texts.get("JMSDeliveryMode", b"2")))
        types = json.loads(texts.get(TYPES, b"{}"))
        if not isinstance(types, dict):
            raise ValueError("the types of properties are not an object")
        put_back = int(texts.get(ATTEMPTS, b"0"))
    except (ValueError, TypeError, KeyError, AttributeError, MessagingError) as error:
        if isinstance(error, MessageFormatError):
            raise
        raise MessageFormatError(f"the record is not a message of JMS: {error}") from error
    message.timestamp = timestamp
    message.delivery_count = delivery_count + put_back
    message.redelivered = message.delivery_count > 1
    _read_properties(message, headers, types)
    message.lock()
    return message


def _body(kind: str, value: bytes | None, pickling: Pickling) -> Message:
    if kind == "text":
        return TextMessage(None if value is None else value.decode())
    if kind == "bytes":
        return BytesMessage(value or b"")
    if kind == "map":
        return MapMessage({k: _unplain(v) for k, v in json.loads(value or b"{}").items()})
    if kind == "stream":
        stream = StreamMessage()
        for each in json.loads(value or b"[]"):
            stream.write(_unplain(each))
        return stream
    if kind == "object":
        if pickling.loads is None:
            raise _no_pickle("read")
        return ObjectMessage(pickling.loads(value or b""))
    if kind == "message":
        return Message()
    raise MessageFormatError(f"{kind!r} is not a type of messages")


def _read_properties(
    message: Message, headers: Sequence[tuple[str, bytes | None]], types: dict[str, Any]
) -> None:
    """Headers that cannot be properties are left out."""
    for name, data in headers:
        if data is None or name.startswith("__connect."):
            continue
        try:
            check_property_name(name)
            text = data.decode()
            kind = types.get(name)
            if kind == "boolean":
                message.set_property(name, text == "true")
            elif kind == "long":
                message.set_property(name, int(text))
            elif kind == "double":
                message.set_property(name, float(text))
            else:
                message.set_property(name, text)
        except (MessageFormatError, ValueError):
            continue
