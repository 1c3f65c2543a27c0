"""Dynamic layers, alterations and descriptions, as a Kafka 4.3 broker answers them."""

from __future__ import annotations

import pytest

from moldau.broker.config import (
    BrokerConfig,
    ConfigEntry,
    ConfigLayers,
    ConfigResourceType,
    ConfigRules,
    DynamicBrokerConfig,
    LogConfig,
    describe_broker,
    describe_broker_defaults,
    describe_client_metrics,
    describe_group,
    describe_loggers,
    describe_topic,
    validate_client_metrics_config,
    validate_group_config,
    validate_logger_changes,
    validate_topic_config,
)
from moldau.config import ConfigError, ConfigType
from moldau.wire.errors import ApiError, ErrorCode

STATIC = BrokerConfig.from_properties(
    {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": "localhost:9093",
        "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "controller.listener.names": "CONTROLLER",
        "log.retention.hours": "100",
        "some.unknown": "5",
        "ssl.keystore.password": "secret",
    }
)


def dynamic(**layers: dict[str, str]) -> DynamicBrokerConfig:
    config = DynamicBrokerConfig(STATIC)
    config.apply(cluster=layers.get("cluster", {}), broker=layers.get("broker", {}))
    return config


def test_precedence_of_layers() -> None:
    config = DynamicBrokerConfig(STATIC)
    assert config.current["log.segment.bytes"] == 1073741824
    changed, problems = config.apply(
        cluster={"log.segment.bytes": "2000000", "message.max.bytes": "7"},
        broker={"message.max.bytes": "9"},
    )
    assert changed == {"log.segment.bytes", "message.max.bytes"}
    assert problems == ()
    assert config.current["log.segment.bytes"] == 2000000
    assert config.current["message.max.bytes"] == 9
    assert LogConfig.for_topic(config.current, {}).max_message_bytes == 9
    changed, _ = config.apply(cluster={}, broker={})
    assert changed == {"log.segment.bytes", "message.max.bytes"}
    assert config.current["message.max.bytes"] == 1048588


def test_names_that_are_only_dynamic_have_a_value_at_any_time() -> None:
    name = "leader.replication.throttled.rate"
    config = dynamic(broker={}, cluster={})
    assert config.current[name] == 2**63 - 1
    config.apply(broker={name: "1000"}, cluster={})
    assert config.current[name] == 1000


def test_a_dynamic_value_hides_static_synonyms() -> None:
    config = dynamic(broker={"log.retention.ms": "777"})
    assert LogConfig.for_topic(config.current, {}).retention_ms == 777
    assert config.current["log.retention.hours"] == 168
    assert LogConfig.for_topic(STATIC, {}).retention_ms == 100 * 3600_000


def test_stored_values_that_cannot_be_applied_are_left_out() -> None:
    config = DynamicBrokerConfig(STATIC)
    changed, problems = config.apply(
        cluster={"listeners": "PLAINTEXT://:1", "log.segment.bytes": "2000000"},
        broker={"num.partitions": "3", "message.max.bytes": "x"},
    )
    assert changed == {"log.segment.bytes"}
    assert len(problems) == 3
    assert config.current["num.partitions"] == 1


def test_a_combination_that_cannot_be_applied_leaves_the_last_good_one() -> None:
    config = dynamic(broker={"message.max.bytes": "9"})
    changed, problems = config.apply(cluster={}, broker={"log.cleaner.threads": "500"})
    assert changed == frozenset()
    assert len(problems) == 1
    assert config.current["message.max.bytes"] == 9


