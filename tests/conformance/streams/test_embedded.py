"""`KafkaStreams` on a broker: states, internal topics, restarts, several instances, errors."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.client import ConfigResource, Consumer, Producer, TopicPartition
from moldau.client.errors import UnsupportedVersionError
from moldau.streams import (
    KafkaStreams,
    Processor,
    PunctuationType,
    Record,
    State,
    StreamsBuilder,
    StreamsError,
    TimeWindows,
    UncaughtExceptionResponse,
)
from moldau.streams.errors import MissingSourceTopicError
from moldau.streams.hosts.restoring import SuspendReason
from support.cli import moldau_cli
from support.repeats import mostly_long
from support.streams_counting import check, recomputed, updates, word_count
from support.streams_embedded import Stage
from support.waiting import eventually


def send_lines(stage: Stage, topic: str, lines: list[str]) -> None:
    for line in lines:
        stage.producer.send(topic, line.encode())
    stage.producer.flush()


def streams(stage: Stage, topology: Any, application_id: str, **settings: Any) -> KafkaStreams:
    settings.setdefault("state_dir", str(stage.folder / application_id))
    # Members learn of a rebalance by a heartbeat.
    settings.setdefault("heartbeat_interval_ms", 200)
    return KafkaStreams(
        topology,
        application_id=application_id,
        bootstrap_servers=stage.bootstrap,
        **settings,
    )


LINES = [f"all streams lead {number % 7} kafka" for number in range(300)]


@pytest.mark.parametrize(
    "guarantee", mostly_long(["exactly_once_v2", "at_least_once"], "the weaker guarantee")
)
def test_word_count_goes_on_after_a_restart(stage: Stage, guarantee: str) -> None:
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}text", f"{prefix}counts"], partitions=3)
    made = []
    for part in (LINES[:100], LINES[100:]):
        send_lines(stage, f"{prefix}text", part)
        made += part
        running = streams(
            stage,
            word_count(prefix),
            f"{prefix}app",
            processing_guarantee=guarantee,
            commit_interval_ms=50,
        )
        with running:
            total = sum(recomputed(made).values())
            found = updates(stage.bootstrap, f"{prefix}counts", 3, total)
        assert running.state is State.NOT_RUNNING
        check(found, recomputed(made))


def test_state_is_restored_without_the_local_copy(stage: Stage) -> None:
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}text", f"{prefix}counts"], partitions=2)
    restored: dict[str, int] = {}

    class Listener:
        def on_restore_start(self, partition: Any, store: str, start: int, end: int) -> None:
            restored.setdefault(store, 0)

        def on_batch_restored(self, partition: Any, store: str, end: int, count: int) -> None:
            pass

        def on_restore_end(self, partition: Any, store: str, total: int) -> None:
            restored[store] += total

    send_lines(stage, f"{prefix}text", LINES)
    total = sum(recomputed(LINES).values())
    with streams(stage, word_count(prefix), f"{prefix}app") as running:
        updates(stage.bootstrap, f"{prefix}counts", 2, total)
    # With its state directory an instance has nothing to restore but markers.
    again = streams(stage, word_count(prefix), f"{prefix}app")
    again.set_global_state_restore_listener(Listener())
    with again:
        assert again.wait_for(State.RUNNING, 30)
    assert restored.get("counts", 0) == 0
    again = streams(stage, word_count(prefix), f"{prefix}app")
    again.clean_up()
    again.set_global_state_restore_listener(Listener())
    with again:
        assert again.wait_for(State.RUNNING, 30)
        assert restored["counts"] > 0
        rates = {
            name.name: metric.value
            for name, metric in again.metrics().items()
            if name.group == "stream-state-updater-metrics"
        }
        assert rates["restore-records-rate"] > 0
        send_lines(stage, f"{prefix}text", ["kafka"])
        found = updates(stage.bootstrap, f"{prefix}counts", 2, total + 1)
    check(found, recomputed([*LINES, "kafka"]))
    assert running.state is State.NOT_RUNNING


def test_restoring_that_ends_early_is_told(stage: Stage) -> None:
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}text", f"{prefix}counts"])
    told: list[tuple[str, int]] = []

    class Listener:
        def on_restore_start(self, partition: Any, store: str, start: int, end: int) -> None:
            pass

        def on_batch_restored(self, partition: Any, store: str, end: int, count: int) -> None:
            for thread in again.threads:
                thread.stop()

        def on_restore_end(self, partition: Any, store: str, total: int) -> None:
            told.append(("complete", total))

        def on_restore_suspended(self, partition: Any, store: str, total: int) -> None:
            told.append((store, total))

    send_lines(stage, f"{prefix}text", LINES)
    total = sum(recomputed(LINES).values())
    with streams(stage, word_count(prefix), f"{prefix}app") as running:
        updates(stage.bootstrap, f"{prefix}counts", 1, total)
    again = streams(stage, word_count(prefix), f"{prefix}app", restore_consumer_max_poll_records=1)
    again.clean_up()
    again.set_global_state_restore_listener(Listener())
    with again:
        eventually(lambda: not again.threads, what="the thread stops")
    assert running.state is State.NOT_RUNNING
    assert told == [("counts", 1)]


def test_all_stores_of_a_task_are_restored(stage: Stage) -> None:
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}in", f"{prefix}out"])
    builder = StreamsBuilder()
    stream = builder.stream(f"{prefix}in", key_serde="string", value_serde="string")
    grouped = stream.group_by_key()
    for store in ("one", "two"):
        counted = grouped.count(store=store).to_stream()
        counted.map_values(lambda count, store=store: f"{store} {count}").to(
            f"{prefix}out", key_serde="string", value_serde="string", name=f"sink-{store}"
        )
    for number in (1, 2):
        stage.producer.send(f"{prefix}in", b"x", b"key")
        stage.producer.flush()
        made = streams(stage, builder.build(), f"{prefix}app", default_dsl_store="in_memory")
        with made:
            found = values(stage, f"{prefix}out", number * 2)
        assert sorted(found[-2:]) == [f"one {number}", f"two {number}"]


def test_internal_topics_are_those_of_kafka_streams(stage: Stage) -> None:
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}in"], partitions=3)
    builder = StreamsBuilder()
    stream = builder.stream(f"{prefix}in", key_serde="string", value_serde="string")
    grouped = stream.group_by(lambda key, value: value, name="by-value")
    grouped.windowed_by(TimeWindows(size=1000, grace=0)).count(store="windowed")
    with streams(stage, builder.build(), f"{prefix}app") as running:
        assert running.wait_for(State.RUNNING, 30)
    names = [f"{prefix}app-windowed-changelog", f"{prefix}app-by-value-repartition"]
    described = stage.admin.describe_topics(names)
    assert [len(described[name].partitions) for name in names] == [3, 3]
    resources = [ConfigResource.topic(name) for name in names]
    configs = stage.admin.describe_configs(resources)
    windowed, repartition = (configs[each] for each in resources)
    assert windowed["cleanup.policy"].value == "compact,delete"
    assert windowed["retention.ms"].value == "86401000"
    assert repartition["cleanup.policy"].value == "delete"
    assert repartition["retention.ms"].value == "-1"
    assert repartition["segment.bytes"].value == "52428800"


def test_instances_share_the_tasks_and_hand_them_over(stage: Stage, protocol: str) -> None:
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}text", f"{prefix}counts"], partitions=4)
    send_lines(stage, f"{prefix}text", LINES[:100])
    first, second = (
        streams(
            stage,
            word_count(prefix),
            f"{prefix}app",
            state_dir=str(stage.folder / f"{prefix}{number}"),
            num_stream_threads=2,
            group_protocol=protocol,
        )
        for number in range(2)
    )

    def task_count(made: KafkaStreams) -> int:
        return sum(len(thread.tasks.active) for thread in made.threads)

    with first:
        eventually(lambda: task_count(first) == 8, what="the first has all tasks")
        with second:
            eventually(
                lambda: (
                    task_count(first) == task_count(second) == 4
                    and first.state is second.state is State.RUNNING
                ),
                what="both have four tasks",
                seconds_max=120,
            )
            send_lines(stage, f"{prefix}text", LINES[100:200])
            total = sum(recomputed(LINES[:200]).values())
            updates(stage.bootstrap, f"{prefix}counts", 4, total)
        eventually(lambda: task_count(first) == 8, what="the first has all tasks again")
        send_lines(stage, f"{prefix}text", LINES[200:])
        total = sum(recomputed(LINES).values())
        found = updates(stage.bootstrap, f"{prefix}counts", 4, total)
    check(found, recomputed(LINES))


def test_threads_come_and_go(stage: Stage, protocol: str) -> None:
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}text", f"{prefix}counts"], partitions=2)
    made = streams(stage, word_count(prefix), f"{prefix}app", group_protocol=protocol)
    with made as running:
        assert running.wait_for(State.RUNNING, 30)
        name = running.add_stream_thread()
        assert name is not None
        assert name.endswith("StreamThread-2")
        eventually(
            lambda: [len(thread.tasks.active) for thread in running.threads] == [2, 2],
            what="both threads have tasks",
        )
        assert running.remove_stream_thread() == name
        eventually(
            lambda: [len(thread.tasks.active) for thread in running.threads] == [4],
            what="one thread has all tasks",
        )
        send_lines(stage, f"{prefix}text", LINES)
        total = sum(recomputed(LINES).values())
        check(updates(stage.bootstrap, f"{prefix}counts", 2, total), recomputed(LINES))


def test_standbys_follow_and_take_over(stage: Stage) -> None:
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}text", f"{prefix}counts"], partitions=2)
    one, two = (
        streams(
            stage,
            word_count(prefix),
            f"{prefix}app",
            state_dir=str(stage.folder / f"{prefix}{number}"),
            num_standby_replicas=1,
        )
        for number in range(2)
    )

    loaded: list[tuple[str, int]] = []

    class Listener:
        def __init__(self) -> None:
            self.suspended: list[SuspendReason] = []

        def on_update_start(self, partition: Any, store: str, start: int) -> None:
            loaded.append((store, start))

        def on_batch_loaded(
            self, partition: Any, store: str, task_id: Any, end: int, count: int, last: int
        ) -> None:
            assert last >= end
            loaded.append((store, count))

        def on_update_suspended(
            self, partition: Any, store: str, offset: int, last: int, reason: SuspendReason
        ) -> None:
            self.suspended.append(reason)

    listener = Listener()
    one.set_standby_update_listener(listener)
    two.set_standby_update_listener(Listener())

    def standbys(made: KafkaStreams) -> list[Any]:
        return [task for each in made.metadata_for_local_threads() for task in each.standby_tasks]

    def copies(made: KafkaStreams) -> list[Any]:
        return [task for thread in made.threads for task in thread.tasks.standbys.values()]

    with one:
        with two:
            eventually(
                lambda: len(standbys(one)) + len(standbys(two)) == 2, what="two standby tasks"
            )
            send_lines(stage, f"{prefix}text", LINES)
            total = sum(recomputed(LINES).values())
            updates(stage.bootstrap, f"{prefix}counts", 2, total)
            eventually(
                lambda: all(
                    log.position > 0 for task in (*copies(one), *copies(two)) for log in task.logs
                ),
                what="the standbys have records",
            )
            assert ("counts", 0) in loaded
            assert sum(count for _, count in loaded) > 0
            has_copies = bool(standbys(one))
        send_lines(stage, f"{prefix}text", ["kafka"])
        found = updates(stage.bootstrap, f"{prefix}counts", 2, total + 1)
        assert (SuspendReason.PROMOTED in listener.suspended) is has_copies
    check(found, recomputed([*LINES, "kafka"]))


def test_threads_and_clients_are_known(stage: Stage) -> None:
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}text", f"{prefix}counts"], partitions=2)
    send_lines(stage, f"{prefix}text", LINES)
    with streams(stage, word_count(prefix), f"{prefix}app") as running:
        total = sum(recomputed(LINES).values())
        updates(stage.bootstrap, f"{prefix}counts", 2, total)
        (thread,) = running.metadata_for_local_threads()
        assert thread.thread_state == "RUNNING"
        assert thread.standby_tasks == ()
        read = {key.topic for task in thread.active_tasks for key in task.topic_partitions}
        assert f"{prefix}text" in read
        offsets = [task.committed_offsets for task in thread.active_tasks]
        ends = {key: offset for each in offsets for key, offset in each.items()}
        assert sum(offset for key, offset in ends.items() if key.topic == f"{prefix}text") > 0
        assert all(
            task.end_offsets[key] >= offset
            for task in thread.active_tasks
            for key, offset in task.committed_offsets.items()
        )
        assert {task.time_current_idling_started for task in thread.active_tasks} == {None}
        # This broker wants no metrics of clients, so they have no ids.
        with pytest.raises(UnsupportedVersionError):
            running.client_instance_ids(timeout=30)
    with pytest.raises(StreamsError, match="has been stopped"):
        running.client_instance_ids(timeout=1)


def test_a_topic_that_is_missing_is_named(stage: Stage) -> None:
    running = streams(stage, word_count("nowhere-"), stage.new_id())
    with pytest.raises(MissingSourceTopicError, match="nowhere-text"):
        running.start()
    assert running.state is State.ERROR


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_a_topic_that_is_deleted_ends_the_application(stage: Stage, protocol: str) -> None:
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}text", f"{prefix}counts"])
    running = streams(stage, word_count(prefix), f"{prefix}app", group_protocol=protocol)
    with running:
        eventually(lambda: running.state is State.RUNNING, what="it runs")
        stage.admin.delete_topics([f"{prefix}text"])
        eventually(lambda: running.state is State.ERROR, what="it has ended")
    assert isinstance(running.error, MissingSourceTopicError)
    assert f"{prefix}text" in str(running.error)


def passing(stage: Stage, prefix: str, step: Callable[[str], str]) -> Any:
    stage.create([f"{prefix}in", f"{prefix}out"])
    builder = StreamsBuilder()
    stream = builder.stream(f"{prefix}in", key_serde="string", value_serde="string")
    stream.map_values(step).to(f"{prefix}out", key_serde="string", value_serde="string")
    return builder.build()


def values(stage: Stage, topic: str, count: int) -> list[str]:
    found: list[str] = []
    with Consumer(
        bootstrap_servers=stage.bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])

        def read() -> bool:
            found.extend(record.value.decode() for record in consumer.poll(0.2))
            return len(found) >= count

        eventually(read, what=f"{count} records in {topic}")
    return found


def test_an_error_stops_the_instance_and_loses_nothing(stage: Stage) -> None:
    prefix = f"{stage.new_id()}-"
    fails = [True]

    def step(value: str) -> str:
        if value == "2" and fails[0]:
            raise ValueError("two")
        return value

    topology = passing(stage, prefix, step)
    seen: list[State] = []
    running = streams(stage, topology, f"{prefix}app")
    running.set_state_listener(lambda new, old: seen.append(new))
    send_lines(stage, f"{prefix}in", ["0", "1", "2", "3"])
    with pytest.raises(StreamsError, match="processor="):
        running.run()
    assert running.state is State.ERROR
    assert seen[-2:] == [State.PENDING_ERROR, State.ERROR]
    fails[0] = False
    with streams(stage, topology, f"{prefix}app"):
        assert values(stage, f"{prefix}out", 4) == ["0", "1", "2", "3"]


def test_a_failed_thread_is_replaced(stage: Stage) -> None:
    prefix = f"{stage.new_id()}-"
    failures: list[BaseException] = []

    def step(value: str) -> str:
        if value == "2" and not failures:
            raise ValueError("two")
        return value

    def on_error(error: BaseException) -> UncaughtExceptionResponse:
        failures.append(error)
        return UncaughtExceptionResponse.REPLACE_THREAD

    running = streams(stage, passing(stage, prefix, step), f"{prefix}app")
    running.set_uncaught_exception_handler(on_error)
    send_lines(stage, f"{prefix}in", ["0", "1", "2", "3"])
    with running:
        assert values(stage, f"{prefix}out", 4) == ["0", "1", "2", "3"]
    assert len(failures) == 1


def test_one_instance_stops_all(stage: Stage, protocol: str) -> None:
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}in", f"{prefix}out"], partitions=2)
    builder = StreamsBuilder()

    def step(value: str) -> str:
        raise ValueError(value)

    stream = builder.stream(f"{prefix}in", key_serde="string", value_serde="string")
    stream.map_values(step).to(f"{prefix}out", key_serde="string", value_serde="string")
    instances = [
        streams(
            stage,
            builder.build(),
            f"{prefix}app",
            state_dir=str(stage.folder / f"{prefix}{number}"),
            group_protocol=protocol,
        )
        for number in range(2)
    ]
    for each in instances:
        each.set_uncaught_exception_handler(
            lambda error: UncaughtExceptionResponse.SHUTDOWN_APPLICATION
        )
        each.start()
    eventually(
        lambda: all(each.state is State.RUNNING for each in instances), what="both instances run"
    )
    stage.producer.send(f"{prefix}in", b"x", partition=0)
    stage.producer.flush()
    for each in instances:
        assert each.wait(60)
        assert each.state is State.ERROR


class Ticking(Processor):
    """Forwards the number of records at every tick."""

    def init(self, context: Any) -> None:
        super().init(context)
        self.count = 0
        context.schedule(20, PunctuationType.WALL_CLOCK_TIME, self.on_tick)

    def on_tick(self, now_ms: int) -> None:
        if self.count:
            self.context.forward(Record("count", str(self.count), now_ms))
            self.count = 0

    def process(self, record: Record[Any, Any]) -> None:
        self.count += 1


def test_the_wall_clock_punctuates(stage: Stage) -> None:
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}in", f"{prefix}out"])
    builder = StreamsBuilder()
    stream = builder.stream(f"{prefix}in", key_serde="string", value_serde="string")
    stream.process(Ticking).to(f"{prefix}out", key_serde="string", value_serde="string")
    send_lines(stage, f"{prefix}in", ["x"] * 5)
    with streams(stage, builder.build(), f"{prefix}app"):
        assert values(stage, f"{prefix}out", 1) == ["5"]


def test_topics_of_a_pattern_are_found_while_it_runs(stage: Stage) -> None:
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}orders-a", f"{prefix}out"])
    builder = StreamsBuilder()
    stream = builder.stream(
        re.compile(f"{prefix}orders-.*"), key_serde="string", value_serde="string"
    )
    stream.to(f"{prefix}out", key_serde="string", value_serde="string")
    send_lines(stage, f"{prefix}orders-a", ["1"])
    with streams(stage, builder.build(), f"{prefix}app", metadata_max_age_ms=200):
        assert values(stage, f"{prefix}out", 1) == ["1"]
        stage.create([f"{prefix}orders-b"])
        send_lines(stage, f"{prefix}orders-b", ["2"])
        assert values(stage, f"{prefix}out", 2) == ["1", "2"]


def test_pausing(stage: Stage) -> None:
    prefix = f"{stage.new_id()}-"
    with streams(stage, passing(stage, prefix, str.upper), f"{prefix}app") as running:
        send_lines(stage, f"{prefix}in", ["a"])
        assert values(stage, f"{prefix}out", 1) == ["A"]
        running.pause()
        send_lines(stage, f"{prefix}in", ["b"])
        eventually(
            lambda: any(
                len(task.inputs)
                for thread in running.threads
                for task in thread.tasks.active.values()
            ),
            what="a record waits",
        )
        running.resume()
        assert values(stage, f"{prefix}out", 2) == ["A", "B"]


def test_the_program_ends_by_close_from_another_thread(stage: Stage) -> None:
    prefix = f"{stage.new_id()}-"
    running = streams(stage, passing(stage, prefix, str.upper), f"{prefix}app")
    thread = threading.Thread(target=running.run)
    thread.start()
    assert running.wait_for(State.RUNNING, 30)
    assert running.close(timeout=30)
    thread.join(30)
    assert not thread.is_alive()
    assert Path(running.settings.state_dir).is_dir()


def test_a_producer_of_another_instance_is_fenced(stage: Stage, protocol: str) -> None:
    """The thread of a fenced producer joins again, and goes on."""
    prefix = f"{stage.new_id()}-"
    topology = passing(stage, prefix, str.upper)
    with streams(stage, topology, f"{prefix}app", group_protocol=protocol) as running:
        send_lines(stage, f"{prefix}in", ["a"])
        assert values(stage, f"{prefix}out", 1) == ["A"]
        transactional_id = f"{prefix}app-{running.instance.process_id}-1"
        with Producer(
            bootstrap_servers=stage.bootstrap, transactional_id=transactional_id
        ) as zombie:
            zombie.init_transactions()
        send_lines(stage, f"{prefix}in", ["b", "c"])
        assert values(stage, f"{prefix}out", 3) == ["A", "B", "C"]


@pytest.mark.parametrize(
    "guarantee", mostly_long(["exactly_once_v2", "at_least_once"], "the weaker guarantee")
)
def test_a_record_that_cannot_be_written_stops_the_instance(stage: Stage, guarantee: str) -> None:
    prefix = f"{stage.new_id()}-"
    running = streams(
        stage,
        passing(stage, prefix, lambda value: value * 2000),
        f"{prefix}app",
        processing_guarantee=guarantee,
        commit_interval_ms=50,
        producer_max_request_size=10_000,
    )
    send_lines(stage, f"{prefix}in", ["too large"] * 3)
    with running:
        assert running.wait(30)
    assert running.state is State.ERROR
    # Nothing is committed: the records are not lost.
    group = f"{prefix}app"
    found = stage.admin.list_consumer_group_offsets({group: None}, check=False)
    assert group in found.errors or not any(found[group].values())


def test_metrics_have_the_names_of_kafka_streams(stage: Stage) -> None:
    prefix = f"{stage.new_id()}-"
    with streams(stage, passing(stage, prefix, str.upper), f"{prefix}app") as running:
        send_lines(stage, f"{prefix}in", ["a", "b"])
        assert values(stage, f"{prefix}out", 2) == ["A", "B"]
        found = {(name.group, name.name): metric for name, metric in running.metrics().items()}
        assert found["stream-metrics", "state"].value == "RUNNING"
        assert found["stream-thread-metrics", "process-total"].value == 2
        assert found["stream-topic-metrics", "records-consumed-total"].value == 2
        assert found["stream-topic-metrics", "records-produced-total"].value == 2
        assert found["stream-task-metrics", "dropped-records-total"].value == 0
        assert found["stream-thread-metrics", "commit-total"].value >= 1
        tags = {
            tuple(sorted(name.tags))
            for name in running.metrics()
            if name.group == "stream-task-metrics"
        }
        assert tags == {("task-id", "thread-id")}


def test_an_application_that_was_reset_does_not_use_its_old_state(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}text", f"{prefix}counts"], partitions=2)
    send_lines(stage, f"{prefix}text", LINES)
    total = sum(recomputed(LINES).values())
    group = f"{prefix}app"
    with streams(stage, word_count(prefix), group, group_protocol="classic"):
        updates(stage.bootstrap, f"{prefix}counts", 2, total)
    reset = moldau_cli(
        *("streams-application-reset", "--bootstrap-server", stage.bootstrap),
        *("--application-id", group, "--input-topics", f"{prefix}text", "--force"),
    )
    assert reset.status == 0, reset.out + reset.err
    stage.admin.delete_topics([f"{prefix}counts"])
    eventually(
        lambda: f"{prefix}counts" not in stage.admin.list_topics(), what="the output is deleted"
    )
    stage.create([f"{prefix}counts"], partitions=2)
    with streams(stage, word_count(prefix), group, group_protocol="classic"):
        check(updates(stage.bootstrap, f"{prefix}counts", 2, total), recomputed(LINES))
    assert "its local state is ahead of a changelog" in caplog.text
