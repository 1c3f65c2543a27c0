"""Batches and records of a log or a metadata snapshot, line by line as Kafka prints them."""

from __future__ import annotations

import mmap
import re
import struct
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from moldau.cli.files.dump_log_decoders import Decoded, Decoder
from moldau.cli.support.failures import ToolError
from moldau.wire.batch_header import (
    HEADER_SIZE,
    HEADER_STRUCT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    OFFSET_AND_LENGTH_STRUCT,
)
from moldau.wire.codec import decode
from moldau.wire.errors import WireError
from moldau.wire.message import Message
from moldau.wire.message_json import compact_json, message_to_json
from moldau.wire.messages import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from moldau.wire.records import (
    BatchHeader,
    ControlType,
    CorruptBatchError,
    Record,
    crc_matches,
    decode_batch,
    decode_control_type,
    decode_coordinator_epoch,
    header_from,
)

__all__ = ["BatchPrinter", "base_offset_of", "batches_of", "mapped"]

Bytes = mmap.mmap | bytes

_INT32_MAX: Final = 2**31 - 1
_SNAPSHOT_NAME: Final = re.compile(r"(\d+)-(\d+)\.checkpoint")
_OLD_HEADER: Final = struct.Struct(">qiIbb")
_OLD_TIME: Final = struct.Struct(">q")
_OLD_SIZE_MIN: Final = 14
_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_TIMES: Final = ("CreateTime", "LogAppendTime")

_CONTROL_MESSAGES: Final[dict[int, tuple[str, type[Message]]]] = {
    ControlType.LEADER_CHANGE: ("LeaderChange:", LeaderChangeMessage),
    ControlType.SNAPSHOT_HEADER: ("SnapshotHeader", SnapshotHeaderRecord),
    ControlType.SNAPSHOT_FOOTER: ("SnapshotFooter", SnapshotFooterRecord),
    ControlType.KRAFT_VERSION: ("KRaftVersion", KRaftVersionRecord),
    ControlType.KRAFT_VOTERS: ("KRaftVoters", VotersRecord),
}


@contextmanager
def mapped(path: Path) -> Iterator[Bytes]:
    """The file's bytes, without reading all of them."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data


def base_offset_of(path: Path) -> int:
    """The offset that the file is named after."""
    digits = path.name.split(".")[0]
    if not digits.isdigit():
        raise ToolError(f"{path}: the name must begin with an offset, as 00000000000000000000.log")
    return int(digits)


def batches_of(data: Bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Position and size of each complete batch, of any format."""
    position = start
    while position + LOG_OVERHEAD + _OLD_SIZE_MIN <= end:
        offset, length = OFFSET_AND_LENGTH_STRUCT.unpack_from(data, position)
        if length < _OLD_SIZE_MIN:
            # A preallocated file ends in zeros.
            if length != 0 or offset != 0:
                raise ToolError(
                    f"the batch at position {position} has a length of {length} bytes, less than "
                    "any batch: the file is damaged from there on"
                )
            return
        size = LOG_OVERHEAD + length
        if position + size > end:
            return
        yield position, size
        position += size


class BatchPrinter:
    """Prints logs and snapshots; remembers gaps between offsets for the end."""

    def __init__(
        self,
        decoder: Decoder,
        *,
        deep: bool,
        print_data: bool,
        skip_metadata: bool,
        max_bytes: int,
    ) -> None:
        self._decoder = decoder
        self._deep = deep
        self._print_data = print_data
        self._skip_metadata = skip_metadata
        self._max_bytes = max_bytes
        self._gaps: dict[str, dict[int, int]] = {}
        self._last_offset = -1

    def dump(self, path: Path) -> None:
        _print_title(path)
        self._last_offset = -1
        out = sys.stdout
        with mapped(path) as data:
            end = min(len(data), self._max_bytes)
            valid = 0
            for position, size in batches_of(data, 0, end):
                for line in self._lines(path, data, position, size):
                    out.write(line + "\n")
                valid = position + size
            if end > valid and self._max_bytes == _INT32_MAX:
                print(f"Found {end - valid} invalid bytes at the end of {path.name}")

    def show_gaps(self) -> None:
        """Kafka's message on offsets that are not consecutive."""
        for name, pairs in self._gaps.items():
            print(f"Non-consecutive offsets in {name}", file=sys.stderr)
            for before, after in sorted(pairs.items()):
                print(f"  {before} is followed by {after}", file=sys.stderr)

    def _lines(self, path: Path, data: Bytes, position: int, size: int) -> Iterator[str]:
        magic = data[position + MAGIC_POSITION]
        whole = data[position : position + size]
        if magic < MAGIC:
            yield _old_line(whole, position)
            return
        if magic > MAGIC or size < HEADER_SIZE:
            raise ToolError(f"{path}: batch format {magic} at position {position} is not known")
        header = header_from(HEADER_STRUCT.unpack_from(whole))
        yield _batch_line(header, position, valid=crc_matches(whole, 0, header))
        if not self._deep:
            return
        try:
            records = decode_batch(whole)
        except CorruptBatchError as error:
            raise ToolError(f"{path}: {error}") from None
        for record in records:
            yield self._record(path, header, record)

    def _record(self, path: Path, header: BatchHeader, record: Record) -> str:
        if record.offset != self._last_offset + 1:
            gaps = self._gaps.setdefault(str(path.absolute()), {})
            gaps[self._last_offset] = record.offset
        self._last_offset = record.offset
        parts: list[str] = []
        if not self._skip_metadata:
            parts.append(_record_metadata(header, record))
        if self._print_data and not header.is_control:
            decoded: Decoded = self._decoder(record)
            shown = [
                f"{name}: {text}"
                for name, text in (("key", decoded.key), ("payload", decoded.value))
                if text is not None
            ]
            if shown and self._skip_metadata:
                shown[0] = "| " + shown[0]
            parts += shown
        return " ".join(parts)


