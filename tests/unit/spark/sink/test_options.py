"""Which options and columns the sink takes, and what it says of others."""

from __future__ import annotations

import pytest

from moldau.spark.sink.machine.options import check_columns, parse
from moldau.spark.topic_options import OptionError

BASE = {"kafka.bootstrap.servers": "127.0.0.1:9092", "topic": "out"}
STREAM = BASE | {"checkpointLocation": "/tmp/cp"}
HEADERS = "array<struct<key:string,value:binary>>"


def test_stream_is_exactly_once_and_a_batch_is_not() -> None:
    assert parse(STREAM, is_stream=True).exactly_once
    assert not parse(BASE, is_stream=False).exactly_once


def test_prefix_belongs_to_the_checkpoint() -> None:
    def prefix(location: str) -> str:
        return parse(BASE | {"checkpointLocation": location}, is_stream=True).prefix

    assert prefix("/tmp/cp") == prefix("file:///tmp/cp/") == prefix("/tmp/cp/")
    assert prefix("/tmp/cp") != prefix("/tmp/cp2")
    assert prefix("hdfs://host/cp") != prefix("/host/cp")
    assert prefix("/tmp/cp").startswith("moldau-spark-")


def test_prefix_may_be_given() -> None:
    options = parse(BASE | {"kafka.transactional.id": "mine"}, is_stream=True)
    assert options.prefix == "mine"
    # Tasks and driver make their own ids of it.
    assert "transactional.id" not in options.config


def test_names_in_any_case() -> None:
    given = {"KAFKA.BOOTSTRAP.SERVERS": "h:1", "Topic": "t", "EXACTLYONCE": "False"}
    options = parse(given, is_stream=True)
    assert (options.topic, options.exactly_once) == ("t", False)
    assert options.config == {"bootstrap.servers": "h:1"}


def test_named_batch_is_exactly_once_per_topic() -> None:
    named = BASE | {"txnAppId": "app", "txnVersion": "7"}
    options = parse(named, is_stream=False)
    assert options.exactly_once
    assert options.transaction == ("app", 7)
    other = parse(named | {"topic": "other"}, is_stream=False)
    assert options.prefix != other.prefix
    assert options.prefix == parse(named | {"txnVersion": "8"}, is_stream=False).prefix


def test_settings_of_consumers_are_left_out() -> None:
    given = BASE | {"kafka.isolation.level": "read_committed", "kafka.linger.ms": "5"}
    assert parse(given, is_stream=False).config == {
        "bootstrap.servers": "127.0.0.1:9092",
        "linger.ms": "5",
    }


@pytest.mark.parametrize(
    ("given", "is_stream", "problem"),
    [
        ({"topic": "t"}, False, "'kafka.bootstrap.servers' must be specified"),
        (BASE | {"kafka.key.serializer": "x"}, False, "'key.serializer' is not supported"),
        (BASE | {"kafka.value.serializer": "x"}, False, "'value.serializer' is not supported"),
        (BASE | {"kafka.linger.mss": "5"}, False, "Did you mean 'kafka.linger.ms'?"),
        (BASE | {"exactlyonces": "true"}, False, "Did you mean 'exactlyOnce'?"),
        (BASE | {"exactlyOnce": "yes"}, False, "true or false is expected"),
        (BASE, True, "set the option checkpointLocation or kafka.transactional.id"),
        (
            STREAM | {"kafka.acks": "1"},
            True,
            "'kafka.acks' is '1': an exactly-once write needs all",
        ),
        (STREAM | {"kafka.enable.idempotence": "false"}, True, "needs true"),
        (BASE | {"kafka.transactional.id": "x"}, False, "needs 'exactlyOnce' to be true"),
        (BASE | {"txnAppId": "a"}, False, "Give both txnAppId and txnVersion"),
        (
            BASE | {"txnAppId": "a", "txnVersion": "x"},
            False,
            "'txnVersion' is 'x': must be a whole",
        ),
        (
            STREAM | {"txnAppId": "a", "txnVersion": "1"},
            True,
            "for batch writes inside foreachBatch",
        ),
        (
            BASE | {"txnAppId": "a", "txnVersion": "1", "exactlyOnce": "false"},
            False,
            "need exactlyOnce",
        ),
        (BASE | {"topic": " "}, False, "'topic' is empty"),
    ],
)
def test_refused_options(given: dict[str, str], is_stream: bool, problem: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse(given, is_stream=is_stream)
    assert problem in str(caught.value)


def test_columns_that_are_written() -> None:
    types = {
        "offset": "bigint",
        "key": "binary",
        "value": "string",
        "topic": "string",
        "partition": "int",
        "timestamp": "timestamp",
        "headers": HEADERS,
    }
    own = parse({"kafka.bootstrap.servers": "h:1"}, is_stream=False)
    assert check_columns(types, own) == (
        "key",
        "value",
        "topic",
        "partition",
        "timestamp",
        "headers",
    )
    # The option stands above the column, as in Spark's own sink.
    less = parse(BASE | {"includeHeaders": "false"}, is_stream=False)
    assert check_columns(types, less) == ("key", "value", "partition", "timestamp")
    assert check_columns({"value": "varchar(10)"}, less) == ("value",)


@pytest.mark.parametrize(
    ("types", "problem"),
    [
        ({"id": "string"}, "Required attribute 'value' not found: the DataFrame has id"),
        (
            {"value": "int"},
            "value attribute unsupported type INT. value must be a(n) STRING or BINA",
        ),
        ({"value": "string", "key": "bigint"}, "key must be a(n) STRING or BINARY"),
        ({"value": "string", "partition": "bigint"}, "partition must be a(n) INT"),
        ({"value": "string", "headers": "map<string,binary>"}, "headers must be a(n) ARRAY<STRUCT"),
        ({"value": "string", "timestamp": "bigint"}, "timestamp must be a(n) TIMESTAMP"),
    ],
)
def test_refused_columns(types: dict[str, str], problem: str) -> None:
    with pytest.raises(OptionError) as caught:
        check_columns(types, parse(BASE, is_stream=False))
    assert problem in str(caught.value)


def test_topic_must_come_from_somewhere() -> None:
    options = parse({"kafka.bootstrap.servers": "h:1"}, is_stream=False)
    with pytest.raises(OptionError, match="topic option required"):
        check_columns({"value": "string"}, options)
    with pytest.raises(OptionError, match=r"topic must be a\(n\) STRING"):
        check_columns({"value": "string", "topic": "int"}, options)
