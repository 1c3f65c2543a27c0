"""What flows do beyond copying: both ways without loops, restarts, groups that move, commands."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from moldau.client import (
    Admin,
    Consumer,
    NewTopic,
    OffsetAndMetadata,
    Producer,
    TopicPartition,
)
from moldau.client.batches import BatchConsumer, FetchedBatch
from moldau.mirror.machine.offset_map import OffsetMap
from moldau.mirror.machine.records import Checkpoint
from moldau.mirror.machine.settings import FlowName
from moldau.mirror.moving import Moved, move_groups
from moldau.mirror.runner import read_flows
from moldau.wire.records import read_header
from support.cli import moldau_cli
from support.connect_workers import distributed_worker
from support.mirrors import (
    content,
    create,
    exactly_once,
    mirroring,
    properties,
    read,
    write,
)
from support.processes import ROOT
from support.waiting import eventually

from .conftest import Servers

MIRROR = "org.apache.kafka.connect.mirror.Mirror"
DOCUMENT = ROOT / "docs" / "multi-cluster.md"
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


@pytest.fixture(scope="module")
def two(servers: Servers) -> tuple[str, str]:
    return servers("moldau 1").bootstrap, servers("moldau 2").bootstrap


def send(bootstrap: str, topic: str, *values: str) -> None:
    with Producer({"bootstrap.servers": bootstrap}) as producer:
        for value in values:
            producer.send(topic, value.encode(), partition=0)


def values(records: list[Any]) -> list[str]:
    return [each.value.decode() for each in records]


def test_both_ways_with_prefixes_nothing_goes_round(two: tuple[str, str]) -> None:
    for each in two:
        create(each, NewTopic("both", 1, 1))
    made = properties({"P": two[0], "Q": two[1]}, "P->Q", "Q->P", topics=".*both")
    with mirroring(made):
        send(two[0], "both", "p1", "p2")
        send(two[1], "both", "q1")
        assert values(read(two[1], "P.both", 2)) == ["p1", "p2"]
        assert values(read(two[0], "Q.both", 1)) == ["q1"]
        eventually(
            lambda: _beats(two[1], "P.heartbeats") and _beats(two[0], "Q.heartbeats"),
            what="heartbeats that were copied",
        )
        with Admin({"bootstrap.servers": two[0]}) as admin:
            assert not [each for each in admin.list_topics() if "P.both" in each]


def _beats(bootstrap: str, topic: str) -> bool:
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        return topic in admin.list_topics()


@pytest.mark.long("another naming; with prefixes it is shown above")
def test_both_ways_under_the_same_names_nothing_goes_round(two: tuple[str, str]) -> None:
    for each in two:
        create(each, NewTopic("shared", 1, 1))
    made = exactly_once(
        properties({"I": two[0], "J": two[1]}, "I->J", "J->I", topics="shared")
        | {"replication.policy.class": IDENTITY}
    )
    wanted = set()
    with mirroring(made):
        for round in range(5):
            send(two[0], "shared", f"i{round}")
            send(two[1], "shared", f"j{round}")
            wanted |= {f"i{round}", f"j{round}"}
            for each in two:
                found = values(read(each, "shared", len(wanted)))
                assert sorted(found) == sorted(wanted), "each record once"
    # A new session reads everything again and must still know what is a copy.
    with mirroring(made):
        send(two[0], "shared", "last")
        assert "last" in values(read(two[1], "shared", len(wanted) + 1))
        assert len(read(two[0], "shared", len(wanted) + 1)) == len(wanted) + 1


def test_both_ways_under_the_same_names_needs_exactly_once(
    two: tuple[str, str], tmp_path: Path
) -> None:
    made = properties({"I": two[0], "J": two[1]}, "I->J", "J->I")
    file = write(tmp_path / "mm2.properties", made | {"replication.policy.class": IDENTITY})
    ended = moldau_cli("mirror", "start", str(file))
    assert ended.status == 1
    assert "exactly.once.source.support=enabled" in ended.err


def test_a_restart_copies_nothing_twice(two: tuple[str, str]) -> None:
    create(two[0], NewTopic("again", 2, 1))
    made = exactly_once(properties({"R": two[0], "S": two[1]}, "R->S", topics="again"))
    count = 0
    for _ in range(3):
        with mirroring(made) as running:
            with Producer({"bootstrap.servers": two[0]}) as producer:
                for _ in range(500):
                    producer.send("again", b"%d" % count, b"%d" % count)
                    count += 1
            read(two[1], "R.again", count)
            page = urllib.request.urlopen(running.url).read().decode()
            assert "mirrorsourceconnector_record_count{" in page.lower() or "record_count" in page
    assert content(read(two[1], "R.again", count)) == content(read(two[0], "again", count))


def test_groups_move_over_and_back_at_the_same_record(two: tuple[str, str], tmp_path: Path) -> None:
    """The drill on two clusters: names stay, the consumer always commits in the middle."""
    for each in two:
        create(each, NewTopic("drill", 1, 1))
    made = exactly_once(
        properties({"M": two[0], "N": two[1]}, "M->N", "N->M", topics="drill", groups="workers")
        | {"replication.policy.class": IDENTITY}
    )
    file = write(tmp_path / "mm2.properties", made)
    seen: list[str] = []
    with mirroring(made):
        send(two[0], "drill", *(f"m{each}" for each in range(100)))
        seen += _work(two[0], 60)
        read(two[1], "drill", 100)
        planned = _moved(file, "failover", "M", "N", "--dry-run")
        assert planned["done"] is False
        done = _moved(file, "failover", "M", "N")
        assert done["moves"] == planned["moves"]
        assert all(each["is_exact"] for each in done["moves"])
        send(two[1], "drill", *(f"n{each}" for each in range(100)))
        seen += _work(two[1], 90)
        read(two[0], "drill", 200)
        _moved(file, "failback", "N", "M")
        seen += _work(two[0], 50)
    assert seen == [f"m{each}" for each in range(100)] + [f"n{each}" for each in range(100)]


def _work(bootstrap: str, count: int) -> list[str]:
    """What the group `workers` reads next."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "workers",
        "enable.auto.commit": "false",
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
    }
    found: list[Any] = []
    with Consumer(settings) as consumer:
        consumer.subscribe(["drill"])
        eventually(
            lambda: found.extend(consumer.poll(0.2)) or len(found) >= count,
            what=f"{count} records",
        )
        found = found[:count]
        consumer.commit_sync({TopicPartition("drill", 0): found[-1].offset + 1})
    return values(found)


