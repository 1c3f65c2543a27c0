"""What requests to the SQL server may set."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.services.sql.machine.overrides import check_overrides, is_known
from moldau.sql.errors import KsqlException


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("auto.offset.reset", "earliest"),
        ("auto.offset.reset", None),
        ("ksql.streams.auto.offset.reset", "latest"),
        ("ksql.streams.num.stream.threads", 2),
        ("ksql.streams.group.protocol", "streams"),
        ("consumer.max.poll.records", "10"),
        ("ksql.streams.producer.linger.ms", 5),
        ("ksql.query.pull.table.scan.enabled", False),
        ("ksql.functions.collect_list.limit", 1),
        ("ksql.fail.on.deserialization.error", True),
        ("ksql.new.query.planner.enabled", True),
        (
            "default.deserialization.exception.handler",
            "org.apache.kafka.streams.errors.LogAndFailExceptionHandler",
        ),
        ("request.ksql.query.pull.skip.forwarding", True),
    ],
)
def test_known_properties_may_be_set(name: str, value: Any) -> None:
    check_overrides({name: value}, ["something.else"])
    assert is_known(name)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("colour", "red", "Not recognizable as ksql, streams, consumer, or producer property"),
        ("ksql.colour", "red", "Not recognizable as ksql, streams"),
        ("auto.offset.reset", "none", "'none' is not valid"),
        ("auto.offset.reset", "soon", "Failed to coerce type of value 'soon'"),
        ("commit.interval.ms", "often", "Failed to coerce type of value 'often'"),
        ("bootstrap.servers", "evil:9092", "Cannot override property"),
        ("ksql.streams.bootstrap.servers", "evil:9092", "Cannot override property"),
        ("ksql.streams.producer.bootstrap.servers", "evil:9092", "Cannot override property"),
        ("ssl.truststore.location", "/etc", "Cannot override property"),
        ("ksql.service.id", "other_", "Cannot override property"),
        ("ksql.extension.dir", "/tmp", "Not recognizable|Cannot override property"),
        ("metric.reporters", "subprocess.Popen", "may name Kafka's own classes only"),
        ("ksql.streams.interceptor.classes", "os.system", "may name Kafka's own classes only"),
        (
            "ksql.streams.deserialization.exception.handler",
            "os.system",
            "may name Kafka's own classes only",
        ),
        ("num.stream.threads", 5, "prohibited by the KSQL server denylist"),
        ("ksql.streams.num.stream.threads", 5, "prohibited by the KSQL server denylist"),
    ],
)
def test_other_properties_are_refused(name: str, value: Any, message: str) -> None:
    with pytest.raises(KsqlException, match=message):
        check_overrides({name: value}, ["num.stream.threads"])
