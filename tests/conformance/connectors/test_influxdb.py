"""The InfluxDB connectors against InfluxDB 1.8."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.connect.api import ConnectError
from moldau.data import builders
from moldau.data.struct import Struct
from moldau.testing.connect import SinkDriver, SourceDriver
from support.influxdb import Influx, influxdb_missing, running_influxdb

SOURCE = "io.confluent.influxdb.source.InfluxdbSourceConnector"
SINK = "io.confluent.influxdb.InfluxDBSinkConnector"


@pytest.fixture(scope="module")
def influx() -> Iterator[Influx]:
    if missing := influxdb_missing():
        pytest.skip(missing)
    with running_influxdb() as server:
        yield server


def sink_config(influx: Influx, database: str, **more: str) -> dict[str, str]:
    own = {key.replace("_", "."): value for key, value in more.items()}
    return {"influxdb.url": influx.url, "influxdb.db": database, "topics": "climate", **own}


def rows(influx: Influx, database: str, measurement: str = "climate") -> list[dict[str, object]]:
    (series,) = influx.query(database, f'SELECT * FROM "{measurement}" ORDER BY time')
    return [
        {name: each for name, each in zip(series["columns"], row, strict=True) if each is not None}
        for row in series["values"]
    ]


def test_records_become_points(influx: Influx) -> None:
    database = influx.database()
    schema = builders.struct({"room": builders.STRING, "t": builders.FLOAT64})
    with SinkDriver(SINK, sink_config(influx, database, tags="room")) as sink:
        sink.send("climate", {"room": "a b", "t": 20.5, "on": True, "n": 3}, timestamp=1)
        struct = Struct(schema, {"room": 'c,d="e"', "t": -0.5})
        sink.send("climate", struct, value_schema=schema, timestamp=2)
        # A record that comes again replaces its point.
        sink.send("climate", struct, value_schema=schema, timestamp=2)
        sink.send("climate", None, timestamp=3)
        sink.commit()
    assert rows(influx, database) == [
        {"time": 1_000_000, "room": "a b", "t": 20.5, "on": True, "n": 3},
        {"time": 2_000_000, "room": 'c,d="e"', "t": -0.5},
    ]
    (tags,) = influx.query(database, "SHOW TAG KEYS")
    assert tags["values"] == [["room"]]


def test_the_write_path_of_version_2(influx: Influx) -> None:
    database = influx.database()
    config = sink_config(influx, "", influxdb_org="o", influxdb_bucket=f"{database}/autogen")
    with SinkDriver(SINK, config) as sink:
        sink.send("climate", {"say": 'a "quoted"\\ text\nof lines', "n": 2**40}, timestamp=1)
        sink.commit()
    assert rows(influx, database) == [
        {"time": 1_000_000, "say": 'a "quoted"\\ text\nof lines', "n": 2**40}
    ]


def test_what_the_server_refuses_is_named(influx: Influx) -> None:
    with (
        SinkDriver(SINK, sink_config(influx, "nosuch")) as sink,
        pytest.raises(ConnectError, match=r"404.*database not found.*nosuch"),
    ):
        sink.send("climate", {"t": 1.5}, timestamp=1)
    database = influx.database()
    with SinkDriver(SINK, sink_config(influx, database)) as sink:
        sink.send("climate", {"t": 1.5}, timestamp=1)
        with pytest.raises(ConnectError, match="field type conflict"):
            sink.send("climate", {"t": "warm"}, timestamp=2)


def test_points_become_records(influx: Influx) -> None:
    database = influx.database()
    config = {
        "influxdb.url": influx.url, "influxdb.db": database, "poll.interval.ms": "10",
        "batch.size": "2", "influxdb.measurement.whitelist": "climate", "topic.prefix": "i-",
        "topic.mapper": "measurement",
    }  # fmt: skip
    # More points of one time than a query returns.
    influx.write(
        database,
        "climate,room=a t=1.5 1000000",
        "climate,room=a t=2.5 2000000",
        "climate,room=b t=3.5 2000000",
        "climate,room=c on=true 2000000",
        "other t=1 1",
    )
    with SourceDriver(SOURCE, config) as source:
        found = source.poll_until(4)
        rooms = [(each.value["time"], each.value["tags"]["room"]) for each in found]
        assert [time for time, _ in rooms] == [1_000_000, *[2_000_000] * 3]
        assert sorted(rooms[1:]) == [(2_000_000, room) for room in "abc"]
        assert found[0].value == {
            "measurement": "climate", "time": 1_000_000, "tags": {"room": "a"}, "t": 1.5
        }  # fmt: skip
        (last,) = [each.value for each in found if each.value["tags"]["room"] == "c"]
        assert last["on"] is True
        assert (found[0].topic, found[0].timestamp) == ("i-climate", 1)
        kept = source.commit()
        assert list(kept.values()) == [{"time": 2_000_000}]
    influx.write(database, "climate,room=d t=4 3000000")
    with SourceDriver(SOURCE, config, offsets=list(kept.items())) as source:
        assert [each.value["time"] for each in source.poll_until(1)] == [3_000_000]


def test_a_whole_measurement_again_and_again(influx: Influx) -> None:
    database = influx.database()
    influx.write(database, "a t=1 1", "a t=2 2", "b t=3 3")
    config = {"influxdb.url": influx.url, "influxdb.db": database, "mode": "bulk",
              "poll.interval.ms": "10", "influxdb.measurement.blacklist": "b"}  # fmt: skip
    with SourceDriver(SOURCE, config) as source:
        found = source.poll_until(4)
    assert [each.value["t"] for each in found] == [1.0, 2.0, 1.0, 2.0]
    assert {each.topic for each in found} == {database}