@pytest.mark.parametrize(
    ("values", "per_broker", "part"),
    [
        ({"log.retention.ms": "777"}, True, None),
        ({"log.retention.ms": "777"}, False, None),
        ({"log.retention.ms": "x"}, True, "Not a number of type LONG"),
        ({"log.retention.ms": "0"}, True, "unlimited (-1)"),
        (
            {"num.partitions": "3"},
            True,
            "Cannot update these configs dynamically: [num.partitions]",
        ),
        ({"log.retention.hours": "3"}, False, "Cannot update these configs dynamically"),
        ({"node.id": "3"}, True, "[node.id]"),
        ({"foo.bar": "3"}, True, None),
        ({"foo.bar": "3"}, False, None),
        ({"ssl.keystore.location": "/x"}, True, "only per-listener using the listener prefix"),
        ({"ssl.protocol": "TLSv1.2"}, True, None),
        ({"ssl.protocol": "TLSv1.2"}, False, "broker id must be specified: [ssl.protocol]"),
        ({"max.connection.creation.rate": "0"}, False, "Invalid max.connection.creation.rate 0"),
        ({"listener.name.plaintext.max.connection.creation.rate": "0"}, True, "creation.rate 0"),
        ({"listener.name.plaintext.ssl.keystore.location": "/x"}, True, None),
        ({"listener.name.plaintext.ssl.keystore.location": "/x"}, False, "broker id must be"),
        ({"listener.name.plaintext.max.connections": "5"}, False, None),
        ({"listener.name.plaintext.max.connections": "-5"}, False, "at least 0"),
        ({"listeners": "PLAINTEXT://:9"}, False, "broker id must be specified: [listeners]"),
        ({"listeners": "FOO://:9"}, True, "FOO"),
        ({"log.cleaner.threads": "2"}, True, None),
        ({"log.cleaner.threads": "5"}, True, "double"),
        ({"num.io.threads": "100"}, True, "double"),
        ({"num.io.threads": "1"}, True, "half"),
        ({"leader.replication.throttled.rate": "5"}, False, None),
        ({"leader.replication.throttled.rate": "-5"}, True, "at least 0"),
        ({"max.connections.per.ip": "0"}, True, "overrides"),
        ({"compression.type": "none"}, True, "String must be one of"),
        ({"cordoned.log.dirs": "*"}, False, "broker id must be specified"),
        ({"cordoned.log.dirs": "/zzz"}, True, "/zzz"),
        ({"principal.builder.class": "foo.Bar"}, True, None),
        ({"metric.reporters": "foo"}, True, "could not be found"),
        ({"log.local.retention.ms": "99999999999999"}, True, "Value must not be more than"),
        ({"log.local.retention.ms": "-1"}, True, "must not be -1"),
        ({"sasl.jaas.config": "x"}, True, None),
    ],
)
def test_broker_alterations(values: dict[str, str], per_broker: bool, part: str | None) -> None:
    rules = ConfigRules(DynamicBrokerConfig(STATIC))
    if part is None:
        rules.validate_broker(values, per_broker=per_broker)
    else:
        with pytest.raises(ConfigError) as caught:
            rules.validate_broker(values, per_broker=per_broker)
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"retention.ms": " 77 ", "cleanup.policy": "compact,delete"}, None),
        ({"cleanup.policy": ""}, None),
        ({"cleanup.policy": "delete,delete"}, None),
        ({"internal.segment.bytes": "100"}, None),
        ({"local.retention.ms": "5", "retention.ms": "4"}, None),
        ({"leader.replication.throttled.replicas": "0:1,1:2"}, None),
        ({"leader.replication.throttled.replicas": "*"}, None),
        ({"leader.replication.throttled.replicas": "0-1"}, "[partitionId]:[brokerId]"),
        ({"leader.replication.throttled.replicas": "*,0:5"}, "[partitionId]:[brokerId]"),
        (
            {"retention.ms": "x"},
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
        ({"retention.ms": "-2"}, "Value must be at least -1"),
        ({"retention.ms": None}, "Null value not supported for topic configs: retention.ms"),
        ({"foo": "1"}, "Unknown topic config name: foo"),
        ({"retention.m": "1"}, "Did you mean retention.ms?"),
        ({"cleanup.policy": "foo"}, "String must be one of: compact, delete"),
        ({"message.format.version": "2.0"}, "Unknown topic config name: message.format.version"),
        (
            {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
            "min.compaction.lag.ms (10) > max.compaction.lag.ms (5)",
        ),
        ({"remote.storage.enable": "true"}, "Tiered Storage functionality is disabled"),
    ],
)
def test_topic_alterations(overrides: dict[str, str | None], message: str | None) -> None:
    if message is None:
        validate_topic_config(overrides, STATIC)
    else:
        with pytest.raises(ConfigError) as caught:
            validate_topic_config(overrides, STATIC)
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("overrides", "part"),
    [
        ({"consumer.session.timeout.ms": "50000"}, None),
        ({"consumer.session.timeout.ms": "5"}, "group.consumer.min.session.timeout.ms"),
        ({"consumer.session.timeout.ms": "500000"}, "group.consumer.max.session.timeout.ms"),
        ({"consumer.heartbeat.interval.ms": "14000"}, None),
        ({"consumer.heartbeat.interval.ms": "4"}, "group.consumer.min.heartbeat.interval.ms"),
        ({"consumer.assignment.interval.ms": "20000"}, "max.assignment.interval.ms"),
        ({"share.auto.offset.reset": "by_duration:P1DT2H3M4.5S"}, None),
        ({"share.auto.offset.reset": "by_duration:xx"}, "by_duration"),
        ({"share.auto.offset.reset": "by_duration:PT"}, "by_duration"),
        ({"share.auto.offset.reset": "Latest"}, "latest"),
        ({"share.isolation.level": "READ_COMMITTED"}, "read_committed, read_uncommitted"),
        ({"share.delivery.count.limit": "11"}, "group.share.max.delivery.count.limit"),
        ({"share.record.lock.duration.ms": "70000"}, "group.share.max.record.lock.duration.ms"),
        ({"streams.num.standby.replicas": "5"}, "group.streams.max.standby.replicas"),
        ({"foo": "4"}, "Unknown group config name: foo"),
        ({"share.session.timeout.ms": "x"}, "Not a number of type INT"),
    ],
)
def test_group_alterations(overrides: dict[str, str], part: str | None) -> None:
    if part is None:
        validate_group_config(overrides, STATIC)
    else:
        with pytest.raises(ConfigError) as caught:
            validate_group_config(overrides, STATIC)
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("overrides", "code"),
    [
        ({"metrics": "*", "interval.ms": "5000", "match": "client_id=a.*"}, None),
        ({"match": ""}, None),
        ({"interval.ms": "50"}, ErrorCode.INVALID_REQUEST),
        ({"interval.ms": "3600001"}, ErrorCode.INVALID_REQUEST),
        ({"foo": "1"}, ErrorCode.INVALID_REQUEST),
        ({"interval.ms": "x"}, ErrorCode.INVALID_CONFIG),
        ({"match": "foo=a"}, ErrorCode.INVALID_CONFIG),
        ({"match": "client_id"}, ErrorCode.INVALID_CONFIG),
        ({"match": "client_id=["}, ErrorCode.INVALID_CONFIG),
    ],
)
def test_client_metrics_alterations(overrides: dict[str, str], code: ErrorCode | None) -> None:
    if code is None:
        validate_client_metrics_config(overrides)
    elif code is ErrorCode.INVALID_CONFIG:
        with pytest.raises(ConfigError):
            validate_client_metrics_config(overrides)
    else:
        with pytest.raises(ApiError) as caught:
            validate_client_metrics_config(overrides)
        assert caught.value.code == code


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (("root", 0, "DEBUG"), None),
        (("moldau.x", 1, None), None),
        (("root", 0, "FOO"), ErrorCode.INVALID_CONFIG),
        (("root", 0, "debug"), ErrorCode.INVALID_CONFIG),
        (("root", 1, None), ErrorCode.INVALID_REQUEST),
        (("foo.bar", 0, "DEBUG"), ErrorCode.INVALID_CONFIG),
        (("foo.bar", 1, None), ErrorCode.INVALID_CONFIG),
        (("root", 2, "DEBUG"), ErrorCode.INVALID_REQUEST),
        (("root", 7, "DEBUG"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_logger_alterations(operation: tuple[str, int, str | None], code: ErrorCode | None) -> None:
    loggers = {"root": "INFO", "moldau.x": "WARN"}
    if code is None:
        validate_logger_changes([operation], loggers)
    else:
        with pytest.raises(ApiError) as caught:
            validate_logger_changes([operation], loggers)
        assert caught.value.code == code


@pytest.mark.parametrize(
    ("resource", "key", "is_list", "default"),
    [
        (ConfigResourceType.TOPIC, "cleanup.policy", True, "delete"),
        (ConfigResourceType.TOPIC, "retention.ms", False, str(100 * 3600_000)),
        (ConfigResourceType.BROKER, "log.cleanup.policy", True, "delete"),
        (ConfigResourceType.BROKER, "node.id", False, None),
        (ConfigResourceType.BROKER, "no.such", False, None),
        (ConfigResourceType.CLIENT_METRICS, "metrics", False, None),
    ],
)
def test_what_can_be_appended_to(
    resource: ConfigResourceType, key: str, is_list: bool, default: str | None
) -> None:
    rules = ConfigRules(DynamicBrokerConfig(STATIC))
    assert rules.is_list(resource, key) is is_list
    assert rules.default_value(resource, key) == default


def line(entries: list[ConfigEntry], name: str) -> tuple[object, ...]:
    """(value, source, type, read only, sensitive, synonyms) with synonyms as plain tuples."""
    (entry,) = [entry for entry in entries if entry.name == name]
    synonyms = [(s.name, s.value, int(s.source)) for s in entry.synonyms]
    return (
        entry.value,
        int(entry.source),
        int(entry.type),
        entry.read_only,
        entry.is_sensitive,
        synonyms,
    )


LAYERS = ConfigLayers(
    STATIC,
    cluster={"log.retention.ms": "888", "log.segment.bytes": "2000000", "num.io.threads": "16"},
    broker={
        "log.retention.ms": "777",
        "listener.name.plaintext.max.connections": "5",
        "listener.name.plaintext.plain.sasl.jaas.config": "x",
        "leader.replication.throttled.rate": "5",
    },
)
RETENTION_SYNONYMS = [
    ("log.retention.ms", "777", 2),
    ("log.retention.ms", "888", 3),
    ("log.retention.hours", "100", 4),
    ("log.retention.hours", "168", 5),
]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("log.retention.ms", ("777", 2, 5, False, False, RETENTION_SYNONYMS)),
        (
            "log.segment.bytes",
            (
                "2000000",
                3,
                3,
                False,
                False,
                [("log.segment.bytes", "2000000", 3), ("log.segment.bytes", "1073741824", 5)],
            ),
        ),
        (
            "log.retention.hours",
            (
                "168",
                4,
                3,
                True,
                False,
                [("log.retention.hours", "100", 4), ("log.retention.hours", "168", 5)],
            ),
        ),
        ("log.roll.ms", (None, 5, 5, False, False, [])),
        ("log.roll.hours", ("168", 5, 3, True, False, [("log.roll.hours", "168", 5)])),
        ("node.id", ("1", 4, 3, True, False, [("node.id", "1", 4)])),
        ("broker.id", ("1", 4, 3, True, False, [("broker.id", "1", 4), ("broker.id", "-1", 5)])),
        ("broker.rack", (None, 5, 2, True, False, [])),
        (
            "log.cleaner.io.max.bytes.per.second",
            (
                "1.7976931348623157E308",
                5,
                6,
                False,
                False,
                [("log.cleaner.io.max.bytes.per.second", "1.7976931348623157E308", 5)],
            ),
        ),
        ("some.unknown", (None, 4, 0, True, True, [("some.unknown", None, 4)])),
        ("ssl.keystore.password", (None, 4, 9, False, True, [("ssl.keystore.password", None, 4)])),
        ("ssl.keystore.key", (None, 5, 9, False, True, [])),
        (
            "listener.name.plaintext.max.connections",
            (
                "5",
                2,
                3,
                True,
                False,
                [
                    ("listener.name.plaintext.max.connections", "5", 2),
                    ("max.connections", "2147483647", 5),
                ],
            ),
        ),
        (
            "listener.name.plaintext.plain.sasl.jaas.config",
            (
                None,
                2,
                9,
                True,
                True,
                [("listener.name.plaintext.plain.sasl.jaas.config", None, 2)],
            ),
        ),
        (
            "leader.replication.throttled.rate",
            ("5", 2, 5, False, False, [("leader.replication.throttled.rate", "5", 2)]),
        ),
    ],
)
def test_described_broker(name: str, expected: tuple[object, ...]) -> None:
    assert line(describe_broker(LAYERS), name) == expected


