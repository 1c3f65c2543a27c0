"""What a streaming query's reader answers while topics change, without Spark around it."""

from __future__ import annotations

import asyncio
import pickle
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
)

from moldau.client import Admin, Consumer, NewPartitions, Producer
from moldau.client.errors import (
    DisconnectError,
    KafkaError,
    KafkaTimeoutError,
    UnknownTopicOrPartitionError,
)
from moldau.client.topics import TopicPartition
from moldau.spark.source import stream
from moldau.spark.source.cluster import SourceCluster
from moldau.spark.source.machine.lag import LAG_KEY
from moldau.spark.source.machine.offsets import Offsets, offsets_to_json
from moldau.spark.source.machine.options import parse_options
from moldau.spark.source.machine.planning import DataLoss, PlanError
from moldau.spark.source.machine.ranges import OffsetRange
from moldau.spark.source.mirror import PAUSE_S, GroupMirror, GroupTaken, announce, query_group
from moldau.spark.source.readers import TopicStreamReader, topic_reader, topic_stream_reader
from moldau.spark.source.schema import topic_schema
from moldau.spark.source.stream import StreamRun
from moldau.spark.topic_options import OptionError
from moldau.testing import Broker
from support.waiting import eventually

Start = Callable[..., StreamRun]
SECONDS_MAX = 240.0


@pytest.fixture
def admin(bootstrap: str) -> Iterator[Admin]:
    with Admin(bootstrap_servers=bootstrap) as made:
        yield made


@pytest.fixture
def start(bootstrap: str, topic: str) -> Iterator[Start]:
    """Begins a run over the test's topic; ends it after the test."""
    runs: list[StreamRun] = []

    def begin(**options: str) -> StreamRun:
        given = {
            "kafka.bootstrap.servers": bootstrap,
            "startingOffsets": "earliest",
            "fetchOffset.retryIntervalMs": "0",
            **({"subscribe": topic} if "subscribePattern" not in options else {}),
            **options,
        }
        runs.append(StreamRun(parse_options(given, streaming=True)))
        return runs[-1]

    yield begin
    for run in runs:
        run.close()


def next_batch(run: StreamRun, start: Offsets, *, limited: bool = True) -> Offsets:
    """Where the next batch ends, once there is one."""

    def news() -> list[Offsets]:
        end = run.latest(start, limited=limited)
        return [] if end == start else [end]

    [found] = eventually(news, what=f"a batch after {start}", seconds_max=SECONDS_MAX)
    return found


def aged_report(run: StreamRun) -> dict[str, Any]:
    """The report, once the age of what is unread is known: a slow answer is not waited for."""

    def aged() -> dict[str, Any]:
        report = run.report()
        return report if report is not None and "seconds" in report[LAG_KEY] else {}

    return eventually(aged, what="the age of the oldest unread record", seconds_max=SECONDS_MAX)


def shown(offsets: Offsets) -> dict[int, int]:
    """By partition, where there is one topic."""
    return {key.partition: offset for key, offset in sorted(offsets.items())}


def test_a_query_begins_where_it_is_told(broker: Broker, topic: str, start: Start) -> None:
    broker.create_topic(topic, partitions=2)
    now_ms = int(time.time() * 1000)
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for index in range(4):
            producer.send(topic, value=b"x", partition=0, timestamp=now_ms - 4000 + index * 1000)
    text = f'{{"{topic}":{{"0":%s,"1":%s}}}}'
    at = f"{now_ms - 2500}"
    assert shown(start().initial()) == {0: 0, 1: 0}
    assert shown(start(startingOffsets="latest").initial()) == {0: 4, 1: 0}
    assert shown(start(startingOffsets=text % (3, -1)).initial()) == {0: 3, 1: 0}
    assert shown(start(startingOffsets=text % (-1, -2)).initial()) == {0: 4, 1: 0}
    latest = {"startingOffsetsByTimestampStrategy": "latest"}
    assert shown(start(startingTimestamp=at, **latest).initial()) == {0: 2, 1: 0}
    by_time = start(startingOffsetsByTimestamp=text % (at, 0), **latest)
    assert shown(by_time.initial()) == {0: 2, 1: 0}
    with pytest.raises(PlanError, match=f"topic-partition {topic}-1 and timestamp {at}"):
        start(startingTimestamp=at).initial()
    with pytest.raises(PlanError, match=f"not given: {topic}-1"):
        start(startingOffsets=f'{{"{topic}":{{"0":0}}}}').initial()


