"""A store of a Streams application as a DataFrame: as it is now, and as a stream of changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, NewTopic, Producer
from moldau.streams import KafkaStreams, StreamsError
from moldau.streams.frames import changelog, table
from moldau.streams.serdes import INTEGER, LONG, SHORT
from spark.running import finished
from support.streams_counting import recomputed, updates, word_count

LINES = ["a b a", "b c", "a"]


def test_a_store_is_a_frame(spark: Any, bootstrap: str, tmp_path: Path) -> None:
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        admin.create_topics([NewTopic(name, 2, 1) for name in ("frames-text", "frames-counts")])
    config = {"application.id": "frames", "bootstrap.servers": bootstrap}
    config |= {"state.dir": str(tmp_path / "state"), "statestore.cache.max.bytes": "0"}
    with KafkaStreams(word_count("frames-"), config), Producer(config_of(bootstrap)) as producer:
        for line in LINES:
            producer.send("frames-text", line.encode())
        producer.flush()
        updates(bootstrap, "frames-counts", 2, sum(len(line.split()) for line in LINES))
    store: dict[str, Any] = {"key": "string", "value": "long", "bootstrap_servers": bootstrap}
    rows = table(spark, "frames", "counts", **store).collect()
    assert {row.key: row.value for row in rows} == recomputed(LINES)
    changes = changelog(spark, "frames", "counts", **store, streaming=True)
    finished(
        lambda: [
            changes.writeStream.format("memory")
            .queryName("frames_changes")
            .trigger(availableNow=True)
            .start()
        ]
    )
    found = spark.sql("SELECT key, value FROM frames_changes ORDER BY key, value").collect()
    assert [tuple(row) for row in found] == [
        (word, count)
        for word, total in sorted(recomputed(LINES).items())
        for count in range(1, total + 1)
    ]


def test_numbers_are_read_as_serdes_write_them(spark: Any) -> None:
    from moldau.streams.frames import _expression

    wanted = {"long": LONG, "integer": INTEGER, "short": SHORT}
    numbers = [0, 1, -1, 255, -256, 32767, -32768]
    for name, serde in wanted.items():
        rows = [(serde.serialize("t", number),) for number in numbers]
        frame = spark.createDataFrame(rows, "value binary")
        read = [row[0] for row in frame.selectExpr(_expression(name, "value")).collect()]
        assert read == numbers, name
    with pytest.raises(StreamsError, match="Spark does not read the serde 'avro'"):
        _expression("avro", "value")


def config_of(bootstrap: str) -> dict[str, str]:
    return {"bootstrap.servers": bootstrap}
