"""COUNT_DISTINCT: HyperLogLog over 2^14 registers, with the registers of stream-lib.

Six registers of five bits share a 32-bit integer, and the hash is MurmurHash 2, so an aggregate
that ksqlDB has written goes on being counted.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

from moldau.sql.functions.declarations import (
    Aggregation,
    Settings,
    aggregate,
    aggregate_overload,
)
from moldau.sql.types import (
    BIGINT,
    BYTES,
    DOUBLE,
    INTEGER,
    STRING,
    ArrayType,
    SqlType,
)
from moldau.sql.values.texts import nested_text_of

_LOG2 = 14
_COUNT = 1 << _LOG2
_PER_WORD = 6
_BITS = 5
_WORDS = _COUNT // _PER_WORD + 1
_MASK = 0xFFFFFFFF
_M = 0x5BD1E995
_ALPHA = 0.7213 / (1 + 1.079 / _COUNT) * _COUNT * _COUNT


def _signed(word: int) -> int:
    return word - (1 << 32) if word & 0x80000000 else word


def _finish(state: int) -> int:
    state ^= state >> 13
    state = state * _M & _MASK
    return state ^ (state >> 15)


def hash_long(value: int) -> int:
    state = 0
    for half in (value & _MASK, value >> 32 & _MASK):
        mixed = half * _M & _MASK
        mixed ^= mixed >> 24
        state = state * _M & _MASK
        state ^= mixed * _M & _MASK
    return _finish(state)


def hash_bytes(data: bytes) -> int:
    length = len(data)
    state = (_MASK ^ length) & _MASK
    for (word,) in struct.iter_unpack("<I", data[: length & ~3]):
        mixed = word * _M & _MASK
        mixed ^= mixed >> 24
        mixed = mixed * _M & _MASK
        state = (state * _M & _MASK) ^ mixed
    left = length & 3
    if left:
        # stream-lib reads the rest backwards, and its bytes are signed.
        for index in range(left, 0, -1):
            byte = data[length - index]
            signed = byte - 256 if byte > 127 else byte
            state ^= (signed << 8 * (index - 1)) & _MASK
        state = state * _M & _MASK
    return _finish(state)


def _hasher(sql_type: SqlType) -> Callable[[Any], int]:
    if sql_type in (INTEGER, BIGINT):
        return hash_long
    if sql_type is DOUBLE:
        return lambda value: hash_long(struct.unpack(">q", struct.pack(">d", value))[0])
    if sql_type is STRING:
        return lambda value: hash_bytes(value.encode())
    if sql_type is BYTES:
        return lambda value: hash_bytes(value)
    show = nested_text_of(sql_type)
    return lambda value: hash_bytes(show(value).encode())


def _offer(registers: list[int], hashed: int) -> list[int]:
    position = hashed >> (32 - _LOG2)
    rest = ((hashed << _LOG2 & _MASK) | (1 << (_LOG2 - 1))) + 1 & _MASK
    zeros = 32 - rest.bit_length() + 1
    word, place = divmod(position, _PER_WORD)
    shift = _BITS * place
    current = registers[word] & _MASK
    if zeros <= (current >> shift & 0x1F):
        return registers
    changed = list(registers)
    changed[word] = _signed(current & ~(0x1F << shift) & _MASK | zeros << shift)
    return changed


def _values(registers: list[int]) -> list[int]:
    found = [word >> _BITS * place & 0x1F for word in registers for place in range(_PER_WORD)]
    return found[:_COUNT]


def _merge(one: list[int], other: list[int]) -> list[int]:
    merged = []
    for left, right in zip(one, other, strict=True):
        if left == right:
            merged.append(left)
            continue
        word = 0
        for place in range(_PER_WORD):
            shift = _BITS * place
            word |= max(left >> shift & 0x1F, right >> shift & 0x1F) << shift
        merged.append(_signed(word))
    return merged


def _cardinality(registers: list[int]) -> int:
    values = _values(registers)
    estimate = _ALPHA / sum(2.0**-each for each in values)
    zeros = values.count(0)
    if estimate <= 2.5 * _COUNT and zeros:
        estimate = _COUNT * math.log(_COUNT / zeros)
    return math.floor(estimate + 0.5)


def _bind(types: Sequence[SqlType], init: Sequence[Any], settings: Settings) -> Aggregation:
    hashed = _hasher(types[0])
    return Aggregation(
        BIGINT,
        ArrayType(INTEGER),
        initialize=lambda: [0] * _WORDS,
        add=lambda value, kept: kept if value is None else _offer(kept, hashed(value)),
        merge=_merge,
        map_result=_cardinality,
    )


FUNCTIONS = [
    aggregate(
        "COUNT_DISTINCT",
        "The number of distinct values, with an error of about 1 %.",
        "COUNT_DISTINCT(name)",
        aggregate_overload("(T val1) -> BIGINT", _bind),
    )
]
