"""Options are understood as Spark's Kafka source understands them, or refused by name."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from moldau.client.topics import TopicPartition
from moldau.spark.source.machine.offsets import EARLIEST, LATEST
from moldau.spark.source.machine.options import (
    Assign,
    AtOffsets,
    AtTimestamp,
    AtTimestamps,
    SourceOptions,
    Subscribe,
    SubscribePattern,
    parse_options,
)
from moldau.spark.topic_options import OptionError

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}
BASE = {**SERVERS, "subscribe": "orders"}
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def parse(*, streaming: bool | None = None, **options: str) -> SourceOptions:
    return parse_options({**BASE, **options}, streaming=streaming)


def test_defaults_are_those_of_spark() -> None:
    options = parse()
    assert options == SourceOptions(
        config={"bootstrap.servers": "localhost:9092"}, strategy=Subscribe(("orders",))
    )
    assert (options.starting, options.ending, options.group_id) == (None, None, None)
    assert options.fail_on_data_loss
    assert not options.include_headers
    assert options.max_trigger_delay_ms == 900_000
    assert (options.fetch_offset_num_retries, options.fetch_offset_retry_interval_ms) == (3, 1000)
    assert options.isolation_level == "read_uncommitted"


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"STARTINGOFFSETS": " Earliest "}, "starting", EARLIEST),
        ({"startingOffsets": "latest"}, "starting", LATEST),
        (
            {"startingOffsets": '{"a":{"0":23,"1":-1},"b":{"0":-2}}'},
            "starting",
            AtOffsets({A0: 23, A1: -1, B0: -2}),
        ),
        ({"endingoffsets": '{"a":{"0":5}}'}, "ending", AtOffsets({A0: 5})),
        ({"startingTimestamp": "1000"}, "starting", AtTimestamp(1000)),
        (
            {"startingTimestamp": "7", "startingOffsets": "earliest"},
            "starting",
            AtTimestamp(7),
        ),
        ({"endingOffsetsByTimestamp": '{"a": {"0": 9}}'}, "ending", AtTimestamps({A0: 9})),
        ({"startingOffsetsByTimestampStrategy": "LATEST"}, "latest_if_no_match", True),
        ({"maxTriggerDelay": "30s"}, "max_trigger_delay_ms", 30_000),
        ({"maxTriggerDelay": "2h"}, "max_trigger_delay_ms", 7_200_000),
        ({"maxTriggerDelay": "1500"}, "max_trigger_delay_ms", 1_500),
        ({"failOnDataLoss": "FALSE"}, "fail_on_data_loss", False),
        ({"includeHeaders": "true"}, "include_headers", True),
        ({"kafka.isolation.level": "read_committed"}, "isolation_level", "read_committed"),
        ({"isolation.level": "read_committed"}, "isolation_level", "read_committed"),
        ({"kafka.group.id": "g"}, "group_id", "g"),
        ({"groupId": "g", "kafka.group.id": "g"}, "group_id", "g"),
        ({"mirrorOffsets": "false"}, "mirror_offsets", False),
        ({"kafkaConsumer.pollTimeoutMs": "5000"}, "poll_timeout_ms", 5_000),
        ({"fetchOffset.retryIntervalMs": "0"}, "fetch_offset_retry_interval_ms", 0),
        ({"path": "x", "checkpointLocation": "y", "topic": "z"}, "warnings", ()),
        ({"exactlyOnce": "true", "txnAppId": "a", "txnVersion": "1"}, "warnings", ()),
    ],
)
def test_an_option(given: dict[str, str], field: str, value: Any) -> None:
    options = parse(**given)
    assert getattr(options, field) == value
    assert pickle.loads(pickle.dumps(options)) == options


def test_settings_of_the_client_are_passed_on_without_group_and_isolation_level() -> None:
    options = parse(
        **{
            "kafka.fetch.max.bytes": "1000",
            "kafka.group.id": "g",
            "kafka.isolation.level": "read_committed",
            "kafka.linger.ms": "5",
        }
    )
    assert options.config == {"bootstrap.servers": "localhost:9092", "fetch.max.bytes": "1000"}


@pytest.mark.parametrize(
    ("given", "strategy"),
    [
        ({"subscribe": " a, b ,,a"}, Subscribe(("a", "b"))),
        ({"assign": '{"a":[0,1],"b":[0]}'}, Assign(frozenset({A0, A1, B0}))),
    ],
)
def test_what_is_read(given: dict[str, str], strategy: Any) -> None:
    assert parse_options({**SERVERS, **given}).strategy == strategy


def test_a_pattern_matches_whole_names() -> None:
    strategy = parse_options({**SERVERS, "subscribePattern": " or.*s "}).strategy
    assert isinstance(strategy, SubscribePattern)
    assert strategy.pattern.matches("orders")
    assert not strategy.pattern.matches("orders2")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"startingOffset": "latest"}, "Unknown option 'startingoffset'.*mean startingOffsets"),
        ({"bootstrap.servers": "a:1"}, "Did you mean kafka.bootstrap.servers"),
        ({"kafka.fetch.max.byte": "1"}, "'kafka.fetch.max.byte'.*kafka.fetch.max.bytes"),
        ({"kafka.fetch.max.bytes": "x"}, "'kafka.fetch.max.bytes'.*INT"),
        ({"kafka.bootstrap.servers": "nowhere"}, "'kafka.bootstrap.servers'.*host:port"),
        ({"kafka.bootstrap.servers": " "}, "'kafka.bootstrap.servers' must be specified"),
        ({"kafka.auto.offset.reset": "none"}, "'auto.offset.reset' is not supported.*starting"),
        ({"kafka.key.deserializer": "x"}, "'key.deserializer' is not supported"),
        ({"kafka.value.deserializer": "x"}, "'value.deserializer' is not supported"),
        ({"kafka.enable.auto.commit": "true"}, "'enable.auto.commit' is not supported"),
        ({"kafka.interceptor.classes": "x"}, "'interceptor.classes' is not supported"),
        ({"assign": '{"a":[0]}'}, "Only one of.*assign and subscribe"),
        ({"subscribe": " , "}, "No topics to subscribe to"),
        ({"minPartitions": "0"}, "'minPartitions' is '0': must be positive"),
        ({"maxRecordsPerPartition": "x"}, "'maxRecordsPerPartition' is 'x': .*whole number"),
        ({"maxOffsetsPerTrigger": "9" * 30}, "too large"),
        (
            {"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"},
            r"minOffsetsPerTrigger\(5\) is higher",
        ),
        ({"maxTriggerDelay": "1 fortnight"}, "'maxTriggerDelay'.*15m"),
        ({"failOnDataLoss": "maybe"}, "'failOnDataLoss' is 'maybe': true or false"),
        ({"startingTimestamp": "today"}, "Expected a single long value"),
        ({"startingOffsets": "first"}, "Expected 'earliest', 'latest'"),
        ({"startingOffsets": '{"a":{"0":-3}}'}, "a-0: below -2"),
        ({"startingOffsets": '{"a":{"0":1.5}}'}, "a-0: not a whole number"),
        ({"startingOffsets": '{"a":[0]}'}, "a: not an object"),
        ({"startingOffsets": '{"a":{"-1":0}}'}, "not a partition"),
        ({"startingOffsetsByTimestamp": '{"a":{"0":-1}}'}, "milliseconds since 1970"),
        ({"startingOffsetsByTimestampStrategy": "earliest"}, "error or latest"),
        ({"isolation.level": "serializable"}, "read_committed or read_uncommitted"),
        (
            {"isolation.level": "read_committed", "kafka.isolation.level": "read_uncommitted"},
            "differ",
        ),
        ({"groupId": "a", "kafka.group.id": "b"}, "different groups"),
        ({"groupId": " "}, "'groupId' is ' ': must not be empty"),
    ],
)
def test_what_is_refused(given: dict[str, str], problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        parse(**given)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "One of the following options must be specified"),
        ({"assign": "a"}, "No topicpartitions to assign"),
        ({"assign": "{}"}, "No topicpartitions to assign"),
        ({"assign": '{"a":0}'}, "Expected e.g."),
        ({"subscribePattern": " "}, "Pattern to subscribe is empty"),
        ({"subscribePattern": "a("}, "no regular expression"),
    ],
)
def test_what_is_read_has_to_be_said(given: dict[str, str], problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        parse_options({**SERVERS, **given})


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    value = {"endingOffsets": "latest", "endingTimestamp": "1"}.get(name, '{"a":{"0":1}}')
    with pytest.raises(OptionError, match="not valid in streaming queries"):
        parse(streaming=True, **{name: value})
    assert parse(streaming=False, **{name: value}).ending is not None


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"startingOffsets": "latest"}, "starting offset can't be latest"),
        ({"startingOffsets": '{"a":{"0":-1}}'}, "startingOffsets for a-0 can't be latest"),
        ({"endingOffsets": "earliest"}, "ending offset can't be earliest"),
        ({"endingOffsets": '{"a":{"0":-2}}'}, "ending offset for a-0 can't be earliest"),
        (
            {"startingOffsets": '{"a":{"0":5}}', "endingOffsets": '{"a":{"0":4}}'},
            "start offset 5 is greater than the end offset 4 for topic a partition 0",
        ),
        (
            {
                "startingOffsetsByTimestamp": '{"a":{"0":5}}',
                "endingOffsetsByTimestamp": '{"b":{"0":6}}',
            },
            "same topic-partitions.*a-0, b-0",
        ),
    ],
)
def test_what_a_batch_refuses(given: dict[str, str], problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        parse(streaming=False, **given)


def test_a_batch_says_which_options_are_for_streams() -> None:
    warnings = parse(streaming=False, maxOffsetsPerTrigger="5", maxTriggerDelay="1m").warnings
    assert [each.split()[0] for each in warnings] == ["maxOffsetsPerTrigger", "maxTriggerDelay"]


def test_a_prefix_is_of_no_use_with_a_group() -> None:
    [warning] = parse(groupId="g", groupIdPrefix="p").warnings
    assert "groupIdPrefix is ignored" in warning
