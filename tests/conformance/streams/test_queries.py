"""Interactive queries: local, by the instance that has the key, and over HTTP."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.streams import (
    FailureReason,
    KafkaStreams,
    KeyQuery,
    Materialized,
    PositionBound,
    RangeQuery,
    SessionWindows,
    State,
    StateQueryRequest,
    StreamsBuilder,
    TimeWindows,
    Topology,
    Window,
    Windowed,
)
from moldau.streams.errors import InvalidStateStoreError, InvalidStateStorePartitionError
from moldau.streams.hosts.query_server import QueryServer
from support.ports import free_port
from support.streams_embedded import Stage
from support.waiting import eventually

KEYS = [f"key{number}" for number in range(20)]


def topology(prefix: str) -> Topology:
    builder = StreamsBuilder()
    stream = builder.stream(f"{prefix}in", key_serde="string", value_serde="string")
    grouped = stream.group_by_key()
    grouped.count(store="counts")
    grouped.windowed_by(TimeWindows(size=1000, grace=60_000)).count(store="windowed")
    grouped.windowed_by(SessionWindows(inactivity_gap=500, grace=60_000)).count(store="sessions")
    builder.table(
        f"{prefix}prices",
        key_serde="string",
        value_serde="string",
        store=Materialized(name="prices", history=60_000),
    )
    builder.global_table(f"{prefix}names", key_serde="string", value_serde="string", store="names")
    return builder.build()


class Two:
    """Two instances, each with a query server."""

    def __init__(self, stage: Stage) -> None:
        self.prefix = prefix = f"{stage.new_id()}-"
        stage.create([f"{prefix}in", f"{prefix}prices"], partitions=2)
        stage.create([f"{prefix}names"])
        for timestamp in (0, 100, 1500):
            for key in KEYS:
                stage.producer.send(f"{prefix}in", b"x", key.encode(), timestamp=timestamp)
        for timestamp, price in ((10, b"1"), (20, b"2")):
            stage.producer.send(f"{prefix}prices", price, b"beer", timestamp=timestamp)
        stage.producer.send(f"{prefix}names", b"Praha", b"prg")
        stage.producer.flush()
        self.servers: list[QueryServer] = []
        self.streams: list[KafkaStreams] = []
        for number in range(2):
            made = KafkaStreams(
                topology(prefix),
                application_id=f"{prefix}app",
                bootstrap_servers=stage.bootstrap,
                application_server=f"127.0.0.1:{free_port()}",
                state_dir=str(stage.folder / f"{prefix}{number}"),
                heartbeat_interval_ms=200,
            )
            made.start()
            self.streams.append(made)
            self.servers.append(QueryServer(made).start())
        eventually(self.is_shared, what="both instances have counts")
        eventually(self.is_complete, what="all keys are counted")

    def is_shared(self) -> bool:
        return all(
            each.state is State.RUNNING and len(each.streams_metadata_for_store("counts")) == 2
            for each in self.streams
        )

    def is_complete(self) -> bool:
        try:
            rows = [row for each in self.streams for row in each.store("windowed").all()]
        except InvalidStateStoreError:
            return False
        return len(rows) == 2 * len(KEYS)

    def get(self, path: str, instance: int = 0) -> Any:
        with urllib.request.urlopen(f"{self.servers[instance].url}{path}", timeout=30) as answer:
            return json.load(answer)

    def close(self) -> None:
        for server in self.servers:
            server.close()
        for each in self.streams:
            each.close()


@pytest.fixture(scope="module")
def two(stage: Stage) -> Iterator[Two]:
    made = Two(stage)
    yield made
    made.close()


def owner(two: Two, key: str) -> KafkaStreams:
    where = two.streams[0].query_metadata_for_key("counts", key)
    return next(
        each for each in two.streams if each.settings.application_server == str(where.active_host)
    )


def read_in_order(two: Two) -> None:
    """Backwards and by ranges of keys, in each instance and in one partition alone."""
    for each in two.streams:
        for partition in each.store("counts").partitions:
            counts = each.store("counts", partitions=[partition])
            assert counts.reverse_all() == counts.all()[::-1]
            assert counts.reverse_range("key1", "key5") == counts.range("key1", "key5")[::-1]
            windows = each.store("windowed", partitions=[partition])
            assert windows.backward_all() == windows.all()[::-1]
            assert windows.backward_fetch_all(0, 999) == windows.fetch_all(0, 999)[::-1]
            some = windows.fetch_range("key1", "key5", 0, 9_999)
            assert windows.backward_fetch_range("key1", "key5", 0, 9_999) == some[::-1]
            assert {row[0].key for row in some} == {key for key, _ in counts.range("key1", "key5")}
            key = counts.all()[0][0]
            assert windows.backward_fetch(key, 0, 9_999) == windows.fetch(key, 0, 9_999)[::-1]
            sessions = each.store("sessions", partitions=[partition])
            assert sessions.fetch(key) == sessions.find_sessions(key, 0, 9_999)
            assert len(sessions.fetch(key)) == 2
            assert sessions.backward_fetch(key) == sessions.fetch(key)[::-1]
            late = sessions.backward_find_sessions(key, 0, 9_999)
            assert late == sessions.backward_fetch(key)
            bounds = key, key, 0, 9_999
            assert sessions.find_sessions_range(*bounds) == sessions.fetch(key)
            assert sessions.backward_find_sessions_range(*bounds) == late
        with pytest.raises(InvalidStateStorePartitionError, match="partition 9"):
            each.store("counts", partitions=[9]).get("key1")


def test_stores_are_read_where_they_are(two: Two) -> None:
    for key in KEYS:
        assert owner(two, key).store("counts").get(key) == (3, 1500)
    rows = [row for each in two.streams for row in each.store("counts").all()]
    assert sorted(rows) == sorted((key, (3, 1500)) for key in KEYS)
    read_in_order(two)
    one = owner(two, "key7").store("counts")
    assert one.range("key7", "key7") == [("key7", (3, 1500))]
    assert one.prefix_scan(b"key7") == [("key7", (3, 1500))]
    assert sum(each.store("counts").approximate_num_entries() for each in two.streams) == len(KEYS)


def test_windows_and_sessions(two: Two) -> None:
    local = owner(two, "key3")
    assert local.store("windowed").fetch("key3", 0, 5000) == [(0, (2, 100)), (1000, (1, 1500))]
    assert local.store("windowed").get("key3", 1000) == (1, 1500)
    sessions = local.store("sessions").find_sessions("key3", 0, 5000)
    assert sessions == [
        (Windowed("key3", Window(0, 100)), 2),
        (Windowed("key3", Window(1500, 1500)), 1),
    ]


def test_versions_and_global_stores(two: Two) -> None:
    found = [each.store("prices", stale=True) for each in two.streams]
    assert [price for each in found if (price := each.get_as_of("beer", 15))] == [("1", 10)]
    assert all(each.store("names").get("prg")[0] == "Praha" for each in two.streams)


def test_http_forwards_to_the_instance_that_has_the_key(two: Two) -> None:
    hosts = set()
    for key in KEYS:
        answers = [two.get(f"/state/counts/keys/{key}", number) for number in range(2)]
        assert [(each["value"], each["timestamp"]) for each in answers] == [(3, 1500)] * 2
        assert answers[0]["host"] == answers[1]["host"]
        assert answers[0]["lag"] >= 0
        hosts.add(answers[0]["host"])
    assert hosts == {each.settings.application_server for each in two.streams}


def test_http_lists_windows_entries_and_instances(two: Two) -> None:
    windows = two.get("/state/windowed/windows/key3?from=0&to=900")["windows"]
    assert windows == [{"start": 0, "value": 2, "timestamp": 100}]
    sessions = two.get("/state/sessions/sessions/key3", 1)["sessions"]
    assert [each["start"] for each in sessions] == [0, 1500]
    entries = two.get("/state/counts/entries")["entries"]
    assert {entry["key"] for entry in entries} == set(KEYS)
    assert len(two.get("/state/counts/entries?limit=3")["entries"]) == 3
    assert len(two.get("/instances")) == 2
    assert "counts" in two.get("/state")
    assert two.get("/state/prices/keys/beer?as_of=15")["value"] == "1"


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/state/nowhere/keys/a", 404, "no such store is registered"),
        ("/state/counts/keys/absent", 404, "has no key"),
        ("/state/counts/keys/a?serde=long", 400, "is no long"),
    ],
)
def test_http_says_what_is_wrong(two: Two, path: str, status: int, message: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as raised:
        two.get(path)
    assert raised.value.code == status
    assert message in json.load(raised.value)["message"]


def test_the_instance_of_a_key_by_a_partitioner(two: Two) -> None:
    def of(partition: Any) -> int:
        return (
            two.streams[0]
            .query_metadata_for_key("counts", "key1", partitioner=lambda *_: partition)
            .partition
        )

    by_default = two.streams[0].query_metadata_for_key("counts", "key1").partition
    assert (of(0), of([1]), of(None)) == (0, 1, by_default)
    with pytest.raises(ValueError, match="KeyQueryMetadata for key should be a singleton set"):
        of([0, 1])


def test_stores_that_cannot_be_queried(two: Two) -> None:
    with pytest.raises(InvalidStateStoreError, match="no such store is registered in the topology"):
        two.streams[0].store("nowhere")
    unstarted = KafkaStreams(
        topology("x-"), application_id="unstarted", bootstrap_servers="127.0.0.1:1"
    )
    with pytest.raises(InvalidStateStoreError, match="has not been started"):
        unstarted.store("counts")


def test_http_has_the_topology_and_what_its_nodes_process(two: Two) -> None:
    with urllib.request.urlopen(f"{two.servers[0].url}/topology") as answer:
        found = json.load(answer)
    assert found["topology"].startswith("Topologies:")
    named = set(re.findall(r"(?:Source|Processor|Sink): (\S+)", found["topology"]))
    # Nodes that fill global stores are not measured.
    assert named - set(found["nodes"]) == {"KSTREAM-SOURCE-0000000006", "KTABLE-SOURCE-0000000007"}
    assert any(each["records"] and each["rate"] for each in found["nodes"].values())


def test_http_shows_the_topology_with_rates(two: Two) -> None:
    with urllib.request.urlopen(f"{two.servers[0].url}/topology.svg") as answer:
        assert answer.headers["Content-Type"] == "image/svg+xml"
        picture = answer.read().decode()
    assert "KSTREAM-SOURCE-0000000000" in picture
    assert " records/s" in picture


def test_queries_as_objects_say_where_they_stand(two: Two) -> None:
    found: dict[str, int] = {}
    reasons = set()
    for running in two.streams:
        everything = running.query(StateQueryRequest(store="counts", query=RangeQuery()))
        for partition, result in everything.partition_results.items():
            assert result.position is not None
            assert partition in result.position.partition_positions(f"{two.prefix}in")
            found |= dict(result.result or ())
        request = StateQueryRequest(
            store="counts", query=KeyQuery("key1"), partitions=frozenset({0, 1, 9})
        )
        asked = running.query(request).partition_results
        reasons |= {result.failure_reason for result in asked.values()}
        bound = everything.position.with_component(f"{two.prefix}in", 0, 10**9)
        late = StateQueryRequest(
            store="counts", query=RangeQuery(), position_bound=PositionBound.at(bound)
        )
        for partition, result in running.query(late).partition_results.items():
            assert (result.failure_reason is FailureReason.NOT_UP_TO_BOUND) == (partition == 0)
    assert found == dict.fromkeys(KEYS, 3)
    assert reasons == {None, FailureReason.NOT_PRESENT, FailureReason.DOES_NOT_EXIST}
    with pytest.raises(InvalidStateStoreError):
        two.streams[0].query(StateQueryRequest(store="nowhere", query=RangeQuery()))
    names = StateQueryRequest(store="names", query=KeyQuery("prg"))
    assert two.streams[0].query(names).global_result.result == "Praha"  # type: ignore[union-attr]
