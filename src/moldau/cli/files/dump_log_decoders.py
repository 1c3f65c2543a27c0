"""What dump-log prints for a record's key and value: text, numbers, or an internal topic's data."""

from __future__ import annotations

import importlib
import re
import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from uuid import UUID

from moldau.cli.support.failures import ToolError
from moldau.config.suggestions import did_you_mean
from moldau.wire.errors import WireError
from moldau.wire.message import Message
from moldau.wire.message_json import compact_json, message_to_json
from moldau.wire.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    GroupMetadataValue,
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataSnapshotRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    RemotePartitionDeleteMetadataRecord,
)
from moldau.wire.record_values import (
    Family,
    UnknownRecordTypeError,
    decode_coordinator_record,
    decode_metadata_record,
    decode_remote_log_record,
    decode_versioned,
)
from moldau.wire.records import Record
from moldau.wire.uuids import uuid_to_text

__all__ = ["STRING_DECODER", "Decoded", "Decoder", "make_decoder"]

_PACKAGE: Final = "org.apache.kafka.tools.api."
STRING_DECODER: Final = _PACKAGE + "StringDecoder"

# Kafka's names of the states, by number.
_SEGMENT_STATES: Final = (
    "COPY_SEGMENT_STARTED",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
)
_DELETE_STATES: Final = (
    "DELETE_PARTITION_MARKED",
    "DELETE_PARTITION_STARTED",
    "DELETE_PARTITION_FINISHED",
)


class Decoded(NamedTuple):
    """What is printed; None is left out."""

    key: str | None
    value: str | None


Decoder = Callable[[Record], Decoded]
FromBytes = Callable[[bytes], object]


def make_decoder(topic_kind: str | None, key_class: str, value_class: str) -> Decoder:
    """The decoder of an internal topic's records, or one of the two classes."""
    match topic_kind:
        case "offsets":
            return lambda record: _coordinator("group", record)
        case "transaction-log":
            return lambda record: _coordinator("transaction", record)
        case "share-group-state":
            return lambda record: _coordinator("share", record)
        case "cluster-metadata":
            return _metadata
        case "remote-log-metadata":
            return _remote_log
        case _:
            key_of, value_of = _from_class(key_class), _from_class(value_class)
            return lambda record: Decoded(
                None if record.key is None else str(key_of(record.key)),
                None if record.value is None else str(value_of(record.value)),
            )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _number(layout: str, what: str) -> FromBytes:
    packed = struct.Struct(layout)

    def decode(data: bytes) -> object:
        if len(data) < packed.size:
            raise ToolError(
                f"expected a value of type {what} with {packed.size} bytes, not {len(data)}"
            )
        return packed.unpack_from(data)[0]

    return decode


_CLASSES: Final[dict[str, FromBytes]] = {
    "StringDecoder": _text,
    "IntegerDecoder": _number(">i", "integer"),
    "LongDecoder": _number(">q", "long"),
    # Kafka's tool prints a memory address; these are the bytes.
    "DefaultDecoder": lambda data: data,
}


def _from_class(name: str) -> FromBytes:
    short = name.removeprefix(_PACKAGE).removeprefix("kafka.serializer.")
    known = _CLASSES.get(short)
    if known is not None:
        return known
    module, _, attribute = name.replace(":", ".").rpartition(".")
    try:
        found: Any = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError):
        guess = did_you_mean(short, _CLASSES)
        raise ToolError(
            f"Failed to load decoder class {name}{guess}; it is one of "
            f"{', '.join(_CLASSES)} or a Python class with from_bytes, by its dotted path"
        ) from None
    made = found() if isinstance(found, type) else found
    decode: FromBytes = getattr(made, "from_bytes", made)
    return decode


def _coordinator(family: Family, record: Record) -> Decoded:
    if record.key is None:
        raise ToolError(
            f"Failed to decode message at offset {record.offset} using the specified decoder "
            "(message had a missing key)"
        )
    try:
        key, value = decode_coordinator_record(family, record.key, record.value)
        shown_key = {"type": str(key.TYPE), "data": message_to_json(key, 0)}
        if value is None or record.value is None:
            return Decoded(compact_json(shown_key), "<DELETE>")
        version = int.from_bytes(record.value[:2], "big", signed=True)
        shown = {"version": str(version), "data": _value_json(value, version)}
        return Decoded(compact_json(shown_key), compact_json(shown))
    except UnknownRecordTypeError as error:
        return Decoded(
            f"Unknown record type {error.record_type} at offset {record.offset}, skipping.", None
        )
    except WireError as error:
        return Decoded(f"Error at offset {record.offset}, skipping. {error}", None)


def _objects(value: object) -> list[dict[str, object]]:
    """A field that is an array of structs."""
    return value if isinstance(value, list) else []


