"""The messages of JMS: header fields, properties, and bodies of five types.

A received message is read-only until its properties or body are cleared. Property values are the
types that JMS has and Python too: bool, int (a long), float (a double) and str.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any, Final

from moldau.messaging.machine.destinations import Destination
from moldau.messaging.machine.errors import MessageFormatError, MessageNotWriteableError

__all__ = [
    "DEFAULT_PRIORITY",
    "BytesMessage",
    "DeliveryMode",
    "MapMessage",
    "Message",
    "ObjectMessage",
    "StreamMessage",
    "TextMessage",
]

DEFAULT_PRIORITY: Final = 4
_NAME: Final = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_RESERVED: Final = frozenset(
    {"NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"}
)
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
PropertyValue = bool | int | float | str


class DeliveryMode(IntEnum):
    NON_PERSISTENT = 1
    PERSISTENT = 2


class Message:
    """A message without a body. `acknowledge` is for sessions that acknowledge by the client."""

    kind = "message"

    def __init__(self) -> None:
        self.message_id: str | None = None
        self.timestamp = 0
        self.correlation_id: str | None = None
        self.reply_to: Destination | None = None
        self.destination: Destination | None = None
        self.delivery_mode = DeliveryMode.PERSISTENT
        self.redelivered = False
        self.type: str | None = None
        self.expiration = 0
        self.priority = DEFAULT_PRIORITY
        self.delivery_time = 0
        self.delivery_count = 0
        self._properties: dict[str, PropertyValue] = {}
        self._properties_locked = False
        self._body_locked = False
        self._acknowledge: Any = None

    def acknowledge(self) -> None:
        """Acknowledge all messages that the session has received so far."""
        if self._acknowledge is not None:
            self._acknowledge()

    # Properties.

    @property
    def properties(self) -> Mapping[str, PropertyValue]:
        return dict(self._properties)

    def set_property(self, name: str, value: PropertyValue) -> None:
        """Raises MessageFormatError, MessageNotWriteableError."""
        if self._properties_locked:
            raise MessageNotWriteableError(
                "the properties of a received message are read-only: call clear_properties first"
            )
        self._properties[check_property_name(name)] = check_property_value(name, value)

    def get_property(self, name: str, default: Any = None) -> Any:
        if name == "JMSXDeliveryCount":
            return self.delivery_count
        return self._properties.get(name, default)

    def property_exists(self, name: str) -> bool:
        return name in self._properties

    def clear_properties(self) -> None:
        self._properties.clear()
        self._properties_locked = False

    def clear_body(self) -> None:
        self._body_locked = False
        self._clear()

    def _clear(self) -> None:
        """Of a message without a body there is nothing to clear."""

    def _check_writeable(self) -> None:
        if self._body_locked:
            raise MessageNotWriteableError(
                "the body of a received message is read-only: call clear_body first"
            )

    def lock(self) -> None:
        """It is received: read-only from now on."""
        self._properties_locked = self._body_locked = True

    def selector_values(self) -> dict[str, Any]:
        """What a selector sees."""
        return {
            **self._properties,
            "JMSDeliveryMode": self.delivery_mode.name,
            "JMSPriority": self.priority,
            "JMSMessageID": self.message_id,
            "JMSTimestamp": self.timestamp,
            "JMSCorrelationID": self.correlation_id,
            "JMSType": self.type,
            "JMSXDeliveryCount": self.delivery_count,
        }

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.message_id}>"


def check_property_name(name: str) -> str:
    if not isinstance(name, str) or _NAME.fullmatch(name) is None or name.upper() in _RESERVED:
        raise MessageFormatError(
            f"{name!r} is not a property name: use letters, digits, _ and $, and no word of the "
            "selector language"
        )
    if name.startswith("JMS") and not name.startswith(("JMSXGroup", "JMS_")):
        raise MessageFormatError(f"{name!r}: names that begin with JMS are the provider's")
    return name


def check_property_value(name: str, value: Any) -> PropertyValue:
    if isinstance(value, bool | float | str):
        return value
    if isinstance(value, int):
        if not LONG_MIN <= value <= LONG_MAX:
            raise MessageFormatError(f"{name}: {value} is larger than a long")
        return value
    raise MessageFormatError(
        f"{name}: a property is a bool, int, float or str, not {type(value).__name__}"
    )


class TextMessage(Message):
    kind = "text"

    def __init__(self, text: str | None = None) -> None:
        super().__init__()
        self._text = text

    @property
    def text(self) -> str | None:
        return self._text

    @text.setter
    def text(self, text: str | None) -> None:
        self._check_writeable()
        self._text = text

    def _clear(self) -> None:
        self._text = None


class BytesMessage(Message):
    kind = "bytes"

    def __init__(self, data: bytes = b"") -> None:
        super().__init__()
        self._data = bytes(data)

    @property
    def data(self) -> bytes:
        return self._data

    @data.setter
    def data(self, data: bytes) -> None:
        self._check_writeable()
        self._data = bytes(data)

    def write(self, data: bytes) -> None:
        self._check_writeable()
        self._data += data

    def _clear(self) -> None:
        self._data = b""


class MapMessage(Message):
    """Names with values: None, bool, int, float, str or bytes."""

    kind = "map"

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self._values: dict[str, Any] = {}
        for name, value in (values or {}).items():
            self[name] = value

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._check_writeable()
        if not isinstance(name, str) or not name:
            raise MessageFormatError("the names of a map message are texts that are not empty")
        self._values[name] = check_body_value(value)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    @property
    def values(self) -> dict[str, Any]:
        return dict(self._values)

    def _clear(self) -> None:
        self._values = {}


class StreamMessage(Message):
    """Values one after the other, read in the order in which they were written."""

    kind = "stream"

    def __init__(self) -> None:
        super().__init__()
        self._values: list[Any] = []
        self._at = 0

    def write(self, value: Any) -> None:
        self._check_writeable()
        self._values.append(check_body_value(value))

    def read(self) -> Any:
        """The next value. Raises EOFError after the last."""
        if self._at >= len(self._values):
            raise EOFError("the stream message has no more values")
        self._at += 1
        return self._values[self._at - 1]

    def reset(self) -> None:
        """Read from the beginning again; the body is read-only now."""
        self._at = 0
        self._body_locked = True

    @property
    def values(self) -> list[Any]:
        return list(self._values)

    def _clear(self) -> None:
        self._values, self._at = [], 0


class ObjectMessage(Message):
    """Any Python object, pickled; only with `allow_pickle`, because unpickling runs code."""

    kind = "object"

    def __init__(self, value: Any = None) -> None:
        super().__init__()
        self._value = value

    @property
    def value(self) -> Any:
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        self._check_writeable()
        self._value = value

    def _clear(self) -> None:
        self._value = None


def check_body_value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    raise MessageFormatError(
        f"a map or stream message has None, bool, int, float, str and bytes, not "
        f"{type(value).__name__}"
    )
