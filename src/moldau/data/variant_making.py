"""Variants of JSON, and paths within Variants."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from moldau.data.variant import Variant, VariantError

__all__ = ["at_path", "parse_path", "variant_of_json"]

_SIZE_MAX: Final = 16 * 1024 * 1024
_SHORT_TEXT_MAX: Final = 63
_INDEX_MAX: Final = 2**31 - 1
#: A whole number's type by its size.
_INT_CODES: Final = {1: 3, 2: 4, 4: 5, 8: 6}
_DECIMALS: Final = ((9, 8, 4), (18, 9, 8), (38, 10, 16))
_TRUE, _FALSE, _DOUBLE, _LONG_TEXT = 1, 2, 7, 16


def variant_of_json(text: str) -> Variant:
    """Fractions become doubles, whole numbers the smallest type. Raises ValueError."""
    try:
        parsed = json.loads(text)
        keys: dict[str, int] = {}
        value = _node(parsed, keys)
    except RecursionError:
        raise VariantError("the JSON is nested too deeply") from None
    return Variant(value, _metadata(list(keys)))


def _metadata(keys: Sequence[str]) -> bytes:
    names = [each.encode() for each in keys]
    size = _size_of(max(sum(map(len, names)), len(names)))
    offsets, position = [0], 0
    for each in names:
        position += len(each)
        offsets.append(position)
    head = bytes([1 | (size - 1) << 6]) + len(names).to_bytes(size, "little")
    return _bounded(head + _packed(offsets, size) + b"".join(names))


def _node(value: Any, keys: dict[str, int]) -> bytes:
    match value:
        case None:
            return b"\x00"
        case bool():
            return _head(_TRUE if value else _FALSE)
        case str():
            return _text(value.encode())
        case int():
            return _whole(value)
        case float():
            return _head(_DOUBLE) + struct.pack("<d", value)
        case list():
            return _array(value, keys)
        case _:
            return _object(value, keys)


def _head(code: int) -> bytes:
    return bytes([code << 2])


def _text(data: bytes) -> bytes:
    if len(data) <= _SHORT_TEXT_MAX:
        return bytes([len(data) << 2 | 1]) + data
    return _head(_LONG_TEXT) + len(data).to_bytes(4, "little") + data


def _whole(number: int) -> bytes:
    for size, code in _INT_CODES.items():
        if -(1 << (8 * size - 1)) <= number < 1 << (8 * size - 1):
            return _head(code) + number.to_bytes(size, "little", signed=True)
    for digits, code, size in _DECIMALS:
        if abs(number) < 10**digits:
            return _head(code) + b"\x00" + number.to_bytes(size, "little", signed=True)
    raise VariantError("decimal exceeds maximum precision (38)")


def _array(values: list[Any], keys: dict[str, int]) -> bytes:
    data, offsets = bytearray(), []
    for each in values:
        offsets.append(len(data))
        data += _node(each, keys)
    size = _size_of(len(data))
    is_large = len(values) > 0xFF
    head = bytes([is_large << 4 | (size - 1) << 2 | 3])
    count = len(values).to_bytes(4 if is_large else 1, "little")
    return _bounded(head + count + _packed([*offsets, len(data)], size) + data)


def _object(fields: dict[str, Any], keys: dict[str, int]) -> bytes:
    data = bytearray()
    entries = []
    for key, each in fields.items():
        entries.append((key, keys.setdefault(key, len(keys)), len(data)))
        data += _node(each, keys)
    entries.sort()
    ids = [id for _, id, _ in entries]
    offsets = [*(offset for _, _, offset in entries), len(data)]
    id_size, size = _size_of(max(ids, default=0)), _size_of(len(data))
    is_large = len(entries) > 0xFF
    head = bytes([is_large << 6 | (id_size - 1) << 4 | (size - 1) << 2 | 2])
    count = len(entries).to_bytes(4 if is_large else 1, "little")
    return _bounded(head + count + _packed(ids, id_size) + _packed(offsets, size) + data)


def _packed(numbers: Sequence[int], size: int) -> bytes:
    return b"".join(each.to_bytes(size, "little") for each in numbers)


def _size_of(number: int) -> int:
    return max(1, (number.bit_length() + 7) // 8)


def _bounded(data: bytes) -> bytes:
    if len(data) > _SIZE_MAX:
        raise VariantError("variant size limit exceeded")
    return data


def at_path(variant: Variant, path: str) -> Variant | None:
    """`$.field`, `$[0]` and `$["any key"]`; None where there is nothing. Raises ValueError."""
    found: Variant | None = variant
    for step in parse_path(path):
        if found is None:
            return None
        if isinstance(step, str):
            found = found.field(step) if found.type == "OBJECT" else None
        else:
            found = found.element(step) if found.type == "ARRAY" else None
    return found


@lru_cache(maxsize=1000)
def parse_path(path: str) -> tuple[str | int, ...]:
    if not path.startswith("$"):
        raise ValueError(f"variant path must start with '$', got: {path}")
    steps: list[str | int] = []
    position = 1
    while position < len(path):
        step: str | int
        match path[position]:
            case ".":
                step, position = _identifier(path, position + 1)
            case "[":
                step, position = _bracketed(path, position + 1)
            case other:
                raise ValueError(f"unexpected character '{other}' in variant path: {path}")
        steps.append(step)
    return tuple(steps)


def _identifier(path: str, start: int) -> tuple[str, int]:
    end = start
    while end < len(path) and (path[end].isalnum() or path[end] == "_"):
        end += 1
    if end == start or not (path[start].isalpha() or path[start] == "_"):
        raise ValueError(
            f"expected identifier (starting with a letter or '_') after '.' in variant path: {path}"
        )
    return path[start:end], end


def _bracketed(path: str, start: int) -> tuple[str | int, int]:
    step: str | int
    if path[start : start + 1] in ('"', "'"):
        step, end = _quoted_key(path, start)
    else:
        end = start
        while end < len(path) and path[end] in "0123456789":
            end += 1
        if end == start:
            raise ValueError(f"expected integer index in variant path: {path}")
        step = int(path[start:end])
        if step > _INDEX_MAX:
            raise ValueError(f"index out of int range in variant path: {path}")
    if path[end : end + 1] != "]":
        raise ValueError(f"expected ']' in variant path: {path}")
    return step, end + 1


def _quoted_key(path: str, start: int) -> tuple[str, int]:
    """A backslash stands before a quote or a backslash, and nothing else."""
    quote, position = path[start], start + 1
    key: list[str] = []
    while position < len(path):
        character = path[position]
        if character == quote:
            return "".join(key), position + 1
        if character == "\\":
            position += 1
            character = path[position : position + 1]
            if character not in ("\\", quote):
                raise ValueError(
                    f"unsupported escape '\\{character}' in quoted key of variant path: {path}"
                )
        key.append(character)
        position += 1
    raise ValueError(f"unterminated quoted key in variant path: {path}")
