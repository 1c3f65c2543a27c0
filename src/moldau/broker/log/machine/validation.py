"""What a leader checks in a batch before it appends it, and what it writes into it.

Decided here: whether a produced batch is accepted, which error answers it otherwise, and its bytes
in the log. Checks come in Kafka's order: framing, size, checksum, header, then every record.
Invariants: an accepted batch has a matching checksum, its first record has the given offset and
its records are numbered without gaps, its maximum timestamp is that of its records (or the append
time), and its codec is the one the topic asks for. Nothing is copied unless something under the
checksum must change or the buffer cannot be written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NoReturn

from moldau.broker.log.machine._plain_batches import COMPILED, PlainBatches
from moldau.broker.log.machine.validated_batch import ValidatedBatch
from moldau.wire._record_codec import (
    PROBLEMS,
    Record,
    RecordScan,
    decode_records,
    validate_records,
)
from moldau.wire.batch_header import (
    ATTRIBUTES_POSITION,
    ATTRIBUTES_STRUCT,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    CRC_POSITION,
    CRC_STRUCT,
    HEADER_SIZE,
    HEADER_STRUCT,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    MAX_TIMESTAMP_POSITION,
    OFFSET_AND_LENGTH_STRUCT,
    PREFIX_STRUCT,
    TIMESTAMP_STRUCT,
    TRANSACTIONAL_FLAG,
)
from moldau.wire.checksums import crc32c
from moldau.wire.compression import (
    DECOMPRESSED_SIZE_MAX,
    Compression,
    CompressionError,
    DecompressedTooLargeError,
    compress,
    decompress_to_buffer,
)
from moldau.wire.constants import NO_SEQUENCE, NO_TIMESTAMP, Buffer
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.records import BatchHeader, header_from

if TYPE_CHECKING:
    from moldau.broker.config.log_config import LogConfig

__all__ = ["RecordValidationError", "ValidatedBatch", "ValidationRules", "validate_batch"]

_INT64_MAX: Final = 2**63 - 1
_INT64_MIN: Final = -(2**63)
_INT32_MAX: Final = 2**31 - 1

# The smallest length any format version has; Kafka takes less for garbage, not for a batch.
_BATCH_LENGTH_MIN: Final = 14
_ZSTD_PRODUCE_VERSION: Final = 7
_LATEST_PRODUCE_VERSION: Final = 13

# A batch of a million bad records need not be answered with a million messages.
_RECORD_ERRORS_MAX: Final = 1000

_TARGETS: Final = {
    "producer": None,
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}
# Once the attributes must be rewritten, bits without a meaning are dropped.
_KNOWN_ATTRIBUTES: Final = 0x7F
_CODECS: Final = tuple(Compression)
# Plain numbers, because looking up enum members shows in the time of small batches.
_NONE: Final = int(Compression.NONE)
_ZSTD: Final = int(Compression.ZSTD)


class RecordValidationError(ApiError):
    """A batch that is refused, with what is wrong in which record where that is known."""

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        record_errors: list[tuple[int, str]] | None = None,
    ) -> None:
        super().__init__(code, message)
        self.record_errors: list[tuple[int, str]] = record_errors or []


@dataclass(frozen=True, slots=True)
class SchemaRules:
    """Which sides of a record must name a schema, and how its subject is named. Checked by
    `broker/schemas` before a batch comes to the log."""

    key: bool
    value: bool
    key_strategy: str
    value_strategy: str

    @classmethod
    def from_log_config(cls, config: LogConfig) -> SchemaRules | None:
        key = config.confluent_key_schema_validation
        value = config.confluent_value_schema_validation
        if not key and not value:
            return None
        # By the name of the class, whatever its package.
        return cls(
            key,
            value,
            config.confluent_key_subject_name_strategy.rpartition(".")[2],
            config.confluent_value_subject_name_strategy.rpartition(".")[2],
        )

    @property
    def needs_names(self) -> bool:
        return "RecordName" in self.key_strategy or "RecordName" in self.value_strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationRules:
    """What one log asks of batches; made once per configuration, not per batch."""

    log_append_time: bool = False
    timestamp_before_max_ms: int = _INT64_MAX
    timestamp_after_max_ms: int = 3_600_000
    target_compression: Compression | None = None
    compression_level: int | None = None
    compacted: bool = False
    max_message_bytes: int = 1_048_588
    segment_bytes: int = 1_073_741_824
    decompressed_size_max: int = DECOMPRESSED_SIZE_MAX
    schemas: SchemaRules | None = None
    #: Accepts what needs no further look; None if these rules may change every batch.
    plain: PlainBatches | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        plain = None
        # In plain Python the look at each byte would cost more than the checks that it replaces.
        if (
            COMPILED
            and not self.log_append_time
            and self.target_compression in (None, Compression.NONE)
        ):
            plain = PlainBatches(
                size_max=min(self.max_message_bytes, self.segment_bytes),
                timestamp_before_max_ms=self.timestamp_before_max_ms,
                timestamp_after_max_ms=self.timestamp_after_max_ms,
                compacted=self.compacted,
            )
        object.__setattr__(self, "plain", plain)

    @classmethod
    def from_log_config(cls, config: LogConfig) -> ValidationRules:
        target = _TARGETS[config.compression_type]
        levels = {
            Compression.GZIP: config.compression_gzip_level,
            Compression.LZ4: config.compression_lz4_level,
            Compression.ZSTD: config.compression_zstd_level,
        }
        return cls(
            log_append_time=config.message_timestamp_type == "LogAppendTime",
            timestamp_before_max_ms=config.message_timestamp_before_max_ms,
            timestamp_after_max_ms=config.message_timestamp_after_max_ms,
            target_compression=target,
            compression_level=None if target is None else levels.get(target),
            compacted="compact" in config.cleanup_policy,
            max_message_bytes=config.max_message_bytes,
            segment_bytes=config.segment_bytes,
            schemas=SchemaRules.from_log_config(config),
        )


def validate_batch(
    batch: Buffer,
    rules: ValidationRules,
    *,
    offset: int,
    now_ms: int,
    leader_epoch: int,
    produce_version: int = _LATEST_PRODUCE_VERSION,
    from_client: bool = True,
) -> ValidatedBatch:
    """Check one batch and give it its offset and leader epoch, in place where that is possible.

    `from_client` is False for batches of the broker's own coordinators, which may hold control
    records. Raises `RecordValidationError`.
    """
    view = memoryview(batch)
    if rules.plain is not None:
        accepted = rules.plain.accept(view, offset, now_ms, leader_epoch)
        if accepted is not None:
            return accepted
    if len(view) < HEADER_SIZE or view[MAGIC_POSITION] != MAGIC:
        _refuse_framing(view)
    header = header_from(HEADER_STRUCT.unpack_from(view))
    codec = header.attributes & COMPRESSION_MASK
    if header.batch_length != len(view) - LOG_OVERHEAD:
        view = _trimmed(view, codec, produce_version)
    if codec == _ZSTD:
        _check_zstd(produce_version)
    if from_client and header.base_offset != 0:
        _refuse(f"the batch's base offset must be 0, not {header.base_offset}")
    _check_bytes(view, header, rules)
    if from_client:
        _check_client_header(header)
    if codec == _NONE:
        section: Buffer = view
        start = HEADER_SIZE
    else:
        section = _decompressed(view, codec, rules)
        start = 0
    scan = _scan(section, start, header, rules, now_ms)
    view = _finished(view, section, start, header, codec, scan, rules, now_ms)
    PREFIX_STRUCT.pack_into(view, 0, offset, len(view) - LOG_OVERHEAD, leader_epoch)
    return _described(view, header, scan, rules, offset=offset, now_ms=now_ms)


def _refuse(message: str, code: ErrorCode = ErrorCode.INVALID_RECORD) -> NoReturn:
    raise RecordValidationError(code, message)


def _refuse_framing(view: memoryview) -> NoReturn:
    """Say why `view` does not begin with a batch of magic 2 that has a whole header."""
    size = _batch_size(view, 0)
    if size is None or size > len(view):
        _refuse("there must be one whole record batch per partition, but there is none")
    if view[MAGIC_POSITION] != MAGIC:
        _refuse(f"record batches must have magic 2, not {view[MAGIC_POSITION]}")
    _refuse(
        f"the batch has {size} bytes, its header alone {HEADER_SIZE}", ErrorCode.CORRUPT_MESSAGE
    )


def _trimmed(view: memoryview, codec: int, produce_version: int) -> memoryview:
    """The one batch in `view`, without cut-off bytes after it, which Kafka also drops."""
    remaining = len(view)
    size = _batch_size(view, 0)
    if size is None or size > remaining or size < HEADER_SIZE:
        _refuse_framing(view)
    if codec == _ZSTD:
        _check_zstd(produce_version)
    following = _batch_size(view, size)
    if following is not None and size + following <= remaining:
        _refuse("there must be one record batch per partition, but there are more")
    return view[:size]


def _batch_size(view: memoryview, position: int) -> int | None:
    """Bytes of the batch at `position`, or None when too few are there to tell."""
    remaining = len(view) - position
    if remaining < LOG_OVERHEAD:
        return None
    length: int = OFFSET_AND_LENGTH_STRUCT.unpack_from(view, position)[1]
    if length < _BATCH_LENGTH_MIN:
        _refuse(f"a record batch cannot have length {length}", ErrorCode.CORRUPT_MESSAGE)
    if remaining <= MAGIC_POSITION:
        return None
    magic = view[position + MAGIC_POSITION]
    if magic > MAGIC:
        _refuse(f"no record batch has magic {magic}", ErrorCode.CORRUPT_MESSAGE)
    return LOG_OVERHEAD + length


def _check_zstd(produce_version: int) -> None:
    if produce_version < _ZSTD_PRODUCE_VERSION:
        _refuse(
            f"zstd needs Produce version {_ZSTD_PRODUCE_VERSION}, not {produce_version}",
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        )


def _check_bytes(view: memoryview, header: BatchHeader, rules: ValidationRules) -> None:
    """Size and checksum."""
    if len(view) > rules.max_message_bytes:
        _refuse_size(len(view), rules)
    if crc32c(view[ATTRIBUTES_POSITION:]) != header.crc:
        _refuse(
            f"the batch's bytes do not match its checksum {header.crc:#010x}",
            ErrorCode.CORRUPT_MESSAGE,
        )


def _refuse_size(size: int, rules: ValidationRules) -> NoReturn:
    _refuse(
        f"the batch has {size} bytes, max.message.bytes allows {rules.max_message_bytes}",
        ErrorCode.MESSAGE_TOO_LARGE,
    )


def _check_client_header(header: BatchHeader) -> None:
    """What only batches of clients must keep."""
    count = header.record_count
    if header.last_offset_delta < 0:
        _refuse(f"the batch's last offset delta {header.last_offset_delta} is negative")
    if count <= 0:
        _refuse(f"the batch has the record count {count}")
    if header.last_offset_delta != count - 1:
        _refuse(f"the batch has {count} records but spans {header.last_offset_delta + 1} offsets")
    if header.attributes & CONTROL_FLAG:
        _refuse("clients may not write control records")
    if header.producer_id >= 0 and header.base_sequence < 0:
        _refuse(
            f"the batch of producer {header.producer_id} has the sequence {header.base_sequence}"
        )


def _decompressed(view: memoryview, codec: int, rules: ValidationRules) -> bytearray:
    if codec > _ZSTD:
        _refuse(f"the batch has the unknown compression id {codec}")
    try:
        return decompress_to_buffer(_CODECS[codec], view[HEADER_SIZE:], rules.decompressed_size_max)
    except DecompressedTooLargeError as error:
        # Clients answer this code by splitting the batch, which is what helps.
        raise RecordValidationError(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from error
    except CompressionError as error:
        raise RecordValidationError(ErrorCode.INVALID_RECORD, str(error)) from error


def _scan(
    section: Buffer, start: int, header: BatchHeader, rules: ValidationRules, now_ms: int
) -> RecordScan:
    """Check every record; only sound ones come back."""
    stamped = header.attributes & LOG_APPEND_TIME_FLAG
    if rules.log_append_time or stamped:
        timestamp_min, timestamp_max = _INT64_MIN, _INT64_MAX
    else:
        timestamp_min = now_ms - rules.timestamp_before_max_ms
        timestamp_max = now_ms + rules.timestamp_after_max_ms
        if timestamp_max > _INT64_MAX:
            timestamp_max = _INT64_MAX
    scan = validate_records(
        section,
        start,
        len(section),
        header.record_count,
        header.base_timestamp,
        timestamp_min,
        timestamp_max,
    )
    if scan.problem:
        _refuse(f"record {scan.index} of the batch: {PROBLEMS[scan.problem]}")
    if stamped or scan.bad_timestamp_count or (rules.compacted and scan.null_key_count):
        _check_each(section, start, header, rules, now_ms)
    if not scan.dense:
        # Kafka lets these through in uncompressed batches and consumers then skip or repeat
        # records; in compressed ones it fails with an internal error.
        _refuse("the offset deltas of the batch's records are not 0, 1, 2 and so on")
    return scan


def _check_each(
    section: Buffer, start: int, header: BatchHeader, rules: ValidationRules, now_ms: int
) -> None:
    """Say of every bad record what is wrong with it."""
    errors: list[tuple[int, str]] = []
    bad_timestamps = 0
    for index, record in enumerate(_records(section, start, header)):
        if rules.compacted and record.key is None:
            errors.append((index, "a compacted topic takes no record without a key"))
            continue
        problem = _timestamp_problem(record.timestamp, header, rules, now_ms)
        if problem:
            bad_timestamps += 1
            errors.append((index, problem))
    if not errors:
        return
    message = f"{len(errors)} of {header.record_count} records are invalid, the first one, record "
    message += f"{errors[0][0]}: {errors[0][1]}"
    raise RecordValidationError(
        ErrorCode.INVALID_TIMESTAMP if bad_timestamps else ErrorCode.INVALID_RECORD,
        message,
        errors[:_RECORD_ERRORS_MAX],
    )


def _timestamp_problem(
    timestamp: int, header: BatchHeader, rules: ValidationRules, now_ms: int
) -> str:
    if not rules.log_append_time and timestamp != NO_TIMESTAMP:
        earliest = now_ms - rules.timestamp_before_max_ms
        latest = now_ms + rules.timestamp_after_max_ms
        if earliest <= timestamp <= latest:
            return ""
        return f"timestamp {timestamp} is not between {earliest} and {latest}"
    if header.is_log_append_time:
        return "a producer may not set the timestamp type LogAppendTime"
    return ""


def _records(section: Buffer, start: int, header: BatchHeader) -> list[Record]:
    data = bytes(section[start:])
    return decode_records(
        data,
        0,
        len(data),
        header.record_count,
        0,
        header.base_timestamp,
        header.max_timestamp if header.is_log_append_time else None,
    )


def _finished(
    view: memoryview,
    section: Buffer,
    start: int,
    header: BatchHeader,
    codec: int,
    scan: RecordScan,
    rules: ValidationRules,
    now_ms: int,
) -> memoryview:
    """The batch with the codec, timestamp type and maximum timestamp that belong in the log."""
    target = codec if rules.target_compression is None else rules.target_compression
    attributes = header.attributes
    if rules.log_append_time:
        max_timestamp = now_ms
        attributes |= LOG_APPEND_TIME_FLAG
    elif attributes & LOG_APPEND_TIME_FLAG:
        max_timestamp = max(header.max_timestamp, NO_TIMESTAMP)
        attributes &= ~LOG_APPEND_TIME_FLAG
    else:
        max_timestamp = scan.max_timestamp
    if target != codec:
        packed = compress(_CODECS[target], memoryview(section)[start:], rules.compression_level)
        view = memoryview(bytearray(view[:HEADER_SIZE]) + packed)
        if len(view) > rules.max_message_bytes:
            _refuse_size(len(view), rules)
        _stamp(view, attributes & ~COMPRESSION_MASK | target, max_timestamp)
    else:
        if view.readonly:
            view = memoryview(bytearray(view))
        if max_timestamp != header.max_timestamp or attributes != header.attributes:
            _stamp(view, attributes, max_timestamp)
    if len(view) > rules.segment_bytes:
        _refuse(
            f"the batch has {len(view)} bytes, a segment at most {rules.segment_bytes}",
            ErrorCode.RECORD_LIST_TOO_LARGE,
        )
    return view


def _stamp(view: memoryview, attributes: int, max_timestamp: int) -> None:
    ATTRIBUTES_STRUCT.pack_into(view, ATTRIBUTES_POSITION, attributes & _KNOWN_ATTRIBUTES)
    TIMESTAMP_STRUCT.pack_into(view, MAX_TIMESTAMP_POSITION, max_timestamp)
    CRC_STRUCT.pack_into(view, CRC_POSITION, crc32c(view[ATTRIBUTES_POSITION:]))


def _described(
    view: memoryview,
    header: BatchHeader,
    scan: RecordScan,
    rules: ValidationRules,
    *,
    offset: int,
    now_ms: int,
) -> ValidatedBatch:
    attributes = header.attributes
    sequence = header.base_sequence
    if rules.log_append_time:
        max_timestamp, offset_of_max_timestamp = now_ms, offset
    elif attributes & LOG_APPEND_TIME_FLAG:
        max_timestamp, offset_of_max_timestamp = max(header.max_timestamp, NO_TIMESTAMP), offset
    else:
        max_timestamp = scan.max_timestamp
        index = scan.max_timestamp_index
        offset_of_max_timestamp = -1 if index < 0 else offset + index
    # Straight to the tuple: the class's own __new__ would cost as much as the whole rest here.
    return tuple.__new__(
        ValidatedBatch,
        (
            view,
            offset,
            offset + header.last_offset_delta,
            max_timestamp,
            offset_of_max_timestamp,
            header.base_timestamp,
            now_ms if rules.log_append_time else NO_TIMESTAMP,
            header.producer_id,
            header.producer_epoch,
            sequence,
            NO_SEQUENCE if sequence < 0 else (sequence + header.last_offset_delta) & _INT32_MAX,
            attributes & TRANSACTIONAL_FLAG != 0,
            attributes & CONTROL_FLAG != 0,
            header.record_count,
            len(view),
        ),
    )
