"""The same scripted session through every client: what one may rely on must hold for all."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator

import pytest

from support.clients import CLIENTS, Client, Row
from support.processes import BrokerProcess
from support.waiting import eventually

PER_CODEC = 5


@pytest.fixture(params=list(CLIENTS))
def client(request: pytest.FixtureRequest, broker: BrokerProcess) -> Iterator[Client]:
    if request.param == "kcat" and shutil.which("kcat") is None:
        pytest.skip("kcat is not installed here: Debian's package kcat has it")
    opened = CLIENTS[request.param](broker.bootstrap)
    yield opened
    opened.close()


def rows_for(codec: str, first_timestamp: int) -> list[Row]:
    """A few records, one of them large enough that compression has something to do."""
    rows = []
    for index in range(PER_CODEC):
        value = f"{codec} {index} ".encode() * (1 if index else 2000)
        headers = (("codec", codec.encode()), ("n", str(index).encode()))
        rows.append(Row(f"key-{index}".encode(), value, first_timestamp + index, headers))
    return rows


def test_scripted_session(client: Client) -> None:
    topic = f"session-{type(client).__name__}"
    sets_timestamps = type(client).__name__ != "KcatClient"

    client.create_topic(topic, {"retention.ms": "3600000"})
    eventually(lambda: topic in client.topics(), what="the new topic is listed")
    assert client.config(topic, "retention.ms") == "3600000"

    start = int(time.time() * 1000)
    sent: list[Row] = []
    for position, codec in enumerate(client.codecs):
        rows = rows_for(codec, start + position * 1000)
        client.produce(topic, codec, rows)
        sent += rows

    seen = client.read(topic, offset=0, count=len(sent))
    assert [row.offset for row in seen] == list(range(len(sent)))
    assert [(row.key, row.value, row.headers) for row in seen] == [
        (row.key, row.value, row.headers) for row in sent
    ]
    if sets_timestamps:
        assert [row.timestamp for row in seen] == [row.timestamp for row in sent]

    assert client.read(topic, offset=7, count=3) == seen[7:10]

    by_time = seen[2 * PER_CODEC].timestamp
    expected = next(row.offset for row in seen if row.timestamp >= by_time)
    assert client.offset_at(topic, by_time) == expected
    assert client.read(topic, offset=expected, count=1) == [seen[expected]]

    client.alter_config(topic, "retention.ms", "7200000")
    eventually(
        lambda: client.config(topic, "retention.ms") == "7200000", what="the new retention is told"
    )

    client.delete_records(topic, PER_CODEC)
    assert client.beginning(topic) == PER_CODEC
    assert client.read(topic, offset=PER_CODEC, count=2) == seen[PER_CODEC : PER_CODEC + 2]

    client.delete_topic(topic)
    eventually(lambda: topic not in client.topics(), what="the deleted topic is gone")
