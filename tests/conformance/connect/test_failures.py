"""What fails is retried, skipped, logged or sent to a dead-letter topic; exactly once holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, Consumer, NewTopic, Producer
from support.connect_plugins import Target
from support.connect_workers import WorkerUnderTest, distributed_worker, standalone_worker
from support.processes import BrokerProcess
from support.repeats import mostly_long
from support.waiting import eventually

TARGET, NUMBERS = "support.connect_plugins.Target", "support.connect_plugins.Numbers"
JSON = {
    "value.converter": "JsonConverter",
    "value.converter.schemas.enable": "false",
    "errors.deadletterqueue.topic.replication.factor": "1",
}


@pytest.fixture(scope="module")
def worker(
    broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WorkerUnderTest]:
    with standalone_worker(broker.bootstrap, tmp_path_factory.mktemp("connect")) as found:
        yield found


def send(bootstrap: str, topic: str, *values: bytes) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
    with Producer(bootstrap_servers=bootstrap) as producer:
        for value in values:
            producer.send(topic, value, key=b"k", headers=[("h", b"1")])


def read(bootstrap: str, topic: str, count: int, *, isolation: str = "read_uncommitted") -> Any:
    found: list[Any] = []

    def enough() -> bool:
        found.extend(consumer.poll(0.5))
        return len(found) >= count

    with Consumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", isolation_level=isolation
    ) as consumer:
        eventually(lambda: consumer.partitions_for(topic), what=f"the topic {topic}")
        consumer.assign([(topic, each.partition) for each in consumer.partitions_for(topic)])
        eventually(enough, what=f"{count} records in {topic}, not {len(found)}")
    return found


def create(worker: WorkerUnderTest, name: str, **config: str) -> None:
    given = {key.replace("_", "."): value for key, value in config.items()}
    made = worker.call("PUT", f"/connectors/{name}/config", {**given, "name": name})
    assert made.status in (200, 201), made.body


def test_bad_records_go_to_the_dead_letter_topic(
    worker: WorkerUnderTest, broker: BrokerProcess
) -> None:
    send(broker.bootstrap, "mail", b'{"a": 1}', b"no json", b'{"a": 2}')
    create(
        worker,
        "mailer",
        connector_class=TARGET,
        topics="mail",
        errors_tolerance="all",
        errors_deadletterqueue_topic_name="mail-dead",
        errors_deadletterqueue_context_headers_enable="true",
        **JSON,
    )
    (dead,) = read(broker.bootstrap, "mail-dead", 1)
    assert (dead.key, dead.value) == (b"k", b"no json")
    headers = {name: value and value.decode() for name, value in dead.headers}
    trace = headers.pop("__connect.errors.exception.stacktrace")
    assert "DataError" in trace
    message = headers.pop("__connect.errors.exception.message")
    assert "serialization error" in message
    prefix = "__connect.errors."
    assert headers == {
        "h": "1",
        f"{prefix}topic": "mail",
        f"{prefix}partition": "0",
        f"{prefix}offset": "1",
        f"{prefix}connector.name": "mailer",
        f"{prefix}task.id": "0",
        f"{prefix}stage": "VALUE_CONVERTER",
        f"{prefix}class.name": "moldau.connect.converters.simple.JsonConverter",
        f"{prefix}exception.class.name": "org.apache.kafka.connect.errors.DataException",
    }
    eventually(lambda: Target.received.get("mailer") == [{"a": 1}, {"a": 2}], what="the others")


def test_without_tolerance_a_bad_record_ends_the_task(
    worker: WorkerUnderTest, broker: BrokerProcess
) -> None:
    send(broker.bootstrap, "strict", b"no json")
    create(worker, "strict", connector_class=TARGET, topics="strict", **JSON)
    worker.wait_for("strict", "RUNNING", "FAILED")
    trace = worker.call("GET", "/connectors/strict/tasks/0/status").body["trace"]
    assert "Tolerance exceeded in error handler" in trace


def test_a_target_that_is_down_is_tried_again(
    worker: WorkerUnderTest, broker: BrokerProcess
) -> None:
    """Not dead-lettered, and nothing is lost or doubled."""
    Target.down["patient"] = 5
    send(broker.bootstrap, "patient", *(b"%d" % n for n in range(20)))
    create(
        worker,
        "patient",
        connector_class=TARGET,
        topics="patient",
        errors_tolerance="all",
        errors_deadletterqueue_topic_name="patient-dead",
        **JSON,
    )
    eventually(lambda: Target.received.get("patient") == list(range(20)), what="all records")
    assert Target.down["patient"] == 0
    assert worker.state_of("patient")["tasks"] == ["RUNNING"]
    with Consumer(bootstrap_servers=broker.bootstrap) as consumer:
        assert consumer.end_offsets([("patient-dead", 0)]) == {("patient-dead", 0): 0}


def test_a_sink_that_keeps_its_own_offsets(worker: WorkerUnderTest, broker: BrokerProcess) -> None:
    """What it sets in `open` is where it begins: nothing before that is put."""
    Target.begin["own"] = 3
    send(broker.bootstrap, "own", *(b"%d" % n for n in range(6)))
    create(worker, "own", connector_class=TARGET, topics="own", **JSON)
    eventually(lambda: Target.received.get("own") == [3, 4, 5], what="the last three")


def test_a_sink_pauses_its_partitions(worker: WorkerUnderTest, broker: BrokerProcess) -> None:
    # First, for the connector's consumer creates a topic that is not there.
    send(broker.bootstrap, "pausing", b'"pause"')
    create(worker, "pausing", connector_class=TARGET, topics="pausing", **JSON)
    eventually(lambda: Target.received.get("pausing") == ["pause"], what="the first record")
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(5):
            producer.send("pausing", b"%d" % number)
    eventually(
        lambda: Target.received["pausing"] == ["pause", *range(5)], what="those of the pause"
    )
    assert worker.state_of("pausing")["tasks"] == ["RUNNING"]


@pytest.mark.parametrize("way", ["report", "errors.put.record.by.record"])
def test_records_that_put_refuses(worker: WorkerUnderTest, broker: BrokerProcess, way: str) -> None:
    """Reported by the task itself, or found by the worker record by record."""
    name = f"refused-{way.partition('.')[0]}"
    send(broker.bootstrap, name, b'"good"', b'"bad"', b'"fine"')
    create(
        worker,
        name,
        connector_class=TARGET,
        topics=name,
        errors_tolerance="all",
        errors_deadletterqueue_topic_name=f"{name}-dead",
        errors_deadletterqueue_context_headers_enable="true",
        **{way: "true"},
        **JSON,
    )
    (dead,) = read(broker.bootstrap, f"{name}-dead", 1)
    assert dict(dead.headers)["__connect.errors.stage"] == b"TASK_PUT"
    eventually(lambda: Target.received.get(name) == ["good", "fine"], what="the good ones")
    assert worker.state_of(name)["tasks"] == ["RUNNING"]


def test_a_task_has_no_reporter_whose_reports_nobody_would_see(
    worker: WorkerUnderTest, broker: BrokerProcess
) -> None:
    """As in Kafka: with neither a dead-letter topic nor a log the task must not skip the record."""
    send(broker.bootstrap, "unseen", b'"good"', b'"bad"')
    create(
        worker,
        "unseen",
        connector_class=TARGET,
        topics="unseen",
        errors_tolerance="all",
        report="true",
        **JSON,
    )
    worker.wait_for("unseen", "RUNNING", "FAILED")
    trace = worker.call("GET", "/connectors/unseen/tasks/0/status").body["trace"]
    assert "refused" in trace


def test_a_source_has_a_dead_letter_topic_too(
    worker: WorkerUnderTest, broker: BrokerProcess
) -> None:
    """A field that does not exist cannot be extracted: all records fail, the task goes on."""
    create(
        worker,
        "lossy",
        connector_class=NUMBERS,
        topic="lossy",
        limit="5",
        transforms="cast",
        transforms_cast_type="Cast$Value",
        transforms_cast_spec="int8",
        errors_tolerance="all",
        errors_deadletterqueue_topic_name="lossy-dead",
        errors_deadletterqueue_topic_replication_factor="1",
        errors_deadletterqueue_context_headers_enable="true",
    )
    dead = read(broker.bootstrap, "lossy-dead", 5)
    assert [json.loads(each.value) for each in dead] == [f"0:{n}" for n in range(5)]
    assert dict(dead[0].headers)["__connect.errors.stage"] == b"TRANSFORMATION"
    assert worker.state_of("lossy")["tasks"] == ["RUNNING"]


@pytest.mark.parametrize(
    "boundary", mostly_long(["poll", "interval", "connector"], "another boundary")
)
def test_exactly_once(broker: BrokerProcess, tmp_path: Path, boundary: str) -> None:
    """Restarts in the middle double nothing for those who read what is committed."""
    topic, group = f"once-{boundary}", f"once-{boundary}"
    settings = {"exactly_once_source_support": "enabled"}
    config = {
        "connector.class": NUMBERS,
        "topic": topic,
        "limit": "400",
        "tasks.max": "2",
        "exactly.once.support": "required",
        "transaction.boundary": boundary,
        "transaction.boundary.interval.ms": "50",
    }
    with distributed_worker(broker.bootstrap, group, **settings) as worker:
        made = worker.call("PUT", "/connectors/n/config", config)
        assert made.status == 201, made.body
        worker.wait_for("n", "RUNNING", "RUNNING", "RUNNING")
        worker.call("POST", "/connectors/n/restart?includeTasks=true")
        worker.call("PUT", "/connectors/n/config", {**config, "limit": "500", "tasks.max": "1"})
        worker.wait_for("n", "RUNNING", "RUNNING")
    with distributed_worker(broker.bootstrap, group, **settings) as worker:
        worker.call("PUT", "/connectors/n/config", {**config, "limit": "500"})
        found = read(broker.bootstrap, topic, 1000, isolation="read_committed")
    values = [each.value.decode() for each in found]
    assert sorted(values) == sorted(f"{part}:{n}" for part in (0, 1) for n in range(500))


def test_a_connector_aborts_transactions(broker: BrokerProcess) -> None:
    """What it aborts is never seen, and its offsets go on."""
    settings = {"exactly_once_source_support": "enabled"}
    config = {
        "connector.class": NUMBERS,
        "topic": "aborted",
        "limit": "60",
        "abort.every": "3",
        "transaction.boundary": "connector",
    }
    with distributed_worker(broker.bootstrap, "aborting", **settings) as worker:
        assert worker.call("PUT", "/connectors/n/config", config).status == 201
        found = read(broker.bootstrap, "aborted", 40, isolation="read_committed")
        wanted = [n for n in range(60) if n // 10 not in (2, 5)]
        assert [each.value.decode() for each in found] == [f"0:{n}" for n in wanted]
        eventually(
            lambda: (
                worker.call("GET", "/connectors/n/offsets").body
                == {"offsets": [{"partition": {"part": "0"}, "offset": {"next": 60}}]}
            ),
            what="the last offset",
        )


@pytest.mark.parametrize(
    "support", mostly_long(["enabled", "disabled"], "the same without transactions")
)
def test_a_connector_with_an_offset_topic_of_its_own(broker: BrokerProcess, support: str) -> None:
    """It goes on from what the worker's topic has, and back again: nothing is doubled."""
    group, topic, own = f"own-{support}", f"own-{support}", f"own-{support}-private"
    settings = {"exactly_once_source_support": support}
    config = {"connector.class": NUMBERS, "topic": topic, "limit": "20"}

    def next_is(worker: WorkerUnderTest, wanted: int) -> None:
        answer = {"offsets": [{"partition": {"part": "0"}, "offset": {"next": wanted}}]}
        eventually(
            lambda: worker.call("GET", "/connectors/n/offsets").body == answer,
            what=f"the offset {wanted}",
        )

    with distributed_worker(broker.bootstrap, group, **settings) as worker:
        assert worker.call("PUT", "/connectors/n/config", config).status == 201
        next_is(worker, 20)
        moved = {**config, "limit": "40", "offsets.storage.topic": own}
        made = worker.call("PUT", "/connectors/n/config", moved)
        assert made.status == 200, made.body
        next_is(worker, 40)
        stored = read(broker.bootstrap, own, 1, isolation="read_committed")
        assert {each.key.decode() for each in stored} == {'["n",{"part":"0"}]'}
        # The copy in the worker's topic lets it go back.
        worker.call("PUT", "/connectors/n/config", {**config, "limit": "60"})
        next_is(worker, 60)
        found = read(broker.bootstrap, topic, 60, isolation="read_committed")
        assert [each.value.decode() for each in found] == [f"0:{n}" for n in range(60)]
        # Removed offsets are removed from both.
        worker.call("PUT", "/connectors/n/config", moved)
        next_is(worker, 40)
        assert worker.call("PUT", "/connectors/n/stop").status == 204
        reset = worker.call("DELETE", "/connectors/n/offsets")
        assert reset.status == 200, reset.body
        assert worker.call("GET", "/connectors/n/offsets").body == {"offsets": []}
        worker.call("PATCH", "/connectors/n/config", {"offsets.storage.topic": None})
        assert worker.call("GET", "/connectors/n/offsets").body == {"offsets": []}