def _moved(file: Path, command: str, left: str, reached: str, *more: str) -> Any:
    ended = moldau_cli(
        "mirror", command, str(file), "--from", left, "--to", reached, "--json", *more
    )
    assert ended.status == 0, ended.out + ended.err
    return json.loads(ended.out)


@pytest.mark.long("another naming; groups move over and back above")
def test_a_move_under_the_same_names_waits_for_everything(two: tuple[str, str]) -> None:
    """Not only for what the group has read: else its records there and those that are written there
    afterwards would be in another order than here, and no offset mean the same on the way back."""
    for each in two:
        create(each, NewTopic("tail", 1, 1))
    made = exactly_once(properties({"T": two[0], "U": two[1]}, "T->U", "U->T", topics="tail"))
    made |= {"replication.policy.class": IDENTITY}
    send(two[0], "tail", *map(str, range(50)))
    with mirroring(made):
        read(two[1], "tail", 50)
    send(two[0], "tail", *map(str, range(50, 100)))
    with Admin({"bootstrap.servers": two[0]}) as admin:
        admin.alter_consumer_group_offsets(
            "tailors", {TopicPartition("tail", 0): OffsetAndMetadata(40)}
        )
    found: list[Moved] = []

    def move() -> None:
        flows = read_flows(made)
        how = move_groups(flows, left="T", reached="U", groups=["tailors"], wait_s=120.0)
        found.append(asyncio.run(how))

    moving = threading.Thread(target=move)
    moving.start()
    with mirroring(made):
        moving.join(120)
    assert [(each.to_offset, each.is_exact) for each in found[0].moves] == [(40, True)]
    with Consumer({"bootstrap.servers": two[1], "isolation.level": "read_committed"}) as consumer:
        place = TopicPartition("tail", 0)
        # And a marker after each transaction.
        assert consumer.end_offsets([place])[place] >= 100
    assert values(read(two[1], "tail", 100)) == list(map(str, range(100)))


