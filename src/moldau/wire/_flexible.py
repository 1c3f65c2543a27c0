# cython: annotation_typing=False
"""The encodings of flexible message versions that hand-made codecs (Produce, Fetch) share.

Invariants: reading past the end or a malformed number raises IndexError, struct.error or
WireError, which the codecs turn into one WireError; nothing is ever read beyond the frame.

Plain Python, and with `_flexible.pxd` beside it also the source of a compiled module.
"""

from __future__ import annotations

from types import SimpleNamespace

from moldau.wire.errors import WireError

try:
    import cython
except ImportError:
    # Only the compiler needs the real one, and it does not let its name be assigned.
    globals()["cython"] = SimpleNamespace(compiled=False)

if not cython.compiled:
    # The compiler takes it from the .pxd, as C.

    def byte_at(frame: memoryview, position: int) -> int:
        """One byte of the frame."""
        return frame[position]


VARINT_BYTES_MAX = 5


def read_varint(frame: memoryview, position: int) -> tuple[int, int]:
    """An unsigned varint and the position after it."""
    byte = byte_at(frame, position)
    if byte < 0x80:
        return byte, position + 1
    value = byte & 0x7F
    for count in range(1, VARINT_BYTES_MAX):
        byte = byte_at(frame, position + count)
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, position + count + 1
    raise WireError(f"unsigned varint at byte {position} does not end within 32 bits")


def varint(value: int) -> bytes:
    """The unsigned varint of a number from 0 to 2^32 - 1."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def skip_tagged_fields(frame: memoryview, position: int) -> int:
    """The position after a section of tagged fields whose content does not matter."""
    count, position = read_varint(frame, position)
    for _ in range(count):
        _, position = read_varint(frame, position)
        size, position = read_varint(frame, position)
        position += size
        if position > len(frame):
            raise WireError(f"tagged field ends at byte {position}, past the frame's {len(frame)}")
    return position


def read_compact_string(frame: memoryview, position: int) -> tuple[str | None, int]:
    """A compact nullable string and the position after it."""
    length, position = read_varint(frame, position)
    if length == 0:
        return None, position
    return read_text(frame, position, length - 1)


def read_text(frame: memoryview, position: int, length: int) -> tuple[str, int]:
    """`length` bytes of UTF-8 and the position after them."""
    end = position + length
    if length < 0 or end > len(frame):
        raise WireError(f"string of {length} bytes at {position} ends past the frame")
    return str(frame[position:end], "utf-8"), end


def compact_string(text: str | None) -> bytes:
    """The compact encoding of a nullable string."""
    if text is None:
        return b"\x00"
    data = text.encode()
    return varint(len(data) + 1) + data
