"""The usual tutorial: a file to a topic to a file, standalone and by REST, with transforms."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moldau.client import Consumer
from moldau.config.properties import load_properties
from support.connect_workers import distributed_worker, standalone_worker
from support.processes import ROOT, BrokerProcess
from support.waiting import eventually

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "FileStreamSink"


def shipped(name: str) -> dict[str, str]:
    return load_properties((ROOT / "config" / name).read_text())


def values_of(bootstrap: str, topic: str, count: int) -> list[tuple[bytes | None, bytes]]:
    found: list[tuple[bytes | None, bytes]] = []

    def enough() -> bool:
        found.extend((each.key, each.value) for each in consumer.poll(0.5))
        return len(found) >= count

    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        eventually(lambda: consumer.partitions_for(topic), what=f"the topic {topic}")
        consumer.assign([(topic, each.partition) for each in consumer.partitions_for(topic)])
        eventually(enough, what=f"{count} records in {topic}")
    return found


def test_standalone_from_file_to_file(broker: BrokerProcess, tmp_path: Path) -> None:
    given, result = tmp_path / "test.txt", tmp_path / "test.sink.txt"
    given.write_text("foo\nbar\n")
    source = shipped("connect-file-source.properties") | {"file": str(given)}
    sink = shipped("connect-file-sink.properties") | {"file": str(result)}
    with standalone_worker(broker.bootstrap, tmp_path, source, sink) as worker:
        worker.wait_for("local-file-source", "RUNNING", "RUNNING")
        eventually(
            lambda: result.exists() and result.read_text() == "foo\nbar\n", what="the two lines"
        )
        with given.open("a") as more:
            more.write("Another line\n")
        eventually(lambda: "Another line\n" in result.read_text(), what="another line")
        assert worker.call("GET", "/connectors").body == ["local-file-sink", "local-file-source"]
        topics = worker.call("GET", "/connectors/local-file-source/topics").body
        assert topics == {"local-file-source": {"topics": ["connect-test"]}}
    # A second worker continues where the first has stopped.
    with given.open("a") as more:
        more.write("last\n")
    with standalone_worker(broker.bootstrap, tmp_path, source, sink):
        eventually(lambda: "last" in result.read_text(), what="the last line")
    assert result.read_text() == "foo\nbar\nAnother line\nlast\n"


def test_distributed_by_rest_with_a_chain_of_transforms(
    broker: BrokerProcess, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Drop, rename and mask fields, a key from the value, a prefix for the topic."""
    given = tmp_path / "orders.txt"
    given.write_text("order 1\norder 2\n")
    config = {
        "connector.class": SOURCE,
        "file": str(given),
        "topic": "orders",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "transforms": "hoist,insert,rename,mask,key,extract,route,only",
        "transforms.hoist.type": "org.apache.kafka.connect.transforms.HoistField$Value",
        "transforms.hoist.field": "line",
        "transforms.insert.type": "org.apache.kafka.connect.transforms.InsertField$Value",
        "transforms.insert.static.field": "origin",
        "transforms.insert.static.value": "file",
        "transforms.insert.topic.field": "secret",
        "transforms.rename.type": "org.apache.kafka.connect.transforms.ReplaceField$Value",
        "transforms.rename.blacklist": "nothing",
        "transforms.rename.renames": "origin:source",
        "transforms.mask.type": "org.apache.kafka.connect.transforms.MaskField$Value",
        "transforms.mask.fields": "secret",
        "transforms.key.type": "org.apache.kafka.connect.transforms.ValueToKey",
        "transforms.key.fields": "line",
        "transforms.extract.type": "org.apache.kafka.connect.transforms.ExtractField$Key",
        "transforms.extract.field": "line",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": "(.*)",
        "transforms.route.replacement": "prefix-$1",
        "transforms.only.type": "org.apache.kafka.connect.transforms.Filter",
        "transforms.only.predicate": "tombstone",
        "predicates": "tombstone",
        "predicates.tombstone.type": (
            "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone"
        ),
    }
    with distributed_worker(broker.bootstrap, "tutorial") as worker:
        made = worker.call("POST", "/connectors", {"name": "chain", "config": config})
        assert made.status == 201, made.body
        assert made.headers["location"] == f"{worker.url}/connectors/chain"
        assert made.body["type"] == "source"
        worker.wait_for("chain", "RUNNING", "RUNNING")
        records = values_of(broker.bootstrap, "prefix-orders", 2)
        assert [(key, json.loads(value)) for key, value in records] == [
            (f"order {n}".encode(), {"line": f"order {n}", "secret": "", "source": "file"})
            for n in (1, 2)
        ]
        assert "blacklist is an old name" in caplog.text
        assert worker.call("DELETE", "/connectors/chain").status == 204
        eventually(
            lambda: worker.call("GET", "/connectors/chain/status").status == 404,
            what="the state to be forgotten",
        )
