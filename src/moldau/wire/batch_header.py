"""The header of a record batch, format v2: its fields, their positions, and how to read some.

A batch begins with 61 bytes: base offset, length, partition leader epoch, magic, CRC, attributes,
last offset delta, base timestamp, max timestamp, producer id, producer epoch, base sequence, record
count. The CRC covers everything from the attributes on.
"""

from __future__ import annotations

import struct
from typing import Final

HEADER_SIZE: Final = 61
#: Base offset and length, which the length does not count.
LOG_OVERHEAD: Final = 12
MAGIC: Final = 2

MAGIC_POSITION: Final = 16
CRC_POSITION: Final = 17
ATTRIBUTES_POSITION: Final = 21
LAST_OFFSET_DELTA_POSITION: Final = 23
MAX_TIMESTAMP_POSITION: Final = 35

COMPRESSION_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40

HEADER_STRUCT: Final = struct.Struct(">qiibIhiqqqhii")
OFFSET_AND_LENGTH_STRUCT: Final = struct.Struct(">qi")
LENGTH_STRUCT: Final = struct.Struct(">i")
LAST_OFFSET_DELTA_STRUCT: Final = struct.Struct(">i")
# Offset, length and leader epoch: all that comes before the magic and is not under the checksum.
PREFIX_STRUCT: Final = struct.Struct(">qii")
CRC_STRUCT: Final = struct.Struct(">I")
ATTRIBUTES_STRUCT: Final = struct.Struct(">h")
TIMESTAMP_STRUCT: Final = struct.Struct(">q")
# Everything up to the last offset delta.
UP_TO_DELTA_STRUCT: Final = struct.Struct(">qiibIhi")
# Base offset, length and last offset delta: the offsets of a batch, and where the next one begins.
BOUNDS_STRUCT: Final = struct.Struct(">qi11xi")
# The same with the max timestamp.
BOUNDS_AND_TIME_STRUCT: Final = struct.Struct(">qi11xi8xq")
# Length, magic and the low byte of the attributes.
LENGTH_MAGIC_ATTRIBUTES_STRUCT: Final = struct.Struct(">8xi4xb5xB")
# Producer id, producer epoch and base sequence.
PRODUCER_STRUCT: Final = struct.Struct(">43xqhi")