@pytest.mark.long("another way to move; groups move over and back above")
def test_a_lost_cluster_is_left_by_its_checkpoints(two: tuple[str, str], tmp_path: Path) -> None:
    create(two[0], NewTopic("lost", 1, 1))
    with Admin({"bootstrap.servers": two[0]}) as admin:
        admin.alter_consumer_group_offsets(
            "survivors", {TopicPartition("lost", 0): OffsetAndMetadata(7)}
        )
    made = exactly_once(
        properties({"L": two[0], "K": two[1]}, "L->K", topics="lost", groups="survivors")
    )
    with mirroring(made):
        send(two[0], "lost", *(f"{each}" for each in range(20)))
        read(two[1], "L.lost", 20)
        # The first checkpoint may be from when fewer than seven records were copied.
        eventually(
            lambda: any(each.downstream_offset == 7 for each in _checkpoints(two[1])),
            what="a checkpoint at the group's offset",
        )
    # Nobody listens there.
    file = write(tmp_path / "mm2.properties", {**made, "L.bootstrap.servers": "127.0.0.1:1"})
    _moved(file, "failover", "L", "K", "--without-source")
    with Admin({"bootstrap.servers": two[1]}) as admin:
        found = admin.list_consumer_group_offsets("survivors")["survivors"]
    place = TopicPartition("L.lost", 0)
    assert found[place] is not None
    assert found[place].offset == 7


def _checkpoints(bootstrap: str) -> list[Checkpoint]:
    records = read(bootstrap, "L.checkpoints.internal", 1)
    return [Checkpoint.parse(each.key, each.value) for each in records]


def test_a_group_with_members_stays_and_the_reason_is_said(
    two: tuple[str, str], tmp_path: Path
) -> None:
    create(two[0], NewTopic("busy", 1, 1))
    made = properties({"U": two[0], "V": two[1]}, "U->V", topics="busy", groups="busy-group")
    file = write(tmp_path / "mm2.properties", made)
    with mirroring(made):
        send(two[0], "busy", "a", "b")
        read(two[1], "U.busy", 2)
        settings = {
            "bootstrap.servers": two[0],
            "group.id": "busy-group",
            "auto.offset.reset": "earliest",
        }
        with Consumer(settings) as consumer:
            consumer.subscribe(["busy"])
            eventually(lambda: consumer.poll(0.2), what="a record")
            consumer.commit_sync()
            ended = moldau_cli("mirror", "failover", str(file), "--from", "U", "--to", "V")
        assert ended.status == 1
        assert "busy-group stays: it has members in U: stop them first" in ended.out
        shown = moldau_cli("mirror", "status", str(file))
        assert shown.status == 0
        assert "U->V: heartbeat" in shown.out


def connectors(two: tuple[str, str], source: str, target: str, **more: str) -> dict[str, str]:
    """Settings for connectors that copy from the first cluster to the second."""
    bytes_ = "org.apache.kafka.connect.converters.ByteArrayConverter"
    return {
        "source.cluster.alias": source,
        "target.cluster.alias": target,
        "source.cluster.bootstrap.servers": two[0],
        "target.cluster.bootstrap.servers": two[1],
        "key.converter": bytes_,
        "value.converter": bytes_,
        "header.converter": bytes_,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        "emit.checkpoints.interval.seconds": "1",
    } | {key.replace("_", "."): value for key, value in more.items()}


def test_the_connectors_of_mirrormaker_run_in_connect(two: tuple[str, str]) -> None:
    create(two[0], NewTopic("linked", 2, 1))
    with Producer({"bootstrap.servers": two[0]}) as producer:
        for number in range(200):
            producer.send("linked", b"%d" % number, b"%d" % number, headers=[("h", b"x")])
    with Admin({"bootstrap.servers": two[0]}) as admin:
        middle = {TopicPartition("linked", each): OffsetAndMetadata(40) for each in range(2)}
        admin.alter_consumer_group_offsets("linkers", middle)
    common = connectors(two, "W", "X", topics="linked", groups="linkers", tasks_max="2")
    with distributed_worker(two[1], "mirror-workers") as worker:
        for kind in ("Source", "Checkpoint", "Heartbeat"):
            config = {**common, "connector.class": f"{MIRROR}{kind}Connector"}
            answer = worker.call("PUT", f"/connectors/{kind}/config", config)
            assert answer.status == 201, answer.body
        found = read(two[1], "W.linked", 200)
        assert content(found) == content(read(two[0], "linked", 200))
        checkpoints = read(two[1], "W.checkpoints.internal", 2)
        assert {each.key[:9] for each in checkpoints} == {b"\0\7linkers"}
        read(two[1], "heartbeats", 1)
        worker.wait_for("Source", "RUNNING", "RUNNING", "RUNNING")
        worker.wait_for("Heartbeat", "RUNNING", "RUNNING")


