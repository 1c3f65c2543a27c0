"""Valid requests of every API and version as tokens, and the values that let them get far."""

from __future__ import annotations

import functools
import random
from typing import Any, Final

from fuzz.mutations import flipped
from fuzz.tokens import Token, tokens_of
from moldau.wire.apis import API_BY_KEY, Api
from moldau.wire.batch_header import CRC_POSITION, CRC_STRUCT, HEADER_SIZE
from moldau.wire.compression import Compression
from moldau.wire.records import checksum, encode_batch
from support.message_samples import Samples

#: Names that the broker's ACLs leave to the fuzzer; few, so that the state it makes is bounded.
NAMES: Final = ("fuzz-1", "fuzz-2", "fuzz-3")
SAMPLES_PER_VERSION: Final = 6
_WAITS: Final = (0, 0, 1, 5, -1, 2**31 - 1)
_NUMBERS: Final = {
    "max_wait_ms": _WAITS,
    "timeout_ms": (0, 1, 100, 100, -1),
    "num_partitions": (1, 2, -1, 0, 2**31 - 1),
    "count": (1, 2, 3, -1, 2**31 - 1),
    "replication_factor": (1, 1, -1, 2),
    "acks": (-1, 1, 0, 7),
    "index": (0, 1, -1),
    "partition": (0, 1, -1),
    "partition_index": (0, 1, -1),
    "partition_indexes": (0, 1, -1),
    "partition_max_bytes": (0, 1, 1_000, 2**31 - 1),
    "max_bytes": (0, 1, 1_000, 2**31 - 1),
    "member_epoch": (0, -1, 1),
    "session_timeout_ms": (6_000, 0, 2**31 - 1),
    "rebalance_timeout_ms": (0, 100, 2**31 - 1),
    "key_type": (0, 1, 2),
}
_TEXTS: Final = (*NAMES, *NAMES, "range", "consumer", "", "fuzz-1:0", "retention.ms", "uniform")


def served(listener: str) -> list[tuple[Api, int]]:
    """APIs and versions of a kind of listener."""
    return [
        (api, version)
        for api in API_BY_KEY.values()
        if listener in api.listeners
        for version in range(api.min_version, api.max_version + 1)
    ]


@functools.cache
def sample(api: Api, version: int, number: int) -> list[Token]:
    chance = random.Random(f"{api.name} {version} {number}")
    message = Samples(chance, unknown_tags=number % 2 == 0, choose=_choose).message(
        api.request, version
    )
    return tokens_of(message, version)


def _choose(chance: random.Random, name: str, kind: str) -> Any:
    if kind == "records":
        return batch(chance)
    if name in _NUMBERS and kind.startswith("int"):
        # Numbers of 8 and 16 bits are at home in some of these fields.
        low = [each for each in _NUMBERS[name] if -128 <= each <= 127]
        return chance.choice(_NUMBERS[name] if kind in ("int32", "int64") else low or [0])
    if kind == "string" and chance.random() < 0.8:
        return chance.choice(_TEXTS)
    return None


def batch(chance: random.Random) -> bytes:
    """A record batch, as a rule with a right checksum over wrong contents."""
    codec = chance.choice(list(Compression))
    values = [chance.randbytes(chance.choice((0, 5, 90))) for _ in range(3)]
    spoiled = bytearray(
        encode_batch([(b"key", value, 1, [("h", value)]) for value in values], compression=codec)
    )
    if chance.random() < 0.7:
        at = chance.choice((0, CRC_POSITION + 4, HEADER_SIZE))
        spoiled[at:] = flipped(bytes(spoiled[at:]), chance)
    if chance.random() < 0.1:
        del spoiled[chance.randrange(len(spoiled)) :]
    if chance.random() < 0.9 and len(spoiled) > CRC_POSITION + 4:
        crc = checksum(spoiled, 0, len(spoiled))
        CRC_STRUCT.pack_into(spoiled, CRC_POSITION, crc)
    return bytes(spoiled)
