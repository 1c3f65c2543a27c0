"""How the console consumers print records: Kafka's formatters by their Java names, and custom ones.

A formatter is a class without arguments with `configure(settings)` (strings by name),
`write_to(record, output)` (output takes bytes) and `close()`. `--formatter` takes the name of one
of Kafka's classes, with or without its package, or the dotted path of a Python class.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from moldau.cli.support.machine.java_text import Float32, java_text
from moldau.config.suggestions import did_you_mean
from moldau.wire.message_json import compact_json, message_to_json
from moldau.wire.record_values import (
    Family,
    UnknownRecordTypeError,
    decode_coordinator_record,
)

if TYPE_CHECKING:
    from moldau.client.consumer_record import ConsumerRecord

    RawRecord = ConsumerRecord[bytes | None, bytes | None]

__all__ = [
    "FORMATTERS",
    "Deserialize",
    "MessageFormatter",
    "Output",
    "deserializer_of",
    "load_class",
    "make_formatter",
    "python_path",
]

_log = logging.getLogger(__name__)

_TIMESTAMP_TYPES = {0: "CreateTime", 1: "LogAppendTime"}


class Output(Protocol):
    """Where records are printed."""

    def write(self, data: bytes, /) -> object: ...


class MessageFormatter(Protocol):
    def configure(self, settings: Mapping[str, str]) -> None: ...

    def write_to(self, record: RawRecord, output: Output) -> None: ...

    def close(self) -> None: ...


class _Formatter:
    """A formatter without settings and without anything to close."""

    def configure(self, settings: Mapping[str, str]) -> None:
        pass

    def close(self) -> None:
        pass


Deserialize = Callable[[str, bytes, Any], object]


class DefaultMessageFormatter(_Formatter):
    """The selected parts of a record in Kafka's order, between separators."""

    _FLAGS: ClassVar[dict[str, bool]] = {
        "print.timestamp": False,
        "print.partition": False,
        "print.offset": False,
        "print.delivery": False,
        "print.epoch": False,
        "print.headers": False,
        "print.key": False,
        "print.value": True,
    }

    def __init__(self) -> None:
        self._set(self._FLAGS)
        self._key_separator = b"\t"
        self._line_separator = b"\n"
        self._headers_separator = b","
        self._null_literal = b"null"
        self._deserialize: dict[str, Deserialize | None] = {}

    def configure(self, settings: Mapping[str, str]) -> None:
        flags = {
            name: settings[name].strip().lower() == "true" if name in settings else default
            for name, default in self._FLAGS.items()
        }
        self._set(flags)
        self._key_separator = settings.get("key.separator", "\t").encode()
        self._line_separator = settings.get("line.separator", "\n").encode()
        self._headers_separator = settings.get("headers.separator", ",").encode()
        self._null_literal = settings.get("null.literal", "null").encode()
        self._deserialize = {
            part: deserializer_of(settings, f"{part}.deserializer", is_key=part == "key")
            for part in ("key", "value", "headers")
        }

    def _set(self, flags: Mapping[str, bool]) -> None:
        parts: dict[str, Callable[[RawRecord], bytes]] = {
            "print.timestamp": self._timestamp,
            "print.partition": lambda record: b"Partition:%d" % record.partition,
            "print.offset": lambda record: b"Offset:%d" % record.offset,
            "print.delivery": lambda record: b"Delivery:" + _or_missing(record.delivery_count),
            "print.epoch": lambda record: b"Epoch:" + _or_missing(record.leader_epoch),
            "print.headers": self._headers,
            "print.key": lambda record: self._field("key", record.key, record),
            "print.value": lambda record: self._field("value", record.value, record),
        }
        self._parts = [part for name, part in parts.items() if flags[name]]

    def write_to(self, record: RawRecord, output: Output) -> None:
        if self._parts:
            columns = [part(record) for part in self._parts]
            output.write(self._key_separator.join(columns) + self._line_separator)

    @staticmethod
    def _timestamp(record: RawRecord) -> bytes:
        kind = _TIMESTAMP_TYPES.get(record.timestamp_type)
        if kind is None:
            return b"NO_TIMESTAMP"
        return f"{kind}:{record.timestamp}".encode()

    def _headers(self, record: RawRecord) -> bytes:
        if not record.headers:
            return b"NO_HEADERS"
        return self._headers_separator.join(
            name.encode() + b":" + self._field("headers", value, record)
            for name, value in record.headers
        )

    def _field(self, part: str, data: bytes | None, record: RawRecord) -> bytes:
        # Null is printed as its literal even through a deserializer: Kafka's does so.
        present = self._null_literal if data is None else data
        deserialize = self._deserialize.get(part)
        if deserialize is None:
            return bytes(present)
        return java_text(deserialize(record.topic, present, record.headers))


class LoggingMessageFormatter(_Formatter):
    """Prints as the default one does, and also logs the record."""

    def __init__(self) -> None:
        self._default = DefaultMessageFormatter()

    def configure(self, settings: Mapping[str, str]) -> None:
        self._default.configure(settings)

    def write_to(self, record: RawRecord, output: Output) -> None:
        self._default.write_to(record, output)
        kind = _TIMESTAMP_TYPES.get(record.timestamp_type)
        timestamp = f"{kind}:{record.timestamp}, " if kind is not None else ""
        key = "null " if record.key is None else f"{bytes(record.key).decode(errors='replace')}, "
        value = "null" if record.value is None else bytes(record.value).decode(errors="replace")
        _log.info("%skey:%svalue:%s", timestamp, key, value)


