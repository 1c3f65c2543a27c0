"""Several instances of a registry: one writes, the others forward, and another takes over."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import Consumer, TopicPartition
from moldau.testing import Broker, wait_until
from support.registry.processes import RegistryProcess

SESSION_MS = 6_000


def avro(name: str) -> str:
    return json.dumps({"type": "record", "name": name, "fields": [{"name": "a", "type": "string"}]})


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as found:
        yield found


def instance(broker: Broker, folder: Path, name: str) -> RegistryProcess:
    return RegistryProcess(
        folder,
        name,
        {
            "kafkastore.bootstrap.servers": broker.bootstrap_servers,
            "kafkagroup.session.timeout.ms": str(SESSION_MS),
            "kafkagroup.heartbeat.interval.ms": "500",
            "leader.read.timeout.ms": "10000",
            "leader.connect.timeout.ms": "2000",
        },
    )


def split(one: RegistryProcess, two: RegistryProcess) -> tuple[RegistryProcess, RegistryProcess]:
    """The primary, and the other."""
    wait_until(lambda: one.is_primary != two.is_primary, timeout=30)
    return (one, two) if one.is_primary else (two, one)


def test_the_other_instance_forwards_and_sees_what_it_wrote(broker: Broker, tmp_path: Path) -> None:
    with instance(broker, tmp_path, "one") as one, instance(broker, tmp_path, "two") as two:
        _, other = split(one, two)
        registered = other.client.register("orders-value", avro("Order"))
        assert registered.status == 200
        found = other.client.get("/subjects/orders-value/versions/latest").json
        assert found["id"] == registered.json["id"]
        refused = other.client.register("orders-value", "nonsense")
        assert (refused.status, refused.json["error_code"]) == (422, 42201)
        assert other.client.ask("DELETE", "/subjects/orders-value").json == [1]
        assert other.client.ask("PUT", "/config", {"compatibility": "FULL"}).json == {
            "compatibility": "FULL"
        }
        assert other.client.get("/subjects").json == []


@pytest.mark.long("kills a primary under load; hand-over and fencing are shown in this file")
def test_nothing_is_lost_when_the_primary_is_killed_under_load(
    broker: Broker, tmp_path: Path
) -> None:
    with instance(broker, tmp_path, "one") as one, instance(broker, tmp_path, "two") as two:
        primary, other = split(one, two)
        answered: dict[str, int] = {}
        stop = threading.Event()

        def register(worker: int) -> None:
            number = 0
            while not stop.is_set():
                subject = f"load-{worker}-{number}"
                try:
                    response = other.client.register(subject, avro(f"Load{worker}x{number}"))
                except OSError:
                    continue
                if response.status == 200:
                    answered[subject] = response.json["id"]
                    number += 1

        workers = [threading.Thread(target=register, args=(each,)) for each in range(3)]
        for each in workers:
            each.start()
        try:
            wait_until(lambda: len(answered) >= 100, timeout=30)
            primary.kill()
            before = len(answered)
            wait_until(lambda: other.is_primary, timeout=30)
            wait_until(lambda: len(answered) >= before + 100, timeout=30)
        finally:
            stop.set()
            for each in workers:
                each.join(30)
        assert len(set(answered.values())) == len(answered)
        with instance(broker, tmp_path, "three") as third:
            for subject, id in answered.items():
                assert third.client.get(f"/subjects/{subject}/versions/latest").json["id"] == id


def test_a_primary_that_comes_back_too_late_writes_nothing(broker: Broker, tmp_path: Path) -> None:
    with instance(broker, tmp_path, "one") as one, instance(broker, tmp_path, "two") as two:
        primary, other = split(one, two)
        assert primary.client.register("early", avro("Early")).json["id"] == 1
        primary.pause()
        try:
            wait_until(lambda: other.is_primary, timeout=30)
            assert other.client.register("late", avro("Late")).json["id"] == 2
        finally:
            primary.resume()
        # Whether it still takes itself for the primary or not: no id is given out twice.
        response = primary.client.register("later", avro("Later"))
        assert response.status in (200, 500), response.text
        if response.status == 200:
            assert response.json["id"] == 3
        wait_until(
            lambda: primary.client.register("last", avro("Last")).status == 200,
            timeout=30,
        )
        for each in (primary, other):
            ids = {body["subject"]: body["id"] for body in each.client.get("/schemas").json}
            assert len(set(ids.values())) == len(ids)
            assert (ids["early"], ids["late"]) == (1, 2)


def test_a_stopped_primary_hands_over_at_once(broker: Broker, tmp_path: Path) -> None:
    with instance(broker, tmp_path, "one") as one, instance(broker, tmp_path, "two") as two:
        primary, other = split(one, two)
        primary.__exit__()
        wait_until(lambda: other.is_primary, timeout=SESSION_MS / 2000)
        assert other.client.register("a", avro("A")).status == 200


def test_ids_are_not_given_out_again_after_compaction(broker: Broker, tmp_path: Path) -> None:
    with instance(broker, tmp_path, "one") as one:
        assert one.client.register("gone", avro("Gone")).json["id"] == 1
        assert one.client.ask("DELETE", "/subjects/gone").status == 200
        assert one.client.ask("DELETE", "/subjects/gone?permanent=true").status == 200
    # What compaction leaves of a tombstone in the end: nothing. The last NOOP keeps the maximum.
    partition = TopicPartition("_schemas", 0)
    with Consumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        consumer.assign([partition])
        consumer.seek_to_beginning([partition])
        end = consumer.end_offsets([partition])[partition]
        last: dict[bytes, bytes | None] = {}
        while consumer.position(partition) < end:
            for record in consumer.poll(1.0):
                last[record.key] = record.value
    noop = json.loads(last[b'{"keytype":"NOOP","magic":0}'] or b"")
    assert noop["maxIds"] == {".": 1}
