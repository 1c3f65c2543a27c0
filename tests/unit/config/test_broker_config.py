"""A broker's configuration at start: what is accepted, what is refused and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.broker.config import BrokerConfig, Listener, LogConfig, Voter, resolve_listeners
from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.config import ConfigError, load_properties
from moldau.config.section import Section

BASE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
}


def make(changes: str = "") -> BrokerConfig:
    """BASE with `key=value;key=value` changes; `-key` removes."""
    properties = dict(BASE)
    for change in filter(None, changes.split(";")):
        if change.startswith("-"):
            del properties[change[1:]]
        else:
            key, _, value = change.partition("=")
            properties[key] = value
    return BrokerConfig.from_properties(properties)


def test_values_sections_and_defaults() -> None:
    config = make("num.partitions=3;log.dirs=/a,/b;metadata.log.dir=/m;max.connections=9")
    assert config["num.partitions"] == 3
    assert config.network.max_connections == 9
    assert config.network.socket_request_max_bytes == 104857600
    assert config.quorum.controller_quorum_voters == (Voter(1, "localhost", 9093),)
    assert config.log_dirs == ("/a", "/b")
    assert config.metadata_log_dir == "/m"
    assert config.node_id == 1
    assert config.is_broker
    assert config.is_controller
    with pytest.raises(KeyError):
        config["no.such.key"]


def test_a_backlog_that_is_set_is_used_and_kafkas_default_is_shown() -> None:
    assert make("socket.listen.backlog.size=50").network.socket_listen_backlog_size == 50
    assert make()["socket.listen.backlog.size"] == 50
    assert make().network.socket_listen_backlog_size == 4_096


def test_sections_are_frozen_and_replaceable() -> None:
    network = make().network
    with pytest.raises(AttributeError):
        network.max_connections = 1
    assert network.replace(max_connections=1).max_connections == 1
    assert network.replace(max_connections=1) != network == network.replace()
    with pytest.raises(TypeError):
        network.replace(no_such_field=1)


class Example(Section, keys=BROKER_KEYS, prefix="controller.quorum."):
    election_timeout_ms: int
    voters: tuple[str, ...]
    label: str = "none"
    port: int


def test_a_section_takes_names_and_defaults_from_its_table() -> None:
    example = Example(port=1)
    assert (example.election_timeout_ms, example.voters, example.label) == (1000, (), "none")
    with pytest.raises(TypeError, match="port"):
        Example()
    read = Example.of(make("controller.quorum.election.timeout.ms=7"), voters=(), port=2)
    assert read == Example(election_timeout_ms=7, port=2)
    assert Example.KEYS == {
        "election_timeout_ms": "controller.quorum.election.timeout.ms",
        "voters": "controller.quorum.voters",
    }


@pytest.mark.parametrize(
    ("name", "roles"),
    [
        ("server", {"broker", "controller"}),
        ("broker", {"broker"}),
        ("controller", {"controller"}),
    ],
)
def test_the_example_files_are_valid(name: str, roles: set[str]) -> None:
    path = Path(__file__).parents[3] / "config" / f"{name}.properties"
    config = BrokerConfig.from_properties(load_properties(path.read_text()))
    assert config.unknown == ()
    assert config.process_roles == roles


def test_unknown_keys_are_kept_and_listed() -> None:
    config = make("num.partition=3;listener.name.plaintext.max.connections=4")
    assert config.unknown == ("num.partition",)
    assert config.originals["num.partition"] == "3"


@pytest.mark.parametrize(
    ("changes", "listeners"),
    [
        ("", ["PLAINTEXT://:9092", "CONTROLLER://:9093"]),
        ("listeners=plaintext://h:1,controller://h:2", ["PLAINTEXT://h:1", "CONTROLLER://h:2"]),
        (
            "listeners=PLAINTEXT://[::1]:9092,CONTROLLER://127.0.0.1:9092",
            ["PLAINTEXT://[::1]:9092", "CONTROLLER://127.0.0.1:9092"],
        ),
        (
            "listeners=PLAINTEXT://:0,CONTROLLER://:0",
            ["PLAINTEXT://:0", "CONTROLLER://:0"],
        ),
        ("listeners=PLAINTEXT://::1:5,CONTROLLER://:6", ["PLAINTEXT://[::1]:5", "CONTROLLER://:6"]),
        (
            "listeners=PLAINTEXT://ho_st:5,CONTROLLER://:6",
            ["PLAINTEXT://ho_st:5", "CONTROLLER://:6"],
        ),
    ],
)
def test_listeners(changes: str, listeners: list[str]) -> None:
    assert [str(listener) for listener in make(changes).listeners] == listeners


def test_listener_names_get_their_protocols() -> None:
    config = make(
        "listeners=INSIDE://:1,CONTROLLER://:2;inter.broker.listener.name=inside;"
        "listener.security.protocol.map=inside:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
    )
    assert config.broker_listeners == (Listener("INSIDE", "", 1, "SASL_PLAINTEXT"),)
    assert config.controller_listeners == (Listener("CONTROLLER", "", 2, "PLAINTEXT"),)
    assert config.inter_broker_listener_name == "INSIDE"


@pytest.mark.parametrize(
    ("changes", "advertised"),
    [
        pytest.param("", ["PLAINTEXT://box.example:7"], id="wildcard becomes the machine's name"),
        pytest.param(
            "listeners=PLAINTEXT://h:9,CONTROLLER://:1", ["PLAINTEXT://h:9"], id="as bound"
        ),
        pytest.param(
            "advertised.listeners=PLAINTEXT://x:1", ["PLAINTEXT://x:1"], id="as advertised"
        ),
    ],
)
def test_what_clients_are_told(changes: str, advertised: list[str]) -> None:
    config = make(changes or "listeners=PLAINTEXT://:0,CONTROLLER://:9093")
    resolved = resolve_listeners(
        config.advertised_broker_listeners,
        canonical_host_name="box.example",
        bound_ports={"PLAINTEXT": 7},
    )
    assert [str(listener) for listener in resolved] == advertised


def test_a_controller_bound_everywhere_advertises_the_machine() -> None:
    config = make(
        "-controller.quorum.voters;controller.quorum.bootstrap.servers=h:9093;"
        "listeners=PLAINTEXT://:9092,CONTROLLER://0.0.0.0:9093"
    )
    (listener,) = config.advertised_controller_listeners
    assert (listener.host, listener.port) == ("", 9093)


def test_a_voter_bound_everywhere_advertises_what_the_voters_say() -> None:
    voters = "controller.quorum.voters=1@one.example:19093,2@two.example:9093"
    config = make(f"{voters};listeners=PLAINTEXT://:9092,CONTROLLER://:9093")
    (listener,) = config.advertised_controller_listeners
    assert (listener.host, listener.port) == ("one.example", 19093)
    config = make(f"{voters};listeners=PLAINTEXT://:9092,CONTROLLER://here:9093")
    (listener,) = config.advertised_controller_listeners
    assert (listener.host, listener.port) == ("here", 9093)


# Kafka 4.3 refuses each of these too.
REFUSED = [
    ("-process.roles", "process.roles"),
    ("process.roles=", "process.roles"),
    ("process.roles=foo", "broker, controller"),
    ("-node.id", "node.id"),
    ("node.id=-1", "node.id"),
    ("broker.id=2", "broker.id=2"),
    ("node.id=3", "controller.quorum.voters=1"),
    ("-controller.listener.names", "controller.listener.names"),
    ("controller.listener.names=OTHER", "CONTROLLER"),
    ("controller.listener.names=CONTROLLER,OTHER", "must only contain values appearing"),
    ("process.roles=broker", "must not be included"),
    ("process.roles=broker;node.id=2", "must not contain a value appearing in the 'listeners'"),
    ("process.roles=controller", "only contain KRaft controller listeners"),
    (
        "process.roles=controller;listeners=CONTROLLER://:1;inter.broker.listener.name=CONTROLLER",
        "remove inter.broker.listener.name",
    ),
    (
        "process.roles=controller;listeners=CONTROLLER://:1,OTHER://:2;"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,OTHER:PLAINTEXT",
        "only contain KRaft controller listeners",
    ),
    (
        "process.roles=controller;listeners=CONTROLLER://:1;advertised.listeners="
        "CONTROLLER://0.0.0.0:1",
        "0.0.0.0",
    ),
    (
        "process.roles=broker;node.id=2;listeners=PLAINTEXT://:9092;"
        "controller.quorum.auto.join.enable=true",
        "controller.quorum.auto.join.enable",
    ),
    (
        "process.roles=broker;node.id=2;listeners=PLAINTEXT://:9092;"
        "early.start.listeners=CONTROLLER",
        "early.start.listeners",
    ),
    (
        "process.roles=broker;node.id=2;listeners=PLAINTEXT://:9092;"
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT",
        "Add CONTROLLER:PLAINTEXT",
    ),
    (
        "process.roles=broker;node.id=2;listeners=PLAINTEXT://:9092;controller.listener.names=SSL;"
        "-controller.quorum.voters",
        "controller.quorum.bootstrap.servers",
    ),
    ("-controller.quorum.voters", "controller.quorum.bootstrap.servers"),
    ("controller.quorum.voters=1@localhost", "{id}@{host}:{port}"),
    ("controller.quorum.voters=x@localhost:9", "{id}@{host}:{port}"),
    ("controller.quorum.voters=1@0.0.0.0:9", "not routeable"),
    ("-controller.quorum.voters;controller.quorum.bootstrap.servers=h", "{host}:{port}"),
    ("-controller.quorum.voters;controller.quorum.bootstrap.servers=h:99999", "{host}:{port}"),
    ("listeners=9092", "NAME://host:port"),
    ("listeners=PLAINTEXT:9092,CONTROLLER://:1", "NAME://host:port"),
    ("listeners=PLAINTEXT://a/b:9092,CONTROLLER://:1", "NAME://host:port"),
    ("listeners=PLAINTEXT://:1,CONTROLLER://:1", "different port"),
    ("listeners=PLAINTEXT://127.0.0.1:1,CONTROLLER://localhost:1", "different port"),
    ("listeners=PLAINTEXT://:1,PLAINTEXT://:2,CONTROLLER://:3", "different name"),
    ("listeners=FOO://:1,CONTROLLER://:2", "FOO"),
    ("listeners=CONTROLLER://:1", "at least one broker advertised listener"),
    ("listeners=SSL://:1,CONTROLLER://:2", "CONTROLLER"),
    ("listeners=PLAINTEXT://0.0.0.0:1,CONTROLLER://:2", "0.0.0.0"),
    ("listener.security.protocol.map=PLAINTEXT:NOPE,CONTROLLER:PLAINTEXT", "NOPE"),
    ("listener.security.protocol.map=PLAINTEXT,CONTROLLER:PLAINTEXT", "NAME:PROTOCOL"),
    ("advertised.listeners=PLAINTEXT://0.0.0.0:9", "0.0.0.0"),
    ("advertised.listeners=SSL://h:9", "PLAINTEXT"),
    ("advertised.listeners=PLAINTEXT://h:9,SSL://h:1", "subset"),
    ("advertised.listeners=CONTROLLER://h:9", "at least one broker"),
    ("inter.broker.listener.name=BAR", "BAR"),
    ("inter.broker.listener.name=SSL", "advertised.listeners"),
    ("inter.broker.listener.name=PLAINTEXT;security.inter.broker.protocol=PLAINTEXT", "Only one"),
    ("security.inter.broker.protocol=foo", "SASL_SSL"),
    ("early.start.listeners=FOO", "FOO"),
    ("log.dirs=", "log.dirs"),
    ("log.dirs=/a,,/b", "log.dirs"),
    ("log.retention.ms=0", "log.retention.ms"),
    ("log.retention.hours=0", "log.retention.hours"),
    ("log.roll.ms=0", "log.roll.ms=0"),
    ("log.roll.hours=0", "log.roll.hours"),
    ("log.roll.jitter.ms=-1", "log.roll.jitter.ms=-1"),
    ("log.cleaner.threads=0", "log.cleaner.threads=0"),
    ("log.cleaner.dedupe.buffer.size=1048576", "1MB per cleaner thread"),
    ("replica.fetch.wait.max.ms=40000", "replica.socket.timeout.ms"),
    ("replica.fetch.wait.max.ms=30001;replica.socket.timeout.ms=40000", "replica.lag.time.max.ms"),
    ("queued.max.request.bytes=5", "socket.request.max.bytes"),
    ("max.connections.per.ip=0", "max.connections.per.ip.overrides"),
    ("max.connections.per.ip.overrides=h", "{host}:{maximum connections}"),
    ("max.connections.per.ip.overrides=a/b:5", "{host}:{maximum connections}"),
    ("connections.max.idle.ms=100", "connection.failed.authentication.delay.ms"),
    ("group.coordinator.rebalance.protocols=consumer", "classic"),
    ("group.consumer.heartbeat.interval.ms=1", "group.consumer.min.heartbeat.interval.ms=5000"),
    ("group.consumer.session.timeout.ms=70000", "group.consumer.max.session.timeout.ms=60000"),
    ("group.share.max.heartbeat.interval.ms=1", "group.share.min.heartbeat.interval.ms"),
    (
        "group.consumer.session.timeout.ms=5000;group.consumer.min.session.timeout.ms=5000",
        "must be less than group.consumer.session.timeout.ms=5000",
    ),
    ("group.streams.num.standby.replicas=3", "group.streams.max.standby.replicas=2"),
    ("group.share.record.lock.duration.ms=70000", "group.share.max.record.lock.duration.ms"),
    ("group.share.max.share.sessions=1", "group.share.max.size=200"),
    ("group.consumer.assignors=foo", "uniform, range"),
    ("offsets.topic.compression.codec=7", "zstd"),
    ("cordoned.log.dirs=/zzz", "/zzz"),
    ("cordoned.log.dirs=*,/x", "must not contain other values"),
    ("metric.reporters=foo.Bar", "foo.Bar"),
    ("num.partitions=0", "num.partitions"),
    ("num.partitions=3000000000", "-2147483648 to 2147483647"),
    ("num.partitions=1_0", "Not a number of type INT"),
    ("compression.type=none", "uncompressed, zstd, lz4, snappy, gzip, producer"),
    ("log.segment.bytes=100", "1048576"),
    ("compression.gzip.level=0", "between 1 and 9 or equal to -1"),
    (
        "listeners=SASL_PLAINTEXT://:1,CONTROLLER://:2;security.inter.broker.protocol="
        "SASL_PLAINTEXT;sasl.enabled.mechanisms=PLAIN;listener.security.protocol.map="
        "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol=GSSAPI",
    ),
]


@pytest.mark.parametrize(("changes", "part"), REFUSED, ids=[case[0][:60] for case in REFUSED])
def test_refused(changes: str, part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make(changes)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


# Kafka 4.3 accepts each of these too.
@pytest.mark.parametrize(
    "changes",
    [
        "-node.id;broker.id=1",
        "process.roles=broker,controller,broker",
        "process.roles=broker;node.id=2;listeners=PLAINTEXT://:9092",
        "process.roles=controller;listeners=CONTROLLER://0.0.0.0:9093",
        "process.roles=controller;listeners=CONTROLLER://:9093;cordoned.log.dirs=/elsewhere",
        "process.roles=controller;listeners=CONTROLLER://:9093,MORE://:9094;"
        "controller.listener.names=MORE,CONTROLLER",
        "process.roles=broker;node.id=2;listeners=PLAINTEXT://:9092;"
        "controller.listener.names=CONTROLLER,MORE",
        "-controller.quorum.voters;controller.quorum.bootstrap.servers=[::1]:9093",
        "controller.quorum.voters=1@[::1]:9093,2@b:9093",
        "listeners=PLAINTEXT://0.0.0.0:1,CONTROLLER://0.0.0.0:2;"
        "advertised.listeners=PLAINTEXT://h:1",
        "listeners=PLAINTEXT://[::]:9092,CONTROLLER://:9093",
        "log.retention.ms=-5",
        "log.retention.ms=5;log.retention.hours=0",
        "max.connections.per.ip=0;max.connections.per.ip.overrides=127.0.0.1:5,::1:7",
        "connections.max.idle.ms=-1",
        "queued.max.request.bytes=0",
        "log.cleaner.max.compaction.lag.ms=5;log.cleaner.min.compaction.lag.ms=10",
        "log.local.retention.ms=5;log.retention.ms=4",
        "cordoned.log.dirs=*",
        "metric.reporters=",
        "metric.reporters=org.apache.kafka.common.metrics.JmxReporter",
        "group.consumer.assignors=org.apache.kafka.coordinator.group.assignor.RangeAssignor",
    ],
)
def test_accepted(changes: str) -> None:
    make(changes)


@pytest.mark.parametrize(
    ("changes", "field", "value"),
    [
        ("", "retention_ms", 168 * 3600_000),
        ("log.retention.hours=1", "retention_ms", 3600_000),
        ("log.retention.hours=1;log.retention.minutes=2", "retention_ms", 120_000),
        ("log.retention.minutes=2;log.retention.ms=3", "retention_ms", 3),
        ("log.retention.hours=-2", "retention_ms", -1),
        ("log.roll.hours=2", "segment_ms", 7200_000),
        ("log.roll.hours=2;log.roll.ms=5", "segment_ms", 5),
        ("log.roll.jitter.hours=1", "segment_jitter_ms", 3600_000),
        ("log.flush.scheduler.interval.ms=7", "flush_ms", 7),
        ("log.flush.scheduler.interval.ms=7;log.flush.interval.ms=9", "flush_ms", 9),
        ("message.max.bytes=5", "max_message_bytes", 5),
        ("log.cleanup.policy=compact,delete", "cleanup_policy", ("compact", "delete")),
        ("log.index.size.max.bytes=8", "segment_index_bytes", 8),
    ],
)
def test_topic_defaults_come_from_the_broker(changes: str, field: str, value: object) -> None:
    assert getattr(LogConfig.for_topic(make(changes), {}), field) == value


def test_topic_overrides() -> None:
    config = make("log.retention.ms=5;compression.type=gzip")
    log = LogConfig.for_topic(config, {"retention.ms": "9", "cleanup.policy": "compact"})
    assert (log.retention_ms, log.compression_type, log.compact, log.delete) == (
        9,
        "gzip",
        True,
        False,
    )
    assert LogConfig.for_topic(config, {"cleanup.policy": "compact", "retention.ms": "9"}) is log
    tiny = LogConfig.for_topic(config, {"internal.segment.bytes": "100"})
    assert tiny.segment_bytes == 100
    with pytest.raises(ConfigError, match=r"segment\.bytes"):
        LogConfig.for_topic(config, {"segment.bytes": "100"})


def test_without_broker_settings_a_log_has_kafka_s_defaults() -> None:
    assert LogConfig.for_topic(make(), {}) == LogConfig()


def test_the_cache_of_log_configs_is_bounded() -> None:
    config = make()
    for value in range(3000):
        LogConfig.for_topic(config, {"retention.ms": str(value)})
    assert len(config.log_config_cache) <= 1024