@pytest.mark.long("the same in another form; the map of a mirror is in test_copies")
def test_in_connect_the_map_is_written_with_the_records(two: tuple[str, str]) -> None:
    """Every copy is in the map once its transaction has ended, and nothing else is."""
    create(two[0], NewTopic("mapped", 1, 1))
    send(two[0], "mapped", *map(str, range(100)))
    config = connectors(two, "G", "H", topics="mapped", tasks_max="1") | {
        "connector.class": f"{MIRROR}SourceConnector",
        "consumer.isolation.level": "read_committed",
        "exactly.once.support": "required",
        "transaction.boundary": "poll",
    }
    once = {"exactly.once.source.support": "enabled"}
    with distributed_worker(two[1], "map-workers", **once) as worker:
        assert worker.call("PUT", "/connectors/map/config", config).status == 201
        copies = read(two[1], "G.mapped", 100)
    runs = OffsetMap()
    for record in read(two[1], "mm2-offset-map.G.internal", 1):
        runs.replay(record.key, record.value)
    known = runs.partition(TopicPartition("mapped", 0))
    for upstream, copy in enumerate(copies):
        found = known.downstream(upstream)
        assert found is not None
        assert (found.offset, found.is_exact) == (copy.offset, True)
    records, written = (
        _producers(two[1], topic) for topic in ("G.mapped", "mm2-offset-map.G.internal")
    )
    assert records == written, "each transaction wrote records and their map"


def _producers(bootstrap: str, topic: str) -> set[tuple[int, int]]:
    """The producers of a topic with their epochs; each transaction has an epoch of its own."""

    async def polled() -> set[tuple[int, int]]:
        consumer = BatchConsumer({"bootstrap.servers": bootstrap})
        place = TopicPartition(topic, 0)
        try:
            consumer.assign([place])
            consumer.seek(place, 0)
            found: set[tuple[int, int]] = set()
            end = (await consumer.end_offsets([place]))[place]
            while await consumer.position(place) < end:
                for each in (await consumer.poll_batches(0.2)).values():
                    headers = [read_header(batch.data) for batch in each.batches]
                    found |= {(each.producer_id, each.producer_epoch) for each in headers}
            return found
        finally:
            await consumer.close()

    return asyncio.run(polled())


@pytest.mark.long("two processes; the decision has unit tests")
def test_two_processes_share_the_tasks(two: tuple[str, str]) -> None:
    """The second takes over what the first leaves."""
    create(two[0], NewTopic("tasks", 4, 1))
    made = exactly_once(properties({"Y": two[0], "Z": two[1]}, "Y->Z", topics="tasks"))
    made["Y->Z.tasks.max"] = "2"
    with Producer({"bootstrap.servers": two[0]}) as producer, mirroring(made) as second:
        with mirroring(made) as first:
            flows = [each.service.flows[FlowName("Y", "Z")] for each in (first, second)]
            eventually(lambda: [len(each.copiers) for each in flows] == [1, 1], what="a task each")
            for number in range(400):
                producer.send("tasks", b"%d" % number, partition=number % 4)
            producer.flush()
            read(two[1], "Y.tasks", 400)
        for number in range(400, 800):
            producer.send("tasks", b"%d" % number, partition=number % 4)
        producer.flush()
        assert content(read(two[1], "Y.tasks", 800)) == content(read(two[0], "tasks", 800))