def _value_json(value: Message, version: int) -> dict[str, object]:
    shown = message_to_json(value, version)
    if isinstance(value, GroupMetadataValue) and value.protocol_type == "consumer":
        for member, of_member in zip(value.members, _objects(shown["members"]), strict=True):
            for field, message_class in (
                ("subscription", ConsumerProtocolSubscription),
                ("assignment", ConsumerProtocolAssignment),
            ):
                _replace_protocol(of_member, field, getattr(member, field), message_class)
    return shown


def _replace_protocol(
    shown: dict[str, object], field: str, data: bytes, message_class: type[Message]
) -> None:
    """Replaces the bytes with the protocol's fields, if they can be decoded."""
    try:
        message = decode_versioned(message_class, data)
    except WireError:
        return
    shown[field] = message_to_json(message, int.from_bytes(data[:2], "big", signed=True))


def _metadata(record: Record) -> Decoded:
    try:
        message, version = decode_metadata_record(record.value or b"")
    except WireError as error:
        return Decoded(None, f"Error at {record.offset}, skipping. {error}")
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(message).__name__).upper()
    data = message_to_json(message, version)
    return Decoded(None, compact_json({"type": name, "version": version, "data": data}))


def _remote_log(record: Record) -> Decoded:
    try:
        message, _ = decode_remote_log_record(record.value or b"")
        return Decoded(None, _remote_text(message))
    except WireError as error:
        return Decoded(None, f"Error at offset {record.offset}, skipping. {error}")


def _remote_text(message: Message) -> str:
    match message:
        case RemoteLogSegmentMetadataRecord():
            return (
                f"RemoteLogSegmentMetadata{{remoteLogSegmentId="
                f"{_segment_id(message.remote_log_segment_id)}, "
                f"startOffset={message.start_offset}, endOffset={message.end_offset}, "
                f"brokerId={message.broker_id}, maxTimestampMs={message.max_timestamp_ms}, "
                f"eventTimestampMs={message.event_timestamp_ms}, "
                f"segmentLeaderEpochs={_epochs(message.segment_leader_epochs)}, "
                f"segmentSizeInBytes={message.segment_size_in_bytes}, "
                f"customMetadata={_custom(message.custom_metadata)}, "
                f"state={_SEGMENT_STATES[message.remote_log_segment_state]}, "
                f"txnIdxEmpty={str(message.txn_index_empty).lower()}}}"
            )
        case RemoteLogSegmentMetadataUpdateRecord():
            return (
                f"RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId="
                f"{_segment_id(message.remote_log_segment_id)}, "
                f"customMetadata={_custom(message.custom_metadata)}, "
                f"state={_SEGMENT_STATES[message.remote_log_segment_state]}, "
                f"eventTimestampMs={message.event_timestamp_ms}, brokerId={message.broker_id}}}"
            )
        case RemotePartitionDeleteMetadataRecord():
            return (
                f"RemotePartitionDeleteMetadata{{topicPartition="
                f"{_topic_partition(message.topic_id_partition)}, "
                f"state={_DELETE_STATES[message.remote_partition_delete_state]}, "
                f"eventTimestampMs={message.event_timestamp_ms}, brokerId={message.broker_id}}}"
            )
        case RemoteLogSegmentMetadataSnapshotRecord():
            return (
                f"RemoteLogSegmentMetadataSnapshot{{segmentId={_uuid(message.segment_id)}, "
                f"startOffset={message.start_offset}, endOffset={message.end_offset}, "
                f"maxTimestampMs={message.max_timestamp_ms}, "
                f"segmentLeaderEpochs={_epochs(message.segment_leader_epochs)}, "
                f"segmentSizeInBytes={message.segment_size_in_bytes}, "
                f"customMetadata={_custom(message.custom_metadata)}, "
                f"state={_SEGMENT_STATES[message.remote_log_segment_state]}, "
                f"txnIdxEmpty={str(message.txn_index_empty).lower()}}}"
            )
        case _:
            return compact_json(message_to_json(message, 0))


def _uuid(value: UUID) -> str:
    return uuid_to_text(value)


def _topic_partition(entry: Any) -> str:
    return f"{_uuid(entry.id)}:{entry.name}-{entry.partition}"


def _segment_id(entry: Any) -> str:
    return (
        f"RemoteLogSegmentId{{topicIdPartition={_topic_partition(entry.topic_id_partition)}, "
        f"id={_uuid(entry.id)}}}"
    )


def _epochs(entries: Any) -> str:
    pairs = sorted((entry.leader_epoch, entry.offset) for entry in entries)
    return "{" + ", ".join(f"{epoch}={offset}" for epoch, offset in pairs) + "}"


def _custom(data: bytes | None) -> str:
    if data is None:
        return "Optional.empty"
    return f"Optional[CustomMetadata{{{len(data)} bytes}}]"