class NoOpMessageFormatter(_Formatter):
    """Prints nothing."""

    def write_to(self, record: RawRecord, output: Output) -> None:
        pass


class _CoordinatorFormatter(_Formatter):
    """Records of a coordinator's topic as JSON. Types of later releases are skipped."""

    FAMILY: ClassVar[Family]
    TYPES: ClassVar[frozenset[int] | None] = None

    def __init__(self) -> None:
        # Kafka writes objects without a separator. On a terminal each has its line.
        self._end = b"\n" if sys.stdout.isatty() else b""

    def write_to(self, record: RawRecord, output: Output) -> None:
        if record.key is None:
            return
        try:
            key, value = decode_coordinator_record(self.FAMILY, record.key, record.value)
        except UnknownRecordTypeError:
            return
        except Exception as error:
            raise ValueError(
                f"Could not read record at offset {record.offset} due to: {error}"
            ) from error
        if self.TYPES is not None and key.TYPE not in self.TYPES:
            return
        shown: dict[str, object] = {
            "key": {"type": key.TYPE, "data": message_to_json(key, 0)},
            "value": None,
        }
        if value is not None and record.value is not None:
            version = int.from_bytes(bytes(record.value[:2]), "big", signed=True)
            shown["value"] = {"version": version, "data": message_to_json(value, version)}
        output.write(compact_json(shown).encode() + self._end)


class OffsetsMessageFormatter(_CoordinatorFormatter):
    """Committed offsets of __consumer_offsets."""

    FAMILY = "group"
    TYPES = frozenset({0, 1})


class GroupMetadataMessageFormatter(_CoordinatorFormatter):
    """Classic groups of __consumer_offsets."""

    FAMILY = "group"
    TYPES = frozenset({2})


class ShareGroupMessageFormatter(_CoordinatorFormatter):
    """Share groups of __consumer_offsets."""

    FAMILY = "group"
    TYPES = frozenset({10, 11, 12, 13, 14, 15})


class TransactionLogMessageFormatter(_CoordinatorFormatter):
    """__transaction_state."""

    FAMILY = "transaction"


class ShareGroupStateMessageFormatter(_CoordinatorFormatter):
    """__share_group_state."""

    FAMILY = "share"


_PACKAGE = "org.apache.kafka.tools.consumer."
FORMATTERS: dict[str, type[MessageFormatter]] = {
    _PACKAGE + "DefaultMessageFormatter": DefaultMessageFormatter,
    _PACKAGE + "LoggingMessageFormatter": LoggingMessageFormatter,
    _PACKAGE + "NoOpMessageFormatter": NoOpMessageFormatter,
    _PACKAGE + "OffsetsMessageFormatter": OffsetsMessageFormatter,
    _PACKAGE + "GroupMetadataMessageFormatter": GroupMetadataMessageFormatter,
    _PACKAGE + "TransactionLogMessageFormatter": TransactionLogMessageFormatter,
    _PACKAGE + "ShareGroupMessageFormatter": ShareGroupMessageFormatter,
    _PACKAGE + "group.share.ShareGroupStateMessageFormatter": ShareGroupStateMessageFormatter,
}


def make_formatter(name: str, settings: Mapping[str, str]) -> MessageFormatter:
    """The formatter of that name, configured; raises ValueError if there is none."""
    by_name = {full.rpartition(".")[2]: kind for full, kind in FORMATTERS.items()} | FORMATTERS
    kind = by_name.get(name)
    if kind is None:
        kind = load_class(python_path(name), by_name, "formatter")
    formatter: MessageFormatter = kind()
    formatter.configure(settings)
    return formatter


def python_path(name: str) -> str:
    """Where the class is that stands for one of Confluent's; other names are paths themselves."""
    if name.startswith("io.confluent.kafka.formatter."):
        return f"moldau.cli.console.schema_records.{name.rpartition('.')[2]}"
    return name


def load_class(path: str, known: Iterable[str], what: str) -> type[Any]:
    """The Python class at a dotted path."""
    from importlib import import_module

    module_name, _, class_name = path.rpartition(".")
    guess = did_you_mean(path, list(known)) or (
        " Use the name of one of Kafka's classes or the dotted path of a Python class."
    )
    if not module_name:
        raise ValueError(f"There is no {what} {path}.{guess}")
    try:
        found = getattr(import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"Cannot load the {what} {path}: {error}.{guess}") from None
    return found  # type: ignore[no-any-return]


def _or_missing(number: int | None) -> bytes:
    return b"NOT_PRESENT" if number is None else b"%d" % number


def deserializer_of(settings: Mapping[str, str], key: str, *, is_key: bool) -> Deserialize | None:
    """The deserializer that a setting names; None if bytes are printed unchanged."""
    name = settings.get(key)
    if name is None:
        return None
    from moldau.client.serialization import resolve_deserializer

    prefix = key + "."
    own = {k.removeprefix(prefix): v for k, v in settings.items() if k.startswith(prefix)}
    try:
        deserializer: Any = resolve_deserializer(name, is_key, own)
    except Exception as error:  # Custom classes may raise anything.
        print(f"Unable to instantiate a deserializer from {name}: {error}", file=sys.stderr)
        return None
    if deserializer is None:
        return None
    call: Deserialize = getattr(deserializer, "deserialize", deserializer)
    if name.rpartition(".")[2].lower() in ("floatdeserializer", "float"):
        return lambda topic, data, headers: _narrow(call(topic, data, headers))
    return call


def _narrow(value: object) -> object:
    return Float32(value) if isinstance(value, float) else value
