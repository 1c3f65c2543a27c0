"""MirrorMaker 2 itself beside ours: the same bytes and names, each reads what the other wrote, and
each continues where the other stopped."""

from __future__ import annotations

import base64
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from moldau.client import (
    Admin,
    NewTopic,
    OffsetAndMetadata,
    OffsetSpec,
    Producer,
    TopicPartition,
)
from moldau.mirror.machine.policies import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
)
from moldau.mirror.machine.records import Checkpoint, Heartbeat, OffsetSync
from support.java import JAVA, run_program
from support.mirrors import content, create, exactly_once, mirroring, properties, read, write
from support.processes import kafka_missing
from support.waiting import eventually

from .conftest import Servers

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=kafka_missing() or "")

TOPICS = ("orders", "A.orders", "B.A.orders", "heartbeats", "A.heartbeats", "B_A_heartbeats",
          "__consumer_offsets", ".x", "x.", "x..y", "A_orders", "A--orders", "--", "a.b.c.",
          "mm2-offsets.A.internal", "mm2-configs_A_internal", "A.checkpoints.internal",
          "A_checkpoints_internal", "my.internal", "mm2.internal")  # fmt: skip


def test_records_have_the_bytes_of_java() -> None:
    found: dict[str, list[bytes]] = {}
    for line in run_program("MirrorRecords.java", "bytes").splitlines():
        name, data = line.split(" ")
        found.setdefault(name, []).append(base64.b64decode(data))
    place = TopicPartition("größe.orders", 7)
    for name, record in (
        ("checkpoint", Checkpoint("gruppe-ü", place, 1 << 40, 12345, "meta ü")),
        ("heartbeat", Heartbeat("A", "büro", 1_700_000_000_123)),
        ("sync", OffsetSync(place, 1 << 33, 5)),
    ):
        assert found[name] == [record.key(), record.value()]
        assert type(record).parse(*found[name]) == record


def test_policies_name_topics_as_java() -> None:
    policies: Mapping[str, type[ReplicationPolicy]] = {
        each.__name__: each for each in (DefaultReplicationPolicy, IdentityReplicationPolicy)
    }
    lines = run_program("MirrorRecords.java", "names", *TOPICS).splitlines()
    assert len(lines) == 2 * 3 * len(TOPICS)
    for line in lines:
        name, separator, topic, *wanted = line.split("\t")
        policy = policies[name]()
        settings = {"replication.policy.separator": separator, "source.cluster.alias": "A"}
        policy.configure(settings)
        found = (
            policy.format_remote_topic("A", topic),
            _text(policy.topic_source(topic)),
            _text(policy.upstream_topic(topic)),
            policy.original_topic(topic),
            str(policy.is_heartbeats_topic(topic)).lower(),
            str(policy.is_checkpoints_topic(topic)).lower(),
            str(policy.is_mm2_internal_topic(topic)).lower(),
            str(policy.is_internal_topic(topic)).lower(),
            policy.offset_syncs_topic("A"),
            policy.checkpoints_topic("A"),
        )
        assert list(found) == wanted, line


def _text(name: str | None) -> str:
    return "null" if name is None else name


@contextmanager
def java_mirror(folder: Path, made: Mapping[str, str]) -> Iterator[None]:
    """MirrorMaker 2 from its jars, as connect-mirror-maker.sh runs it."""
    file = write(folder / "mm2.properties", {**made, "offset.flush.interval.ms": "500"})
    log = folder / "mm2.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*JAVA, "org.apache.kafka.connect.mirror.MirrorMaker", str(file)],
            stdout=output,
            stderr=output,
        )
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def send(bootstrap: str, topic: str, first: int, count: int) -> None:
    with Producer({"bootstrap.servers": bootstrap}) as producer:
        for number in range(first, first + count):
            producer.send(topic, b"%d" % number, b"k%d" % number)


def commit_ends(bootstrap: str, topic: str, group: str) -> None:
    places = [TopicPartition(topic, each) for each in range(2)]
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        ends = admin.list_offsets(dict.fromkeys(places, OffsetSpec.latest()))
        offsets = {each: OffsetAndMetadata(ends[each].offset) for each in places}
        admin.alter_consumer_group_offsets(group, offsets)


def _checkpoints(bootstrap: str) -> list[Checkpoint]:
    records = read(bootstrap, "S.checkpoints.internal", 1)
    return [Checkpoint.parse(each.key, each.value) for each in records]


@pytest.mark.long("starts MirrorMaker 2, a JVM that takes half a minute, on two brokers")
def test_java_and_moldau_take_over_from_each_other(servers: Servers, tmp_path: Path) -> None:
    source, target = (servers(f"moldau {each}").bootstrap for each in (1, 2))
    create(source, NewTopic("bills", 2, 1))
    made = exactly_once(
        properties({"S": source, "T": target}, "S->T", topics="bills", groups="payers")
    )
    made |= {"offset.lag.max": "0", "S.consumer.isolation.level": "read_committed"}
    send(source, "bills", 0, 300)
    with java_mirror(tmp_path, made):
        read(target, "S.bills", 300, seconds_max=120)
        # It only knows where the last records are, so the group has to be at the end.
        commit_ends(source, "bills", "payers")
        checkpoints = read(target, "S.checkpoints.internal", 2, seconds_max=120)
        syncs = read(source, "mm2-offset-syncs.T.internal", 2)
        beats = read(target, "heartbeats", 2)
    assert {Checkpoint.parse(r.key, r.value).group_id for r in checkpoints} == {"payers"}
    assert {OffsetSync.parse(r.key, r.value).partition.topic for r in syncs} <= {
        "bills",
        "heartbeats",
    }
    assert Heartbeat.parse(beats[0].key, beats[0].value).target == "T"

    send(source, "bills", 300, 300)
    with mirroring(made):
        read(target, "S.bills", 600)
        # What its own client makes of our checkpoints.
        translated = eventually(
            lambda: (
                len(
                    found := run_program(
                        "MirrorRecords.java", "translate", target, "S", "payers"
                    ).splitlines()
                )
                == 2
                and found
            ),
            what="translateOffsets",
        )
        assert "S" in run_program("MirrorRecords.java", "upstream", target)
    assert sorted(line.split()[0] for line in translated) == ["S.bills-0", "S.bills-1"]

    # A group that Java follows for the first time, at an offset that only our syncs know.
    commit_ends(source, "bills", "newcomers")
    made["groups"] = "payers,newcomers"
    with java_mirror(tmp_path, made):
        eventually(
            lambda: "newcomers" in {each.group_id for each in _checkpoints(target)},
            what="Java's checkpoint by offset syncs of ours",
            seconds_max=120,
        )
        send(source, "bills", 600, 300)
        read(target, "S.bills", 900, seconds_max=120)
    found, wanted = read(target, "S.bills", 900), read(source, "bills", 900)
    assert content(found) == content(wanted)
