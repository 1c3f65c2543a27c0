"""Ways to spoil a message: hostile values where its tokens are, and bytes anywhere."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from typing import Final

from fuzz.tokens import Token, varint

_WIDTHS: Final = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "length16": 2,
    "int32": 4,
    "uint32": 4,
    "length32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}
_TEXTS: Final = (
    b"\x00",
    b"../x",
    b".",
    b"..",
    b"a/b",
    b"fuzz\x00a",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"${env:HOME}",
    b"%s%n",
    b"x" * 250,
    b"y" * 32_768,
)
#: Too long, too large, and one that never ends.
_VARINTS: Final = (
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x07",
    b"\x80\x80\x80\x80\x08",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x80\x80\x80\x80\x00",
    b"\xff" * 11,
)


def hostile(token: Token, chance: random.Random) -> bytes:
    """Another value for a token, mostly at a limit."""
    kind = token.kind
    if kind == "varint":
        known = token.data[0] if len(token.data) == 1 else 300
        others = [varint(max(0, known + step)) for step in (-1, 1, 2, 127, 20_000)]
        return chance.choice([b"\x00", *others, *_VARINTS])
    if kind in ("text", "blob"):
        ways: Sequence[Callable[[], bytes]] = (
            lambda: b"",
            lambda: chance.choice(_TEXTS),
            lambda: flipped(token.data, chance),
            lambda: token.data * 2,
            lambda: token.data[: chance.randrange(len(token.data) + 1)],
        )
        return chance.choice(ways)()
    width = _WIDTHS[kind]
    top = 1 << 8 * width
    number = int.from_bytes(token.data, "big")
    near = (0, 1, top - 1, top - 2, top >> 1, (top >> 1) - 1, number + 1, number - 1)
    values = (*near, 1 << 20, chance.getrandbits(8 * width))
    return (chance.choice(values) % top).to_bytes(width, "big")


def flipped(data: bytes, chance: random.Random) -> bytes:
    """Some bits of some bytes changed."""
    out = bytearray(data)
    for _ in range(min(len(out), chance.choice((1, 1, 2, 8)))):
        out[chance.randrange(len(out))] ^= 1 << chance.randrange(8)
    return bytes(out)


def spoiled(tokens: Sequence[Token], chance: random.Random) -> bytes:
    """The message with one or a few of these: another value, tokens missing, doubled, exchanged or
    repeated many times, bytes changed, the end missing or followed by more."""
    parts = [token.data for token in tokens]
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        if not parts:
            return chance.randbytes(4)
        at = chance.randrange(len(parts))
        way = chance.randrange(10)
        if way < 5:
            # Positions shift when tokens come and go: the kinds may then differ, which is fine.
            known = tokens[min(at, len(tokens) - 1)]
            parts[at] = hostile(known, chance)
        elif way == 5:
            del parts[at]
        elif way == 6:
            parts.insert(at, parts[at])
        elif way == 7:
            other = chance.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
        elif way == 8:
            # Nested arrays without their counts, or a count that has to fit.
            parts[at:at] = parts[at : at + 3] * chance.choice((10, 200))
        else:
            parts[at] = flipped(parts[at], chance)
    whole = b"".join(parts)
    ending = chance.randrange(8)
    if ending == 0:
        return whole[: chance.randrange(len(whole) + 1)]
    if ending == 1:
        return whole + chance.randbytes(chance.choice((1, 5, 400)))
    return whole


def lying_size(payload: bytes, chance: random.Random) -> bytes:
    """A frame whose size is not that of its payload."""
    size = len(payload)
    sizes = (-1, 0, 1, size - 1, size + 1, size * 2, 2**31 - 1, -(2**31), 104_857_600, 1 << 20)
    return struct.pack(">i", chance.choice(sizes)) + payload