def test_a_topic_that_is_not_there_is_named(topic: str, start: Start, bootstrap: str) -> None:
    with pytest.raises(
        UnknownTopicOrPartitionError, match=f"{topic} does not exist at {bootstrap}"
    ):
        start().initial()


def test_new_records_and_new_partitions_are_read_from_their_first_offset(
    broker: Broker, topic: str, start: Start, admin: Admin
) -> None:
    broker.create_topic(topic)
    run = start()
    begin = run.initial()
    assert run.latest(begin, limited=True) == begin
    broker.produce(topic, "a", "b")
    first = next_batch(run, begin)
    assert run.plan(begin, first) == [OffsetRange(topic, 0, 0, 2)]
    admin.create_partitions({topic: NewPartitions(2)})
    broker.produce(topic, "c", partition=1)
    second = eventually(
        lambda: end if shown(end := run.latest(first, limited=True)).get(1) else None,
        what="the record in the new partition",
    )
    assert second is not None
    assert run.plan(first, second) == [OffsetRange(topic, 1, 0, 1)]


def test_a_slow_answer_does_not_put_off_the_next_question(
    broker: Broker, topic: str, start: Start, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is dear for this process is asked for less often, not what a broker takes long for."""
    find = SourceCluster._find_partitions

    async def find_slowly(self: SourceCluster) -> Any:
        await asyncio.sleep(0.7)
        return await find(self)

    broker.create_topic(topic)
    run = start()
    with monkeypatch.context() as patched:
        patched.setattr(SourceCluster, "_find_partitions", find_slowly)
        begin = run.initial()
    admin.create_partitions({topic: NewPartitions(2)})
    assert shown(next_batch(run, begin)) == {0: 0, 1: 0}


def test_new_topics_of_a_pattern_are_read(broker: Broker, topic: str, start: Start) -> None:
    run = start(subscribePattern=f"{topic}-.*|__consumer_.*")
    begin = run.initial()
    assert begin == {}
    broker.create_topic(f"{topic}-a")
    broker.produce(f"{topic}-a", "x")
    end = next_batch(run, begin)
    while end == {TopicPartition(f"{topic}-a", 0): 0}:
        begin, end = end, next_batch(run, end)
    assert run.plan(begin, end) == [OffsetRange(f"{topic}-a", 0, 0, 1)]


def test_limits_spread_over_partitions_and_are_ignored_where_all_is_wanted(
    broker: Broker, topic: str, start: Start
) -> None:
    broker.create_topic(topic, partitions=2)
    broker.produce(topic, *"abcdef", partition=0)
    broker.produce(topic, *"ab", partition=1)
    run = start(maxOffsetsPerTrigger="4", minOffsetsPerTrigger="3")
    begin = run.initial()
    first = next_batch(run, begin)
    assert shown(first) == {0: 3, 1: 1}
    assert aged_report(run) == {
        **offsets_to_json({TopicPartition(topic, 0): 6, TopicPartition(topic, 1): 2}),
        LAG_KEY: {"records": 4, "seconds": pytest.approx(0, abs=SECONDS_MAX)},
    }
    second = next_batch(run, first)
    assert shown(second) == {0: 6, 1: 2}
    broker.produce(topic, "g")
    assert run.latest(second, limited=True) == second
    assert shown(next_batch(run, second, limited=False)) == {0: 7, 1: 2}
    broker.produce(topic, "h", "i")
    assert shown(next_batch(run, second)) == {0: 9, 1: 2}


def test_available_now_reads_what_was_there_at_the_beginning(
    broker: Broker, topic: str, start: Start, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However long a busy machine takes for the group's last offsets.
    monkeypatch.setattr(stream, "_FLUSH_S", SECONDS_MAX)
    broker.create_topic(topic)
    broker.produce(topic, *"abc")
    run = start(maxOffsetsPerTrigger="2", groupId=f"{topic}-group")
    run.prepare_available_now()
    broker.produce(topic, "d")
    admin.create_partitions({topic: NewPartitions(2)})
    broker.produce(topic, "e", partition=1)
    begin = run.initial()
    ends = [begin]
    while (end := run.latest(ends[-1], limited=True)) != ends[-1]:
        ends.append(end)
    assert [shown(each) for each in ends] == [{0: 0, 1: 0}, {0: 2, 1: 0}, {0: 3, 1: 0}]
    assert run.plan(begin, ends[-1]) == [OffsetRange(topic, 0, 0, 3)]
    # The last batch too is mirrored before the run ends.
    assert broker.group(f"{topic}-group").committed() == {(topic, 0): 3, (topic, 1): 0}
    later = start()
    later.prepare_available_now()
    assert shown(later.latest(ends[-1], limited=True)) == {0: 4, 1: 1}


def test_available_now_from_the_end_reads_nothing(broker: Broker, topic: str, start: Start) -> None:
    broker.create_topic(topic)
    broker.produce(topic, "a")
    run = start(startingOffsets="latest")
    run.prepare_available_now()
    broker.produce(topic, "b")
    begin = run.initial()
    assert shown(begin) == {0: 2}
    assert run.latest(begin, limited=True) == begin


def test_a_deleted_topic_is_data_loss_that_is_named(
    broker: Broker, topic: str, start: Start
) -> None:
    broker.create_topic(topic)
    broker.produce(topic, *"abc")
    strict, lenient = start(), start(failOnDataLoss="false")
    begin = strict.initial()
    end = next_batch(strict, begin)
    broker.delete_topic(topic)
    gone = next_batch(strict, end)
    assert gone == {}
    with pytest.raises(DataLoss, match=rf"{topic}-0 \(read up to offset 3\).*failOnDataLoss"):
        strict.plan(end, gone)
    assert next_batch(lenient, end) == {}
    assert lenient.plan(end, {}) == []
    broker.create_topic(topic)
    broker.produce(topic, "d")
    again = next_batch(lenient, {})
    while again == {TopicPartition(topic, 0): 0}:
        again = next_batch(lenient, again)
    assert lenient.plan({}, again) == [OffsetRange(topic, 0, 0, 1)]


def test_a_topic_made_anew_is_data_loss_that_is_named(
    broker: Broker, topic: str, start: Start
) -> None:
    broker.create_topic(topic)
    broker.produce(topic, *"abc")
    run = start()
    end = next_batch(run, run.initial())
    broker.delete_topic(topic)
    broker.create_topic(topic)
    broker.produce(topic, "d")
    lower = eventually(
        lambda: found if shown(found := run.latest(end, limited=True)) == {0: 1} else None,
        what="the new topic's end",
    )
    assert lower is not None
    with pytest.raises(DataLoss, match=f"{topic}-0 offset was changed from 3 to 1"):
        run.plan(end, lower)


def test_read_committed_ends_before_an_open_transaction(
    broker: Broker, topic: str, start: Start
) -> None:
    broker.create_topic(topic)
    broker.produce(topic, "a")
    run = start(**{"isolation.level": "read_committed"})
    with Producer(
        bootstrap_servers=broker.bootstrap_servers, transactional_id=f"{topic}-id"
    ) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, value=b"b")
        producer.flush()
        begin = run.initial()
        first = next_batch(run, begin)
        assert shown(first) == {0: 1}
        assert shown(next_batch(start(), begin)) == {0: 2}
        assert run.latest(first, limited=True) == first
        producer.commit_transaction()
    # The record, and the marker that ends its transaction.
    assert shown(next_batch(run, first)) == {0: 3}


def test_a_given_group_shows_what_was_read(broker: Broker, topic: str, start: Start) -> None:
    broker.create_topic(topic)
    broker.produce(topic, *"abc")
    group = broker.group(f"{topic}-group")
    run = start(**{"kafka.group.id": f"{topic}-group"})
    begin = run.initial()
    end = next_batch(run, begin)
    eventually(lambda: group.committed() == {(topic, 0): 0}, what="where the query begins")
    eventually(
        lambda: run.latest(end, limited=True) == end and group.committed() == {(topic, 0): 3},
        what="that the batch was read",
    )


def test_fast_batches_are_not_mirrored_one_by_one(
    broker: Broker, topic: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic(topic)
    broker.produce(topic, *map(str, range(40)))
    commits: list[object] = []
    commit = GroupMirror._commit_once

    async def noted(self: GroupMirror, offsets: Offsets) -> bool:
        commits.append(offsets)
        return await commit(self, offsets)

    monkeypatch.setattr(GroupMirror, "_commit_once", noted)
    run = start(groupId=f"{topic}-group", maxOffsetsPerTrigger="1")
    begun_s = time.monotonic()
    at = run.initial()
    for _ in range(40):
        at = next_batch(run, at)
    seconds = time.monotonic() - begun_s
    assert len(commits) <= 2 + seconds / PAUSE_S
    group = broker.group(f"{topic}-group")
    eventually(
        lambda: run.latest(at, limited=True) == at and group.committed() == {(topic, 0): 40},
        what="that all was read",
    )


def test_a_group_with_consumers_of_its_own_is_refused(
    broker: Broker, topic: str, start: Start
) -> None:
    broker.create_topic(topic)
    with Consumer(
        bootstrap_servers=broker.bootstrap_servers, group_id=f"{topic}-group", client_id="mine"
    ) as consumer:
        consumer.subscribe([topic])
        eventually(lambda: consumer.poll(0.05) or consumer.assignment(), what="an assignment")
        with pytest.raises(GroupTaken, match=rf"{topic}-group has members \(mine\).*mirrorOffsets"):
            start(groupId=f"{topic}-group").initial()
        assert start(groupId=f"{topic}-group", mirrorOffsets="false").initial()


def test_a_group_that_a_task_has_announced_shows_what_was_read(
    broker: Broker, topic: str, start: Start, bootstrap: str
) -> None:
    broker.create_topic(topic)
    broker.produce(topic, *"abc")
    run = start(groupIdPrefix=topic)
    begin = run.initial()
    end = next_batch(run, begin)
    token = run.announcement()
    assert token is not None
    name = query_group(topic, "counts\nid = 0a-1b\nrunId = 2\nbatch = 0", "0a-1b")
    assert name == f"{topic}-counts"
    options = parse_options({"kafka.bootstrap.servers": bootstrap, "subscribe": topic})
    announce(options, name, TopicPartition(topic, 0), 0, token)
    eventually(
        lambda: (
            run.latest(end, limited=True) == end
            and broker.group(name).committed() == {(topic, 0): 3}
        ),
        what="the mirrored end",
    )
    assert run.announcement() is None


def test_a_group_that_cannot_be_written_does_not_stop_the_query(
    broker: Broker, topic: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    from moldau.client.admin import AsyncAdmin

    async def refuse(*arguments: object, **options: object) -> None:
        raise KafkaError("not today")

    broker.create_topic(topic)
    broker.produce(topic, *"abc")
    run = start(groupId=f"{topic}-group")
    begin = run.initial()
    with monkeypatch.context() as patched:
        patched.setattr(AsyncAdmin, "alter_consumer_group_offsets", refuse)
        end = next_batch(run, begin)
        assert shown(end) == {0: 3}
        assert run.latest(end, limited=True) == end
    # The next look at the topic tries again.
    eventually(
        lambda: (
            run.latest(end, limited=True) == end
            and broker.group(f"{topic}-group").committed() == {(topic, 0): 3}
        ),
        what="the mirrored end",
    )


def test_the_lag_in_seconds_is_the_age_of_the_oldest_unread_record(
    broker: Broker, topic: str, start: Start
) -> None:
    broker.create_topic(topic)
    hour_ago_ms = int(time.time() * 1000) - 3_600_000
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send(topic, value=b"a", timestamp=hour_ago_ms - 3_600_000)
        producer.send(topic, value=b"b", timestamp=hour_ago_ms)
    run = start(maxOffsetsPerTrigger="1")
    first = next_batch(run, run.initial())
    report = aged_report(run)
    assert report[LAG_KEY]["records"] == 1
    # An hour and a little, not two: the first record is in the batch.
    assert 3_600 <= report[LAG_KEY]["seconds"] < 7_200
    next_batch(run, first)
    assert aged_report(run)[LAG_KEY] == {"records": 0, "seconds": 0.0}


def test_a_batch_is_planned_between_its_places(broker: Broker, topic: str) -> None:
    broker.create_topic(topic, partitions=2)
    broker.produce(topic, *"abcdef", partition=0)
    broker.produce(topic, "z", partition=1)

    def ranges(**options: str) -> list[tuple[int, int, int]]:
        given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic}
        reader = topic_reader({**given, **options}, topic_schema(include_headers=False))
        return [tuple(each.range[1:]) for each in reader.partitions()]  # type: ignore[attr-defined]

    assert ranges() == [(0, 0, 6), (1, 0, 1)]
    assert ranges(minPartitions="4") == [(0, 0, 2), (0, 2, 4), (0, 4, 6), (1, 0, 1)]
    assert ranges(maxRecordsPerPartition="3") == [(0, 0, 3), (0, 3, 6), (1, 0, 1)]
    some = f'{{"{topic}":{{"0":%d,"1":%d}}}}'
    assert ranges(startingOffsets=some % (2, -2), endingOffsets=some % (4, -1)) == [
        (0, 2, 4),
        (1, 0, 1),
    ]
    future = str(int(time.time() * 1000) + 3_600_000)
    assert ranges(endingTimestamp=future) == [(0, 0, 6), (1, 0, 1)]
    with pytest.raises(PlanError, match="start offset 9 is greater than the resolved end offset 6"):
        ranges(startingOffsets=some % (9, 0))


def has_looked(run: StreamRun, start: Offsets) -> bool:
    """Whether it got an answer in its time; a busy machine may not give it one."""
    try:
        return run.latest(start, limited=True) == start
    except KafkaTimeoutError:
        return False


def test_brokers_that_are_away_for_a_while_do_not_end_a_query(topic: str) -> None:
    """And it may be stopped meanwhile: no call takes long. Away for too long is an error."""
    with Broker() as broker:
        broker.create_topic(topic)
        options = {
            "kafka.bootstrap.servers": broker.bootstrap_servers,
            "subscribe": topic,
            "mirrorOffsets": "false",
        }
        run = StreamRun(parse_options(options, streaming=True))
        hasty = StreamRun(
            parse_options({**options, "kafka.default.api.timeout.ms": "100"}, streaming=True)
        )
        try:
            begin = run.initial()
            assert run.latest(begin, limited=True) == begin
            eventually(lambda: has_looked(hasty, begin), what="a quick answer for the hasty one")
            [node] = broker.nodes.values()
            node.kill()
            with pytest.raises((KafkaTimeoutError, DisconnectError)):
                eventually(lambda: hasty.latest(begin, limited=True) != begin, what="an error")
            assert run.latest(begin, limited=True) == begin
            node.start()
            broker.produce(topic, "a")
            assert shown(next_batch(run, begin)) == {0: 1}
        finally:
            run.close()
            hasty.close()


def stream_reader(broker: Broker, topic: str, **options: str) -> TopicStreamReader:
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic, **options}
    return topic_stream_reader(given, topic_schema(include_headers=False))


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({}, ReadAllAvailable()),
        ({"maxOffsetsPerTrigger": "9"}, ReadMaxRows(9)),
        ({"maxOffsetsPerTrigger": "auto"}, ReadMaxRows(1_000_000)),
        ({"minOffsetsPerTrigger": "5"}, ReadMinRows(5)),
        ({"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "9"}, ReadMaxRows(9)),
    ],
)
def test_spark_is_told_the_limit(broker: Broker, options: dict[str, str], limit: ReadLimit) -> None:
    assert stream_reader(broker, "any", **options).getDefaultReadLimit() == limit


def test_a_reader_is_sent_to_tasks_and_reads_there(broker: Broker, topic: str) -> None:
    """Also while it is at work in the driver; what it has opened there stays there."""
    broker.create_topic(topic)
    broker.produce(topic, *"abc")
    reader = stream_reader(broker, topic, startingOffsets="earliest", groupId=f"{topic}-group")
    try:
        begin = reader.initialOffset()
        end = reader.latestOffset(begin, reader.getDefaultReadLimit())
        assert (begin, end) == ({topic: {"0": 0}}, {topic: {"0": 3}})
        [part] = reader.partitions(begin, end)
        copy, sent = pickle.loads(pickle.dumps((reader, part)))
        rows = [row for batch in copy.read(sent) for row in batch.to_pylist()]
        assert [(row["offset"], row["value"]) for row in rows] == [(0, b"a"), (1, b"b"), (2, b"c")]
        # As it came, though another connector wrote it in another order.
        same = {topic: {"0": 3}}
        assert reader.latestOffset(same, ReadAllAvailable()) is same
        assert reader.partitions(end, end) == []
    finally:
        reader.stop()


def test_another_schema_is_refused() -> None:
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "any"}
    with pytest.raises(OptionError, match=r"fixed schema.*key:binary"):
        topic_stream_reader(given, topic_schema(include_headers=True))
    reader = topic_stream_reader(
        {**given, "includeHeaders": "true"}, topic_schema(include_headers=True)
    )
    reader.stop()
