"""The Redis connectors against Redis."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.connect.api import RetriableError
from moldau.testing.connect import SinkDriver, SourceDriver
from support.redis import RedisServer

SINK = "com.redis.kafka.connect.RedisSinkConnector"
SOURCE = "com.redis.kafka.connect.RedisStreamSourceConnector"


@pytest.fixture
def client(redis_server: RedisServer) -> Any:
    found = redis_server.client()
    found.flushall()
    return found


def sink_for(server: RedisServer, command: str, **config: str) -> SinkDriver:
    keys = {name.replace("_", "."): value for name, value in config.items()}
    given = {"redis.uri": server.uri, "topics": "t", "redis.command": command, **keys}
    return SinkDriver(SINK, given)


def test_values_by_key(redis_server: RedisServer, client: Any) -> None:
    with sink_for(redis_server, "SET") as sink:
        for _ in range(2):
            sink.send("t", "one", key="a")
            sink.send("t", {"n": 1}, key=5)
            sink.send("t", "gone", key="b")
            sink.send("t", None, key="b")
        sink.send("t", "no key")
        assert [str(error) for _, error in sink.errant] == [
            "record t-0@8 has no key, which SET needs"
        ]
    assert {key: client.get(key) for key in client.keys("*")} == {"t:a": "one", "t:5": '{"n":1}'}


def test_hashes_that_end(redis_server: RedisServer, client: Any) -> None:
    with sink_for(redis_server, "hset", redis_key="", redis_ttl_seconds="100") as sink:
        sink.send("t", {"name": "tea", "size": 3}, key="k")
        sink.send("t", {"name": "cup"}, key="k")
    assert client.hgetall("k") == {"name": "cup"}
    assert 0 < client.ttl("k") <= 100


def test_lists_sets_and_streams(redis_server: RedisServer, client: Any) -> None:
    with sink_for(redis_server, "RPUSH", redis_key="list") as sink:
        sink.put([sink.record("t", text) for text in ("a", "b")])
    with sink_for(redis_server, "SADD", redis_key="set") as sink:
        sink.put([sink.record("t", 1, key=key) for key in ("x", "x", "y")])
        sink.send("t", None, key="y")
    with sink_for(redis_server, "XADD", redis_key="stream") as sink:
        sink.send("t", {"n": 1})
    assert client.lrange("list", 0, -1) == ["a", "b"]
    assert client.smembers("set") == {"x"}
    assert [fields for _, fields in client.xrange("stream")] == [{"n": "1"}]


def test_a_stream_is_read_on_from_where_it_was(redis_server: RedisServer, client: Any) -> None:
    for number in range(3):
        client.xadd("events", {"n": number})
    config = {
        "redis.uri": redis_server.uri, "redis.stream.name": "events", "topic": "from-${stream}",
    }  # fmt: skip
    with SourceDriver(SOURCE, config) as source:
        found = source.poll_until(3)
        assert [each.value["n"] for each in found] == ["0", "1", "2"]
        assert found[0].topic == "from-events"
        source.commit()
        client.xadd("events", {"n": 3})
        source.restart()
        assert [each.value["n"] for each in source.poll_until(1)] == ["3"]


def test_a_server_that_is_away_is_tried_again() -> None:
    given = {"redis.uri": "redis://127.0.0.1:1", "topics": "t"}
    with SinkDriver(SINK, given) as sink, pytest.raises(RetriableError):
        sink.send("t", "x", key="k")
