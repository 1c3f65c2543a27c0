"""The registry of pipelines on a real cluster: changes, statuses, several writers."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from moldau.client import Admin, ConfigResource, Producer
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.machine.records import (
    Desired,
    ErrorRecord,
    PipelineRecord,
    ProgressRecord,
    QueryRecord,
    State,
    StatusRecord,
)
from moldau.pipelines.registry import TOPIC, Registry
from moldau.testing import Broker


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


def record(name: str, **changes: object) -> PipelineRecord:
    first = PipelineRecord(
        name=name,
        definition={"name": name},
        desired=Desired.RUNNING,
        checkpoint=f"/checkpoints/{name}",
        deployment="here",
        generation=1,
        revision=1,
    )
    return replace(first, **changes)  # type: ignore[arg-type]


def test_the_topic_is_compacted_with_one_partition(bootstrap: str) -> None:
    Registry(bootstrap).close()
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        topic = admin.describe_topics([TOPIC])[TOPIC]
        assert [len(partition.replicas) for partition in topic.partitions] == [1]
        resource = ConfigResource.topic(TOPIC)
        assert admin.describe_configs([resource])[resource]["cleanup.policy"].value == "compact"


def test_who_writes_sees_it_at_once_and_so_does_who_comes_later(bootstrap: str) -> None:
    with Registry(bootstrap) as one, Registry(bootstrap) as other:
        one.change("seen", lambda _: record("seen"))
        assert one.read().pipelines["seen"].generation == 1
        assert other.read().pipelines["seen"] == record("seen")
        one.change("seen", lambda _: None)
        assert "seen" not in one.read().pipelines
        assert "seen" not in other.read().pipelines


def test_a_status_and_a_definition_do_not_overwrite_each_other(bootstrap: str) -> None:
    status = StatusRecord(
        name="both",
        state=State.RUNNING,
        session_id="s",
        queries=(QueryRecord("both", "q", "r"),),
        last_error=ErrorRecord(message="no", where="steps.py:3"),
        progress=ProgressRecord(batch_id=4, lag_records=9),
    )
    with Registry(bootstrap) as user, Registry(bootstrap) as loop:
        user.change("both", lambda _: record("both"))
        loop.write_status(status)
        user.change("both", lambda was: was and replace(was, generation=2))
        loop.write_status(replace(status, attempts=3))
        view = user.read()
        assert view.pipelines["both"].generation == 2
        assert view.statuses["both"] == replace(status, attempts=3)
        # With the pipeline goes its status.
        user.change("both", lambda _: None)
        assert "both" not in loop.read().statuses


def test_of_many_at_the_same_time_none_is_lost(bootstrap: str) -> None:
    """Each adds one to the generation that it found; a stale write would lose one."""

    def add(_: int) -> None:
        with Registry(bootstrap) as mine:
            for _ in range(2):
                mine.change(
                    "counted",
                    lambda was: (
                        record("counted")
                        if was is None
                        else replace(was, generation=was.generation + 1)
                    ),
                )

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(add, range(3)))
    with Registry(bootstrap) as reader:
        assert reader.read().pipelines["counted"].generation == 6


def test_a_writer_that_was_overtaken_is_refused_and_decides_anew(bootstrap: str) -> None:
    found: list[int] = []
    with Registry(bootstrap) as slow, Registry(bootstrap) as quick:
        slow.change("raced", lambda _: record("raced"))

        def overtaken(was: PipelineRecord | None) -> PipelineRecord:
            assert was is not None
            found.append(was.generation)
            if len(found) == 1:
                quick.change("raced", lambda now: now and replace(now, generation=7))
            return replace(was, generation=was.generation + 1)

        slow.change("raced", overtaken)
        assert found == [1, 7]
        assert quick.read().pipelines["raced"].generation == 8


def test_what_the_change_refuses_is_not_written(bootstrap: str) -> None:
    def refuse(_: PipelineRecord | None) -> PipelineRecord:
        raise PipelineError("not like that")

    with Registry(bootstrap) as registry:
        with pytest.raises(PipelineError, match="not like that"):
            registry.change("refused", refuse)
        with pytest.raises(PipelineError, match="cannot name a pipeline"):
            registry.change("a/b", lambda _: record("a/b"))
        assert "refused" not in registry.read().pipelines


def test_records_of_others_do_no_harm(bootstrap: str) -> None:
    with Producer({"bootstrap.servers": bootstrap}) as producer:
        producer.send(TOPIC, value=b"\xff", key=b"odd").result()
        producer.send(TOPIC, value=b'{"version": 99}', key=b"newer").result()
        producer.send(TOPIC, value=b"[]", key=b"newer/status").result()
    with Registry(bootstrap) as registry:
        view = registry.read()
        assert "version 99" in view.unreadable["newer"]
        assert "not JSON" in view.unreadable["odd"]
        assert not view.pipelines.keys() & {"odd", "newer"}