def test_a_described_broker_has_every_public_key_and_no_internal_one() -> None:
    names = [entry.name for entry in describe_broker(ConfigLayers(STATIC))]
    assert len(names) == len(set(names)) == 340 + 1
    assert "unstable.api.versions.enable" not in names


def test_described_cluster_defaults() -> None:
    entries = describe_broker_defaults(LAYERS)
    assert [entry.name for entry in entries] == list(LAYERS.cluster)
    assert line(entries, "log.retention.ms") == (
        "888",
        3,
        5,
        False,
        False,
        [("log.retention.ms", "888", 3)],
    )


@pytest.mark.parametrize(
    ("layers", "overrides", "name", "expected"),
    [
        (
            ConfigLayers(STATIC),
            {},
            "retention.ms",
            (str(100 * 3600_000), 5, 5, False, False, []),
        ),
        (
            LAYERS,
            {"retention.ms": "77"},
            "retention.ms",
            ("77", 1, 5, False, False, [("retention.ms", "77", 1), *RETENTION_SYNONYMS]),
        ),
        (
            LAYERS,
            {},
            "segment.bytes",
            (
                "2000000",
                3,
                3,
                False,
                False,
                [("log.segment.bytes", "2000000", 3), ("log.segment.bytes", "1073741824", 5)],
            ),
        ),
        (LAYERS, {}, "remote.storage.enable", ("false", 5, 1, False, False, [])),
        (
            LAYERS,
            {"internal.segment.bytes": "100"},
            "internal.segment.bytes",
            ("100", 1, 3, False, False, [("internal.segment.bytes", "100", 1)]),
        ),
        (
            LAYERS,
            {"cleanup.policy": "delete,delete"},
            "cleanup.policy",
            (
                "delete",
                1,
                7,
                False,
                False,
                [("cleanup.policy", "delete", 1), ("log.cleanup.policy", "delete", 5)],
            ),
        ),
    ],
)
def test_described_topic(
    layers: ConfigLayers, overrides: dict[str, str], name: str, expected: tuple[object, ...]
) -> None:
    assert line(describe_topic(layers, overrides), name) == expected


