"""Metadata records and the quorum's control records as record batches, and back."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.broker.raft.machine.errors import MetadataError
from moldau.broker.raft.machine.record_versions import record_version
from moldau.broker.raft.machine.voters import ReplicaKey, VoterSet
from moldau.times import WallMs
from moldau.wire.codec import decode, encode
from moldau.wire.errors import WireError
from moldau.wire.messages import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from moldau.wire.record_values import decode_metadata_record, encode_metadata_record
from moldau.wire.records import (
    BatchHeader,
    ControlType,
    crc_matches,
    decode_batch,
    decode_control_type,
    encode_batch,
    iterate_headers,
)

_CONTROL_KEY = struct.Struct(">hh")
_CONTROL_RECORDS: dict[int, type[Any]] = {
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}
_CONTROL_TYPES = {cls: kind for kind, cls in _CONTROL_RECORDS.items()}


class DamagedBatch(MetadataError):
    """A batch whose checksum does not match its bytes."""


@dataclass(frozen=True, slots=True)
class MetadataBatch:
    """A decoded batch: either control records or metadata records, never both."""

    base_offset: int
    next_offset: int
    epoch: int
    append_time_ms: WallMs
    size: int
    controls: tuple[Any, ...]
    records: tuple[Any, ...]


def encode_records(
    records: Sequence[Any],
    *,
    base_offset: int,
    epoch: int,
    now_ms: WallMs,
    metadata_version: int,
) -> bytes:
    values = [
        encode_metadata_record(record, record_version(record, metadata_version))
        for record in records
    ]
    return encode_batch(
        [(None, value, now_ms, ()) for value in values],
        base_offset=base_offset,
        partition_leader_epoch=epoch,
    )


def encode_controls(
    controls: Sequence[Any], *, base_offset: int, epoch: int, now_ms: WallMs
) -> bytes:
    """One control batch; the version field of each message is the version it is written in."""
    entries = [
        (
            _CONTROL_KEY.pack(0, _CONTROL_TYPES[type(control)]),
            encode(control, control.version),
            now_ms,
            (),
        )
        for control in controls
    ]
    return encode_batch(
        entries, base_offset=base_offset, partition_leader_epoch=epoch, is_control=True
    )


def leader_change(
    leader_id: int, voters: Sequence[ReplicaKey], granting: Sequence[ReplicaKey]
) -> LeaderChangeMessage:
    return LeaderChangeMessage(
        version=0,
        leader_id=leader_id,
        voters=[LeaderChangeMessage.Voter(voter_id=key.id) for key in voters],
        granting_voters=[LeaderChangeMessage.Voter(voter_id=key.id) for key in granting],
    )


def quorum_controls(kraft_version: int, voters: VoterSet) -> list[Any]:
    """The control records that name the voters of a dynamic quorum; none in a static one."""
    if kraft_version == 0:
        return []
    return [KRaftVersionRecord(version=0, kraft_version=kraft_version), voters.to_record()]


def decode_metadata_batches(data: bytes | memoryview, source: str) -> Iterator[MetadataBatch]:
    """Each whole batch in `data`; MetadataError, with `source`, for what cannot be read."""
    try:
        for position, header in iterate_headers(data):
            if not crc_matches(data, position, header):
                raise DamagedBatch(
                    f"{source}: the batch at offset {header.base_offset} is damaged (CRC mismatch)"
                )
            yield _read(data, position, header, source)
    except WireError as error:
        raise MetadataError(f"{source}: {error}") from error


def _read(
    data: bytes | memoryview, position: int, header: BatchHeader, source: str
) -> MetadataBatch:
    try:
        return _decode(data, position, header)
    except WireError as error:
        # The checksum matches, so it is as it was written: by a newer version.
        raise MetadataError(
            f"{source}: a record of the batch at offset {header.base_offset} cannot be read:"
            f" {error}. If it was written by a newer version, start that version"
        ) from error


def _decode(data: bytes | memoryview, position: int, header: BatchHeader) -> MetadataBatch:
    controls: list[Any] = []
    records: list[Any] = []
    for record in decode_batch(data, position):
        if not header.is_control:
            if record.value is None:
                raise WireError(f"the metadata record at offset {record.offset} has no value")
            records.append(decode_metadata_record(record.value)[0])
            continue
        cls = _CONTROL_RECORDS.get(decode_control_type(record.key))
        if cls is not None and record.value is not None:
            # A record of a newer version is read as far as this version knows it.
            version = min(struct.unpack_from(">h", record.value)[0], _latest_version(cls))
            controls.append(decode(cls, version, record.value))
    return MetadataBatch(
        base_offset=header.base_offset,
        next_offset=header.next_offset,
        epoch=header.partition_leader_epoch,
        append_time_ms=WallMs(header.max_timestamp),
        size=header.size,
        controls=tuple(controls),
        records=tuple(records),
    )


def _latest_version(cls: type[Any]) -> int:
    return 1 if cls is LeaderChangeMessage else 0
