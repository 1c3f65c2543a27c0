"""The sink's driver and tasks against real brokers, without Spark: they stop between any two steps,
and the batch runs again in a new process's stead."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow
import pytest

from moldau.client import Admin, Consumer, TopicPartition
from moldau.client.admin import FeatureUpdate, OffsetSpec, UpgradeType
from moldau.client.cluster import ClusterClient
from moldau.client.topics import Node
from moldau.spark.sink.machine import protocol
from moldau.spark.sink.machine.protocol import BatchLostError, Opened, RerunDiffersError, TaskResult
from moldau.spark.sink.operations import TakenOverError
from moldau.spark.sink.shell import SinkCluster
from moldau.spark.sink.tasks import Destination, write_part
from moldau.testing import Broker
from support.ports import free_port
from support.processes import BrokerProcess
from support.waiting import eventually

QUERY = "5d4a9e0e-query"
_numbers = itertools.count()


class Sink:
    """A query of one batch with two tasks, and its topic."""

    def __init__(self, bootstrap: str, *, rows: tuple[tuple[str, ...], ...]) -> None:
        self.config = {"bootstrap.servers": bootstrap}
        self.name = f"steps-{next(_numbers)}"
        self.rows = rows
        self.destination = Destination(self.config, self.name, ("value",))
        with Admin(self.config) as admin:
            admin.create_topics([self.name])
        self._made: list[SinkCluster] = []
        self.driver = self.new_driver()

    def new_driver(self) -> SinkCluster:
        """A driver that knows nothing, as after a restart."""
        self.driver = SinkCluster(self.config)
        self._made.append(self.driver)
        return self.driver

    def close(self) -> None:
        for each in self._made:
            each.close()

    def task(
        self, opened: Opened, partition: int, *, batch: int = 0, rows: tuple[str, ...] | None = None
    ) -> TaskResult:
        values = self.rows[partition] if rows is None else rows
        column = pyarrow.array([each.encode() for each in values], pyarrow.binary())
        return write_part(
            self.destination,
            [pyarrow.record_batch([column], names=["value"])],
            opened,
            query_id=QUERY,
            batch_id=batch,
            partition=partition,
        )

    def run_batch(self, batch: int = 0) -> list[TaskResult]:
        opened = self.driver.open_attempt(self.name)
        results = [self.task(opened, each, batch=batch) for each in range(len(self.rows))]
        decision = protocol.plan(results)
        if decision is not None:
            self.driver.run(protocol.commit(decision, self.name))
        return results

    def attempt(self) -> Iterator[None]:
        """All that a batch does, in pieces that a crash can come between; what a driver does at
        once to several transactions it does to them one by one."""
        opened = self.driver.open_attempt(self.name)
        yield
        results = []
        for partition in range(len(self.rows)):
            results.append(self.task(opened, partition))
            yield
        decision = protocol.plan(results)
        assert decision is not None
        transactions = tuple(each.transaction for each in results if each.transaction)
        self._perform(protocol.StillOpen(transactions))
        yield
        self._perform(protocol.WriteDecision(self.name, decision))
        yield
        for each in transactions:
            self._perform(protocol.EndTransactions((each,), is_commit=True))
            yield

    def _perform(self, step: protocol.Step) -> Any:
        def one() -> Any:
            return (yield step)

        return self.driver.run(one())

    def committed(self) -> list[str]:
        """All that a reader of committed records sees before the end of the topic."""
        place = TopicPartition(self.name, 0)
        settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
        # Markers of what was committed may still be on their way: they are waited for.
        with Admin(self.config) as admin:
            end = admin.list_offsets({place: OffsetSpec.latest()})[place].offset
        with Consumer(self.config | settings) as consumer:
            consumer.assign([place])
            found: list[str] = []
            while consumer.position(place) < end:
                found += [record.value.decode() for record in consumer.poll(1.0)]
            return sorted(found)

    def is_held_up(self) -> bool:
        """Whether an open transaction hides what is behind it."""
        with Admin(self.config) as admin:
            return any(
                each.transactional_id.startswith(self.name + "-")
                for each in admin.list_transactions(filtered_states=["Ongoing"])
            )

    def abort_from_outside(self, partition: int) -> None:
        """As its timeout would."""
        with Admin(self.config) as admin:
            admin.fence_producers([protocol.transactional_id(self.name, partition)])


@pytest.fixture
def make_sink(bootstrap: str) -> Iterator[Callable[..., Sink]]:
    made: list[Sink] = []

    def make(*rows: tuple[str, ...]) -> Sink:
        made.append(Sink(bootstrap, rows=rows or (("a", "b"), ("c",))))
        return made[-1]

    yield make
    for each in made:
        each.close()


def crash_everywhere(make: Callable[[], Sink]) -> int:
    """At how many places; each batch runs again afterwards, and is there once."""
    for stop in itertools.count():
        sink = make()
        done = len(list(itertools.islice(sink.attempt(), stop)))
        sink.new_driver()
        sink.run_batch()
        assert sink.committed() == ["a", "b", "c"], f"after {stop} steps"
        assert not sink.is_held_up(), f"after {stop} steps"
        if done < stop:
            return stop
    raise AssertionError


def test_driver_that_stops_anywhere(make_sink: Callable[..., Sink]) -> None:
    assert crash_everywhere(make_sink) == 8


@pytest.mark.long("starts Apache Kafka")
def test_same_on_apache_kafka(kafka: BrokerProcess) -> None:
    made: list[Sink] = []

    def make() -> Sink:
        made.append(Sink(kafka.bootstrap, rows=(("a", "b"), ("c",))))
        return made[-1]

    try:
        assert crash_everywhere(make) == 8
    finally:
        for each in made:
            each.close()


def test_transactions_before_version_2() -> None:
    made: list[Sink] = []
    with Broker() as broker:
        down = FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE)
        with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
            admin.update_features({"transaction.version": down})

        def make() -> Sink:
            made.append(Sink(broker.bootstrap_servers, rows=(("a", "b"), ("c",))))
            return made[-1]

        try:
            assert crash_everywhere(make) == 8
            versions = {
                each.transaction and each.transaction.version for each in made[0].run_batch(1)
            }
            assert versions == {1}
        finally:
            for each in made:
                each.close()


def test_late_task_neither_hides_a_commit_nor_undoes_it(make_sink: Callable[..., Sink]) -> None:
    sink = make_sink()
    opened = sink.driver.open_attempt(sink.name)
    decision = protocol.plan([sink.task(opened, 0), sink.task(opened, 1)])
    assert decision is not None
    sink.driver.run(protocol.commit(decision, sink.name))
    # Transactional ids are no longer what the decision says when the next driver looks.
    sink.task(opened, 0)
    sink.task(opened, 1)
    results = sink.new_driver() and sink.run_batch()
    assert [each.discarded_count for each in results] == [2, 1]
    assert sink.committed() == ["a", "b", "c"]


def test_part_that_timed_out_is_written_again(make_sink: Callable[..., Sink]) -> None:
    sink = make_sink()
    for _ in itertools.islice(sink.attempt(), 6):
        pass
    sink.abort_from_outside(1)
    sink.new_driver()
    results = sink.run_batch()
    assert [(each.discarded_count, each.row_count) for each in results] == [(2, 0), (0, 1)]
    assert sink.committed() == ["a", "b", "c"]
    # And it is known as a whole from now on.
    assert [each.discarded_count for each in sink.run_batch()] == [2, 1]


def test_part_that_is_lost_must_come_again_as_it_was(make_sink: Callable[..., Sink]) -> None:
    sink = make_sink()
    for _ in itertools.islice(sink.attempt(), 6):
        pass
    sink.abort_from_outside(1)
    sink.rows = (("a", "b"), ("x",))
    sink.new_driver()
    with pytest.raises(RerunDiffersError, match=r"batch 0 .* 1 of 2 tasks.*task 1 had other rows"):
        sink.run_batch()
    # Spark would call abort; the next attempt does as well.
    sink.new_driver().open_attempt(sink.name)
    assert sink.committed() == ["a", "b"]


def test_batch_that_is_lost_as_a_whole_may_differ(make_sink: Callable[..., Sink]) -> None:
    sink = make_sink()
    for _ in itertools.islice(sink.attempt(), 5):
        pass
    sink.abort_from_outside(0)
    sink.abort_from_outside(1)
    sink.rows = (("x",), ("y",))
    sink.new_driver()
    sink.run_batch()
    assert sink.committed() == ["x", "y"]


def test_transaction_that_ends_too_early_stops_the_batch(make_sink: Callable[..., Sink]) -> None:
    sink = make_sink()
    opened = sink.driver.open_attempt(sink.name)
    decision = protocol.plan([sink.task(opened, 0), sink.task(opened, 1)])
    assert decision is not None
    sink.abort_from_outside(1)
    with pytest.raises(BatchLostError, match=rf"{sink.name}-1 ended.*nothing of it"):
        sink.driver.run(protocol.commit(decision, sink.name))
    sink.run_batch()
    assert sink.committed() == ["a", "b", "c"]


def test_one_transaction_that_ends_too_early_is_written_again(
    make_sink: Callable[..., Sink],
) -> None:
    # Whether it is still open is not asked before it is decided about.
    sink = make_sink(("a", "b"))
    opened = sink.driver.open_attempt(sink.name)
    decision = protocol.plan([sink.task(opened, 0)])
    assert decision is not None
    sink.abort_from_outside(0)
    with pytest.raises(BatchLostError, match=rf"{sink.name}-0 ended.*when the batch runs again"):
        sink.driver.run(protocol.commit(decision, sink.name))
    sink.run_batch()
    assert sink.committed() == ["a", "b"]
    assert not sink.is_held_up()


def test_second_driver_shuts_out_the_first(make_sink: Callable[..., Sink]) -> None:
    sink = make_sink()
    first = sink.driver
    opened = first.open_attempt(sink.name)
    decision = protocol.plan([sink.task(opened, 0), sink.task(opened, 1)])
    assert decision is not None
    # The first one has found its transactions open when it is overtaken.
    steps = protocol.commit(decision, sink.name)
    next(steps)
    sink.new_driver()
    sink.run_batch()

    def rest() -> Any:
        yield steps.send(frozenset())

    with pytest.raises(TakenOverError, match="started a second time"):
        first.run(rest())
    # What it does then harms nobody either.
    first.run(protocol.abort(sink.name, opened.token, tuple(p.transaction for p in decision.parts)))
    assert sink.committed() == ["a", "b", "c"]


def test_abort_lets_readers_go_on(make_sink: Callable[..., Sink]) -> None:
    sink = make_sink()
    opened = sink.driver.open_attempt(sink.name)
    result = sink.task(opened, 0)
    assert result.transaction is not None
    assert sink.is_held_up()
    sink.driver.run(protocol.abort(sink.name, opened.token, (result.transaction,)))
    assert not sink.is_held_up()
    assert sink.committed() == []


def test_abort_after_the_decision_commits(make_sink: Callable[..., Sink]) -> None:
    sink = make_sink()
    opened = sink.driver.open_attempt(sink.name)
    results = [sink.task(opened, 0), sink.task(opened, 1)]
    decision = protocol.plan(results)
    assert decision is not None
    sink._perform(protocol.WriteDecision(sink.name, decision))
    open_ones = tuple(each.transaction for each in results if each.transaction)
    sink.driver.run(protocol.abort(sink.name, opened.token, open_ones))
    sink.new_driver()
    assert [each.discarded_count for each in sink.run_batch()] == [2, 1]
    assert sink.committed() == ["a", "b", "c"]


def test_fresh_checkpoint_writes_everything_again(make_sink: Callable[..., Sink]) -> None:
    sink = make_sink()
    sink.run_batch()
    opened = sink.driver.open_attempt(sink.name)
    state = opened.state
    assert state is not None
    assert state.treatment("another query", 0, 0) is protocol.Treatment.WRITE
    assert state.treatment(QUERY, 0, 0) is protocol.Treatment.DISCARD


def test_tasks_without_rows_leave_nothing(make_sink: Callable[..., Sink]) -> None:
    sink = make_sink((), ())
    assert [each.transaction for each in sink.run_batch()] == [None, None]
    assert sink.new_driver().open_attempt(sink.name).state is None


def test_next_batches_ask_nobody_who_is_to_be_asked(
    make_sink: Callable[..., Sink], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A micro-batch waits for each request of its driver, one after the other.
    sink = make_sink(("a",), ("b",))
    for batch in range(2):
        sink.run_batch(batch)
    asked: list[str] = []
    call = ClusterClient.call_any

    async def noted(self: ClusterClient, request: Any, **settings: Any) -> Any:
        asked.append(type(request).__name__)
        return await call(self, request, **settings)

    monkeypatch.setattr(ClusterClient, "call_any", noted)
    sink.run_batch(2)
    assert asked == []


def test_coordinator_that_gives_no_answer_is_asked_for_again() -> None:
    with Broker() as broker:
        sink = Sink(broker.bootstrap_servers, rows=(("a",),))
        key = protocol.coordinator_id(sink.name)
        sink.run_batch(0)
        # As after the broker's restart at another address.
        routes = sink.driver._admin._coordinators
        kept = routes.node(key)
        gone = Node(kept.id, kept.host, free_port())
        routes._nodes[key] = gone
        sink.run_batch(1)
        assert routes.node(key) == kept
        sink.close()


def test_task_without_rows_after_one_with_rows_opens_nothing(
    make_sink: Callable[..., Sink],
) -> None:
    # A worker that has written rows begins its next task before it knows of any.
    sink = make_sink(("a",))
    sink.run_batch(0)
    for batch in (1, 2):
        sink.rows = ((),)
        assert [each.transaction for each in sink.run_batch(batch)] == [None]
        assert not sink.is_held_up()
    sink.rows = (("b",),)
    sink.run_batch(3)
    assert sink.committed() == ["a", "b"]


def test_task_asks_for_its_epoch_before_its_rows_come(make_sink: Callable[..., Sink]) -> None:
    sink = make_sink(("a",))
    first = sink.run_batch(0)[0].transaction
    assert first is not None
    opened = sink.driver.open_attempt(sink.name)

    def epoch() -> int:
        with Admin(sink.config) as admin:
            key = first.transactional_id
            return admin.describe_transactions([key])[key].producer_epoch

    before = epoch()

    def rows() -> Iterator[pyarrow.RecordBatch]:
        eventually(lambda: epoch() > before, what="the next epoch")
        yield pyarrow.record_batch([pyarrow.array([b"b"], pyarrow.binary())], names=["value"])

    result = write_part(sink.destination, rows(), opened, query_id=QUERY, batch_id=1, partition=0)
    assert result.transaction is not None
