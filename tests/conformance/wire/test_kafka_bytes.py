"""Bytes that Apache Kafka 4.3.0 itself reads and writes, of messages nobody else implements."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.wire import messages
from moldau.wire.codec import decode_prefix, encode
from moldau.wire.message import Message

LINES = [
    line.split()
    for line in Path(__file__).with_name("kafka_4_3_0_bytes.txt").read_text().splitlines()
    if not line.startswith("#")
]
CASES = sorted({(name, int(version)) for name, version, _ in LINES})


def test_the_stored_records_are_covered() -> None:
    names = {name for name, _ in CASES}
    for name in messages.MODULES:
        kind = getattr(messages, name).KIND
        if kind.startswith(("metadata", "group", "transaction", "share", "remote-log")):
            assert name in names


@pytest.mark.parametrize(("name", "version"), CASES)
def test_kafka_bytes(name: str, version: int) -> None:
    cls: type[Message] = getattr(messages, name)
    samples = [text for n, v, text in LINES if n == name and int(v) == version]
    assert samples
    for text in samples:
        data = bytes.fromhex(text.strip("-"))
        message, end = decode_prefix(cls, version, data)
        assert end == len(data)
        assert encode(message, version).hex() == data.hex()