def test_a_described_topic_has_all_public_keys_sorted() -> None:
    names = [entry.name for entry in describe_topic(LAYERS, {})]
    assert len(names) == 33
    assert names == sorted(names)
    assert "internal.segment.bytes" not in names


def test_effective_topic_config_of_given_layers() -> None:
    rules = ConfigRules(DynamicBrokerConfig(STATIC))
    entries = list(rules.effective_topic({"flush.ms": "4"}, {"log.preallocate": "true"}, {}))
    assert line(entries, "preallocate")[:2] == ("true", 3)
    assert line(entries, "flush.ms")[:2] == ("4", 1)


def test_described_group() -> None:
    entries = describe_group(
        ConfigLayers(STATIC),
        {"consumer.heartbeat.interval.ms": "14000", "share.auto.offset.reset": "earliest"},
    )
    assert len(entries) == 17
    assert line(entries, "consumer.heartbeat.interval.ms") == (
        "14000",
        8,
        3,
        False,
        False,
        [
            ("consumer.heartbeat.interval.ms", "14000", 8),
            ("group.consumer.heartbeat.interval.ms", "5000", 5),
        ],
    )
    assert line(entries, "share.auto.offset.reset")[5] == [
        ("share.auto.offset.reset", "earliest", 8),
        ("share.auto.offset.reset", "latest", 5),
    ]
    assert line(entries, "streams.session.timeout.ms") == (
        "45000",
        5,
        3,
        False,
        False,
        [("group.streams.session.timeout.ms", "45000", 5)],
    )


def test_described_client_metrics_and_loggers() -> None:
    entries = describe_client_metrics({"metrics": "a,a"})
    assert line(entries, "metrics") == ("a", 7, 7, False, False, [("metrics", "a", 7)])
    assert line(entries, "interval.ms") == ("300000", 5, 3, False, False, [])
    (logger,) = describe_loggers({"root": "INFO"})
    assert (logger.value, int(logger.source), logger.type) == ("INFO", 6, ConfigType.UNKNOWN)
