"""The Splunk sink against a server that answers as Splunk's collector does."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator

import pytest

from conformance.connectors.test_http import Target
from moldau.connect.api import ConnectError, Header, OffsetAndMetadata, SinkRecord, TopicPartition
from moldau.connect.connectors.splunk.machine.acks import Acknowledgements, Waiting
from moldau.connect.connectors.splunk.machine.events import Batch
from moldau.testing.connect import SinkDriver, config_errors

SINK = "com.splunk.kafka.connect.SplunkSinkConnector"


@pytest.fixture
def target() -> Iterator[Target]:
    made = Target()
    yield made
    made.close()


def sink_for(target: Target, **config: str) -> SinkDriver:
    keys = {"splunk." + name.replace("_", "."): value for name, value in config.items()}
    base = {"splunk.hec.uri": target.url, "splunk.hec.token": "t0ken", "topics": "a,b"}
    return SinkDriver(SINK, {**base, **keys})


def test_events_have_the_metadata_of_their_topics(target: Target) -> None:
    config = {
        "indexes": "one,two", "sources": "kafka", "sourcetypes": "x,y", "hec_max_batch_size": "2",
        "hec_json_event_enrichment": "org=fin, bu=south", "hec_track_data": "true",
    }  # fmt: skip
    with sink_for(target, **config) as sink:
        sink.put([sink.record(topic, {"n": 1}, timestamp=1500, key="k") for topic in "aab"])
    assert [path for _, path, *_ in target.requests] == ["/services/collector/event"] * 2
    headers = target.requests[0][3]
    assert headers["authorization"] == "Splunk t0ken"
    assert headers["x-splunk-request-channel"]
    first, _, last = (json.loads(line) for body in target.bodies for line in body.splitlines())
    tracked = first["fields"]
    assert tracked.pop("kafka_connect_host")
    assert first == {
        "event": {"n": 1}, "index": "one", "source": "kafka", "sourcetype": "x", "time": 1.5,
        "fields": {
            "org": "fin", "bu": "south", "kafka_topic": "a", "kafka_partition": "0",
            "kafka_offset": "0", "kafka_timestamp": "1500", "kafka_record_key": "k",
        },
    }  # fmt: skip
    assert (last["index"], last["source"], last["sourcetype"]) == ("two", "kafka", "y")


def test_without_tracking_there_are_no_fields(target: Target) -> None:
    with sink_for(target, hec_use_record_timestamp="false") as sink:
        sink.send("a", "text", timestamp=5)
        sink.send("a", b"bytes", timestamp=5)
    assert [json.loads(body) for body in target.bodies] == [{"event": "text"}, {"event": "bytes"}]


def test_raw_values_have_the_metadata_in_the_address(target: Target) -> None:
    config = {"hec_raw": "true", "indexes": "one,two", "sourcetypes": "a b"}
    config["hec_raw_line_breaker"] = "####"
    with sink_for(target, **config) as sink:
        sink.put([sink.record("a", "x"), sink.record("a", b"y"), sink.record("b", "z")])
    path = "/services/collector/raw?index={}&sourcetype=a+b"
    assert [(each[1], each[2]) for each in target.requests] == [
        (path.format("one"), b"x####y####"),
        (path.format("two"), b"z####"),
    ]


def test_headers_and_values_that_are_events_already(target: Target) -> None:
    given = [Header("splunk.header.index", "i"), Header("h", b"host1"), Header("team", "blue")]
    config = {"header_support": "true", "header_host": "h", "header_custom": "team,other"}
    with sink_for(target, **config) as sink:
        sink.send("a", "x", headers=given)
    event = json.loads(target.bodies[0])
    assert (event["index"], event["host"], event["fields"]) == ("i", "host1", {"team": "blue"})
    target.requests.clear()
    config = {"hec_json_event_formatted": "true", "hec_enable_compression": "true"}
    with sink_for(target, hec_auto_extract_timestamp="true", **config) as sink:
        sink.put([sink.record("a", '{"event":"e","host":"h"}'), sink.record("a", "no event")])
        assert [record.value for record, _ in sink.errant] == ["no event"]
    assert json.loads(gzip.decompress(target.bodies[0])) == {"event": "e", "host": "h"}
    assert target.requests[0][1] == "/services/collector/event?auto_extract_timestamp=true"


def test_offsets_wait_for_acknowledgements(target: Target) -> None:
    config = {"hec_ack_enabled": "true", "hec_max_batch_size": "1", "hec_ack_poll_interval": "600"}
    at = TopicPartition("a", 0)
    with sink_for(target, **config) as sink:
        target.answers = [(200, {"ackId": 0}), (200, {"ackId": 1})]
        target.answers.append((200, {"acks": {"0": True, "1": False}}))
        sink.put([sink.record("a", text) for text in ("x", "y")])
        offsets = {at: OffsetAndMetadata(2)}
        assert sink.task.pre_commit(offsets) == {at: OffsetAndMetadata(1)}
        assert json.loads(target.bodies[-1]) == {"acks": [0, 1]}
        channel = target.requests[0][3]["x-splunk-request-channel"]
        assert target.requests[-1][1] == f"/services/collector/ack?channel={channel}"
        target.answers = [(200, {"acks": {"1": True}})]
        assert sink.task.pre_commit(offsets) == offsets
    with sink_for(target, **config) as sink, pytest.raises(ConnectError, match="no ackId"):
        sink.send("a", "x")


def test_what_is_not_indexed_in_time_is_sent_again() -> None:
    record = SinkRecord("a", 0, value="x", offset=3)
    waiting = Waiting(server=0, ack_id=5, batch=Batch("/", b"", (record,)), since_ms=100)
    acks = Acknowledgements(timeout_ms=50)
    acks.sent(waiting)
    assert acks.take_late(149) == []
    assert (acks.count, acks.first_offsets()) == (1, {TopicPartition("a", 0): 3})
    assert acks.take_late(150) == [waiting]
    assert (acks.count, acks.ids(0)) == (0, [])
    acks.sent(waiting)
    acks.forget([TopicPartition("a", 0)])
    assert acks.count == 0


def test_servers_are_asked_in_turn(target: Target) -> None:
    with sink_for(target, hec_uri=f"http://127.0.0.1:1,{target.url}") as sink:
        for _ in range(3):
            sink.send("a", "x")
    assert len(target.bodies) == 3


@pytest.mark.parametrize(
    "setting",
    [
        {"splunk.indexes": "a,b,c"}, {"splunk.hec.json.event.enrichment": "x"},
        {"splunk.hec.uri": "ftp://x"},
    ],
)  # fmt: skip
def test_wrong_settings_are_named(setting: dict[str, str]) -> None:
    base = {"splunk.hec.uri": "http://h", "splunk.hec.token": "t", "topics": "a,b"}
    assert set(config_errors(SINK, {**base, **setting})) == set(setting)