def _print_title(path: Path) -> None:
    if path.name.endswith(".log"):
        print(f"Log starting offset: {base_offset_of(path)}")
    elif path.name == "bootstrap.checkpoint":
        print("KRaft bootstrap snapshot")
    else:
        found = _SNAPSHOT_NAME.fullmatch(path.name)
        if found is None:
            raise ToolError(
                f"{path}: a snapshot's name holds its end offset and epoch, as "
                "00000000000000000042-0000000003.checkpoint"
            )
        print(f"Snapshot end offset: {int(found[1])}, epoch: {int(found[2])}")


def _yes(condition: bool) -> str:
    return "true" if condition else "false"


def _batch_line(header: BatchHeader, position: int, *, valid: bool) -> str:
    horizon = (
        f"OptionalLong[{header.base_timestamp}]"
        if header.has_delete_horizon
        else "OptionalLong.empty"
    )
    codec = header.attributes & 7
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} "
        f"count: {header.record_count} baseSequence: {header.base_sequence} "
        f"lastSequence: {header.last_sequence} producerId: {header.producer_id} "
        f"producerEpoch: {header.producer_epoch} "
        f"partitionLeaderEpoch: {header.partition_leader_epoch} "
        f"isTransactional: {_yes(header.is_transactional)} isControl: {_yes(header.is_control)} "
        f"deleteHorizonMs: {horizon} position: {position} "
        f"{_TIMES[header.is_log_append_time]}: {header.max_timestamp} size: {header.size} "
        f"magic: {header.magic} compresscodec: {_CODECS[codec] if codec < 5 else codec} "
        f"crc: {header.crc} isvalid: {_yes(valid)}"
    )


def _old_line(whole: bytes, position: int) -> str:
    """A message of the formats before batches; only its header is read."""
    offset, length, crc, magic, attributes = _OLD_HEADER.unpack_from(whole)
    kind, timestamp = "NoTimestampType", -1
    if magic == 1:
        kind = _TIMES[attributes >> 3 & 1]
        timestamp = _OLD_TIME.unpack_from(whole, _OLD_HEADER.size)[0]
    valid = zlib.crc32(memoryview(whole)[MAGIC_POSITION:]) == crc
    return (
        f"offset: {offset} position: {position} {kind}: {timestamp} size: {LOG_OVERHEAD + length} "
        f"magic: {magic} compresscodec: {_CODECS[min(attributes & 7, 4)]} crc: {crc} "
        f"isvalid: {_yes(valid)}"
    )


def _record_metadata(header: BatchHeader, record: Record) -> str:
    sequence = -1
    if header.base_sequence >= 0:
        sequence = (header.base_sequence + record.offset - header.base_offset) & _INT32_MAX
    line = (
        f"| offset: {record.offset} {_TIMES[header.is_log_append_time]}: {record.timestamp} "
        f"keySize: {-1 if record.key is None else len(record.key)} "
        f"valueSize: {-1 if record.value is None else len(record.value)} sequence: {sequence} "
        f"headerKeys: [{','.join(name for name, _ in record.headers)}]"
    )
    return line + _control(record) if header.is_control else line


def _control(record: Record) -> str:
    try:
        kind = decode_control_type(record.key)
        if kind in (ControlType.ABORT, ControlType.COMMIT):
            name = "COMMIT" if kind == ControlType.COMMIT else "ABORT"
            epoch = decode_coordinator_epoch(record.value)
            return f" endTxnMarker: {name} coordinatorEpoch: {epoch}"
        known = _CONTROL_MESSAGES.get(kind)
        if known is None:
            return f" controlType: UNKNOWN({kind})"
        title, message_class = known
        value = record.value or b""
        # Their version is their first field.
        version = int.from_bytes(value[:2], "big", signed=True)
        shown = message_to_json(decode(message_class, version, value), version)
        return f" {title} {compact_json(shown)}"
    except (CorruptBatchError, WireError) as error:
        return f" controlType: unreadable ({error})"