def test_a_policy_of_ones_own_names_topics_both_ways_without_loops(
    two: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The class that the page shows."""
    (program,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    (tmp_path / "my_mirror_policy.py").write_text(program)
    monkeypatch.syspath_prepend(tmp_path)
    for each in two:
        create(each, NewTopic("renamed", 1, 1))
    made = properties({"A": two[0], "B": two[1]}, "A->B", "B->A", topics="renamed.*")
    with mirroring(made | {"replication.policy.class": "my_mirror_policy.Suffix"}):
        send(two[0], "renamed", "a1", "a2")
        send(two[1], "renamed", "b1")
        assert values(read(two[1], "renamed-from-A", 2)) == ["a1", "a2"]
        assert values(read(two[0], "renamed-from-B", 1)) == ["b1"]
        with Admin({"bootstrap.servers": two[0]}) as admin:
            names = {each for each in admin.list_topics() if each.startswith("renamed")}
    assert names == {"renamed", "renamed-from-B"}


def test_a_throttle_holds(two: tuple[str, str]) -> None:
    """4 MB at 1 MB a second: a second's worth and one fetch come at once, the rest in its time."""
    create(two[0], NewTopic("slow", 1, 1))
    with Producer({"bootstrap.servers": two[0]}) as producer:
        for _ in range(400):
            producer.send("slow", b"x" * 10_000)
    made = properties({"C": two[0], "D": two[1]}, "C->D", topics="slow")
    began = time.monotonic()
    with mirroring(made | {"moldau.throttle.bytes.per.second": "1000000"}):
        read(two[1], "C.slow", 400)
    assert time.monotonic() - began > 1.8


def test_status_says_how_far_behind_in_records_and_seconds(
    two: tuple[str, str], tmp_path: Path
) -> None:
    create(two[0], NewTopic("behind", 1, 1))
    made = properties({"E": two[0], "F": two[1]}, "E->F", topics="behind", groups="laggards")
    file = write(tmp_path / "mm2.properties", made)
    send(two[0], "behind", "1", "2")
    with Admin({"bootstrap.servers": two[0]}) as admin:
        place = TopicPartition("behind", 0)
        admin.alter_consumer_group_offsets("laggards", {place: OffsetAndMetadata(1)})
    with mirroring(made):
        read(two[1], "E.behind", 2)
        read(two[1], "E.checkpoints.internal", 1)
    send(two[0], "behind", "3", "4", "5")

    def status() -> Any:
        ended = moldau_cli("mirror", "status", str(file), "--json")
        assert ended.status == 0, ended
        (flow,) = [each for each in json.loads(ended.out) if each["name"] == "E->F"]
        return flow

    def topic() -> Any:
        (found,) = [each for each in status()["topics"] if each["topic"] == "behind"]
        return found

    assert topic()["records_behind"] == 3
    eventually(lambda: 1.0 < topic()["seconds_behind"] < 600, what="a second of lag")
    (group,) = status()["checkpoints"]
    assert (group["group"], group["offset"], group["remote_offset"]) == ("laggards", 1, 1)
    # The source is gone; what the target knows is shown all the same.
    gone = {
        "E.bootstrap.servers": "127.0.0.1:1",
        "E.admin.default.api.timeout.ms": "1000",
        "E.admin.request.timeout.ms": "1000",
    }
    ended = moldau_cli("mirror", "status", str(write(tmp_path / "gone", {**made, **gone})))
    assert ended.status == 1
    assert "1 groups followed" in ended.out
    assert "E cannot be read" in ended.out


def test_large_batches_arrive_with_the_bytes_they_had(two: tuple[str, str]) -> None:
    """Compressed as they were; only the header is new."""
    create(two[0], NewTopic("packed", 1, 1))
    settings = {"bootstrap.servers": two[0], "compression.type": "lz4", "linger.ms": "50"}
    with Producer({**settings, "batch.size": "100000"}) as producer:
        for number in range(5000):
            producer.send("packed", b"%d" % number * 5)
    made = exactly_once(properties({"G": two[0], "H": two[1]}, "G->H", topics="packed"))
    with mirroring(made):
        read(two[1], "G.packed", 5000)
    sent, copied = (_payloads(two[0], "packed"), _payloads(two[1], "G.packed"))
    assert sent
    assert set(sent) <= set(copied)


def test_what_a_commit_writes_of_the_map_is_one_batch(two: tuple[str, str]) -> None:
    """Readers of the copy wait for a commit, and for every request of it."""
    partitions = 6
    create(two[0], NewTopic("together", partitions, 1))
    with Producer({"bootstrap.servers": two[0]}) as producer:
        for number in range(partitions):
            producer.send("together", b"x", partition=number)
    made = exactly_once(properties({"I": two[0], "J": two[1]}, "I->J", topics="together"))
    with mirroring(made):
        read(two[1], "I.together", partitions)
    counts = [batch.record_count for batch in _batches(two[1], "mm2-offset-map.I.internal")]
    assert sum(counts) >= partitions
    with Consumer({"bootstrap.servers": two[1]}) as consumer:
        place = TopicPartition("mm2-offset-map.I.internal", 0)
        # One batch and one marker for each transaction.
        assert consumer.end_offsets([place])[place] == sum(counts) + len(counts)


def _payloads(bootstrap: str, topic: str) -> list[bytes]:
    """What is behind the headers of batches that are too large to be combined."""
    found = [bytes(batch.data)[61:] for batch in _batches(bootstrap, topic)]
    return [each for each in found if len(each) > 5000]


def _batches(bootstrap: str, topic: str) -> list[FetchedBatch]:
    """All batches of the first partition, without markers."""

    async def polled() -> list[FetchedBatch]:
        consumer = BatchConsumer({"bootstrap.servers": bootstrap})
        place = TopicPartition(topic, 0)
        try:
            consumer.assign([place])
            consumer.seek(place, 0)
            found: list[FetchedBatch] = []
            end = (await consumer.end_offsets([place]))[place]
            while await consumer.position(place) < end:
                for each in (await consumer.poll_batches(0.2)).values():
                    found += each.batches
            return found
        finally:
            await consumer.close()

    return asyncio.run(polled())
