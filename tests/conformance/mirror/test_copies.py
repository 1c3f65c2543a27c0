"""Copies between clusters of Moldau and Apache Kafka, in all four directions."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import (
    Admin,
    AlterConfigOp,
    ConfigResource,
    NewTopic,
    OffsetAndMetadata,
    Producer,
    TopicPartition,
)
from moldau.client.admin.acl_values import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePattern,
    ResourceType,
)
from support.cli import moldau_cli
from support.mirrors import (
    content,
    create,
    exactly_once,
    mirroring,
    properties,
    read,
    read_at,
    write,
)
from support.repeats import mostly_long
from support.waiting import eventually

from .conftest import Servers

COUNT = 3000
#: Recent, or the brokers' retention deletes the records before they are copied.
START_MS = time.time_ns() // 1_000_000 - 60_000


def fill(bootstrap: str, topic: str) -> list[int]:
    """Records in batches of all kinds: sizes, compressions, transactions, also aborted ones."""
    lots = random.Random(5)
    number = 0

    def send(producer: Producer, count: int) -> None:
        nonlocal number
        for _ in range(count):
            key = None if number % 7 == 0 else b"k%d" % (number % 50)
            value = None if number % 11 == 0 and key else b"%06d" % number * lots.randrange(1, 30)
            headers = [("h", b"%d" % number), ("empty", None)] if number % 3 == 0 else []
            at = START_MS + number
            producer.send(topic, value, key, timestamp=at, headers=headers)
            number += 1

    for codec in ("none", "gzip", "lz4", "zstd", "snappy"):
        settings = {"bootstrap.servers": bootstrap, "compression.type": codec}
        with Producer(settings) as producer:
            send(producer, COUNT // 10)
            producer.flush()
            for _ in range(20):
                send(producer, COUNT // 200)
                producer.flush()
    committed = number
    settings = {"bootstrap.servers": bootstrap, "transactional.id": f"fill-{topic}"}
    with Producer(settings) as producer:
        producer.init_transactions()
        for is_kept in (True, False, True):
            producer.begin_transaction()
            send(producer, 40)
            if is_kept:
                producer.commit_transaction()
                committed += 40
            else:
                producer.flush()
                producer.abort_transaction()
    return [committed, number]


@pytest.fixture(
    scope="module",
    params=mostly_long(
        ["moldau 1,moldau 2", "kafka 1,moldau 1", "moldau 1,kafka 1", "kafka 1,kafka 2"],
        "another direction",
        keep=2,
    ),
)
def pair(request: pytest.FixtureRequest, servers: Servers) -> Iterator[tuple[str, str, str]]:
    """(source, target, name of the source cluster), with a group that is in the middle."""
    source, target = (servers(each).bootstrap for each in request.param.split(","))
    alias = request.param.replace(" ", "").replace(",", "-")
    topic = f"{alias}-orders"
    create(source, NewTopic(topic, 3, 1, configs={"retention.ms": "123456789"}))
    count, _ = fill(source, topic)
    with Admin({"bootstrap.servers": source}) as admin:
        middle = {TopicPartition(topic, each): OffsetAndMetadata(333 + each) for each in range(3)}
        admin.alter_consumer_group_offsets(f"g-{alias}", middle)
    with mirroring({**_flow(source, target, alias), "sync.group.offsets.enabled": "true"}):
        read(target, f"{alias}.{topic}", count)
        yield source, target, alias


def _flow(source: str, target: str, alias: str) -> dict[str, str]:
    topics, groups = f"{alias}-orders", f"g-{alias}"
    clusters = {alias: source, "T": target}
    return exactly_once(properties(clusters, f"{alias}->T", topics=topics, groups=groups))


def test_every_committed_record_is_there_once_and_unchanged(pair: tuple[str, str, str]) -> None:
    source, target, alias = pair
    wanted = read(source, f"{alias}-orders", 1)
    wanted = read(source, f"{alias}-orders", len(wanted))
    count = COUNT + 80
    assert content(read(target, f"{alias}.{alias}-orders", count)) == content(
        read(source, f"{alias}-orders", count)
    )


def test_a_group_continues_at_the_same_record(pair: tuple[str, str, str]) -> None:
    source, target, alias = pair
    topic = f"{alias}-orders"
    with Admin({"bootstrap.servers": target}) as admin:
        group = f"g-{alias}"
        found = eventually(
            lambda: len(found := _offsets(admin, group)) == 3 and found,
            what="the group's offsets in the target",
        )
    for number in range(3):
        mine = read_at(source, TopicPartition(topic, number), 333 + number)
        place = TopicPartition(f"{alias}.{topic}", number)
        theirs = read_at(target, place, found[place].offset)
        assert (theirs.key, theirs.value, theirs.timestamp) == (
            mine.key,
            mine.value,
            mine.timestamp,
        )


def test_the_command_moves_a_group(pair: tuple[str, str, str], tmp_path: Path) -> None:
    """To the offsets that the sync has found, and exactly."""
    source, target, alias = pair
    file = write(tmp_path / "mm2.properties", _flow(source, target, alias))
    words = ("--from", alias, "--to", "T", "--json")
    for more in (("--dry-run",), ()):
        ended = moldau_cli("mirror", "failover", str(file), *words, *more)
        assert ended.status == 0, ended
        found = json.loads(ended.out)
        assert found["done"] is not bool(more)
        assert [each["is_exact"] for each in found["moves"]] == [True] * 3
        offsets = {TopicPartition(*each["reached"]): each["to_offset"] for each in found["moves"]}
    with Admin({"bootstrap.servers": target}) as admin:
        there = _offsets(admin, f"g-{alias}")
    assert {key: each.offset for key, each in there.items()} == offsets


def _offsets(admin: Admin, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
    found = admin.list_consumer_group_offsets({group: None}, check=False).values_by_key
    return {key: each for key, each in found.get(group, {}).items() if each is not None}


def test_settings_partitions_and_acls_follow(pair: tuple[str, str, str]) -> None:
    source, target, alias = pair
    topic = f"{alias}-orders"
    remote = ConfigResource.topic(f"{alias}.{topic}")
    entry = AccessControlEntry("User:reader", "*", AclOperation.ALL, AclPermissionType.ALLOW)
    with (
        Admin({"bootstrap.servers": source}) as here,
        Admin({"bootstrap.servers": target}) as there,
    ):
        assert there.describe_configs([remote])[remote]["retention.ms"].value == "123456789"
        change = [
            AlterConfigOp.set("retention.ms", "77777777"),
            AlterConfigOp.set("min.insync.replicas", "1"),
        ]
        here.incremental_alter_configs({ConfigResource.topic(topic): change})
        here.create_acls([AclBinding(ResourcePattern(ResourceType.TOPIC, topic), entry)])
        here.create_partitions({topic: 4})

        def follows() -> bool:
            configs = there.describe_configs([remote])[remote]
            partitions = there.describe_topics([remote.name])[remote.name].partitions
            acls = there.describe_acls(AclBindingFilter.any())
            wanted = AclBinding(
                ResourcePattern(ResourceType.TOPIC, remote.name),
                entry._replace(operation=AclOperation.READ),
            )
            return (
                configs["retention.ms"].value == "77777777"
                and len(partitions) == 4
                and wanted in acls
            )

        eventually(follows, what="settings, partitions and ACLs in the target")
    with Producer({"bootstrap.servers": source}) as producer:
        producer.send(topic, b"new", partition=3).result(10)
    eventually(
        lambda: any(each.partition == 3 for each in read(target, remote.name, COUNT + 81)),
        what="the record of the new partition",
    )
