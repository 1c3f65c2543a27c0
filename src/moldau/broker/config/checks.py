"""Rules across broker keys, checked once at start, as Kafka checks them.

Each rule raises ConfigError with the keys involved, their values and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.broker.config.listeners import Listener
from moldau.broker.config.sections import NetworkConfig, QuorumConfig
from moldau.config.errors import ConfigError
from moldau.config.values import ConfigType

__all__ = ["check_values", "parse_connection_overrides"]

_HOST = re.compile(r"[0-9a-zA-Z\-%._:]+")
_COUNT = re.compile(r"[+-]?[0-9]{1,10}")

# The built-in assignors by their short names.
_ASSIGNORS = {
    "group.consumer.assignors": {
        "uniform": "org.apache.kafka.coordinator.group.assignor.UniformAssignor",
        "range": "org.apache.kafka.coordinator.group.assignor.RangeAssignor",
    },
    "group.share.assignors": {
        "simple": "org.apache.kafka.coordinator.group.assignor.SimpleAssignor",
    },
}
_COMPRESSION_IDS = range(5)
#: Keys that name a class of the user's own in Python; it is looked for where it is used.
PYTHON_CLASSES = frozenset(
    {
        "client.quota.callback.class",
        "principal.builder.class",
        "sasl.login.callback.handler.class",
        "sasl.server.callback.handler.class",
    }
)
_CLASS_LISTS = frozenset({"metric.reporters", "kafka.metrics.reporters"})


class ParsedConfig(Protocol):
    """What the rules read of a broker's configuration."""

    originals: dict[str, str]
    node_id: int
    log_dirs: tuple[str, ...]
    topic_defaults: dict[str, Any]
    listeners: tuple[Listener, ...]
    security_protocols: dict[str, str]
    controller_listener_names: tuple[str, ...]
    inter_broker_listener_name: str
    network: NetworkConfig
    quorum: QuorumConfig

    def __getitem__(self, name: str) -> Any: ...

    @property
    def values(self) -> Mapping[str, Any]: ...

    @property
    def is_broker(self) -> bool: ...

    @property
    def is_controller(self) -> bool: ...

    @property
    def advertised_broker_listeners(self) -> tuple[Listener, ...]: ...

    @property
    def advertised_controller_listeners(self) -> tuple[Listener, ...]: ...


def check_values(config: ParsedConfig) -> None:
    for check in _CHECKS:
        check(config)


def parse_connection_overrides(key: str, text: str) -> Mapping[str, int]:
    """`host:count,...`; the last colon separates, so IPv6 addresses work."""
    overrides: dict[str, int] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        host, _, count = (part.strip() for part in entry.rpartition(":"))
        if not host or not _HOST.fullmatch(host) or not _COUNT.fullmatch(count):
            raise ConfigError.invalid(
                key, text, "Each entry should be in the form {host}:{maximum connections}"
            )
        overrides[host] = int(count)
    return overrides


def _require(condition: bool, message: str, *, key: str | None = None) -> None:
    if not condition:
        raise ConfigError(message, key=key)


def _check_node_id(config: ParsedConfig) -> None:
    broker_id = config["broker.id"]
    _require(
        broker_id == config.node_id,
        f"node.id={config.node_id} and broker.id={broker_id} must have the same value. "
        "Remove broker.id",
        key="node.id",
    )


def _check_log_times(config: ParsedConfig) -> None:
    defaults = config.topic_defaults
    _require(
        defaults["segment.ms"] >= 1,
        f"log.roll.ms={config['log.roll.ms']} must be greater than or equal to 1",
        key="log.roll.ms",
    )
    _require(
        defaults["segment.jitter.ms"] >= 0,
        f"log.roll.jitter.ms={config['log.roll.jitter.ms']} must be greater than or equal to 0",
        key="log.roll.jitter.ms",
    )
    _require(
        defaults["retention.ms"] >= 1 or defaults["retention.ms"] == -1,
        "log.retention.ms must be unlimited (-1) or, greater than or equal to 1. "
        "Check log.retention.ms, log.retention.minutes and log.retention.hours",
        key="log.retention.ms",
    )


def _check_cleaner(config: ParsedConfig) -> None:
    size, threads = config["log.cleaner.dedupe.buffer.size"], config["log.cleaner.threads"]
    _require(
        threads > 0 and size // threads > 1024 * 1024,
        f"log.cleaner.dedupe.buffer.size={size} must be at least 1MB per cleaner thread "
        f"(log.cleaner.threads={threads})",
        key="log.cleaner.dedupe.buffer.size",
    )


def _check_replica_fetch(config: ParsedConfig) -> None:
    wait = config["replica.fetch.wait.max.ms"]
    socket_timeout = config["replica.socket.timeout.ms"]
    lag = config["replica.lag.time.max.ms"]
    _require(
        wait <= socket_timeout,
        f"replica.socket.timeout.ms={socket_timeout} should always be at least "
        f"replica.fetch.wait.max.ms={wait} to prevent unnecessary socket timeouts",
        key="replica.socket.timeout.ms",
    )
    _require(
        wait <= lag,
        f"replica.fetch.wait.max.ms={wait} should always be less than or equal to "
        f"replica.lag.time.max.ms={lag} to prevent frequent changes in ISR",
        key="replica.fetch.wait.max.ms",
    )


def _check_quorum(config: ParsedConfig) -> None:
    voters = {voter.node_id for voter in config.quorum.controller_quorum_voters}
    _require(
        bool(voters or config.quorum.controller_quorum_bootstrap_servers),
        "If using process.roles, either controller.quorum.bootstrap.servers must contain the set "
        "of bootstrap controllers or controller.quorum.voters must contain a parseable set of "
        "controllers",
        key="controller.quorum.bootstrap.servers",
    )
    shown = ",".join(map(str, sorted(voters)))
    if config.is_controller:
        _require(
            not voters or config.node_id in voters,
            f"If process.roles contains the 'controller' role, the node id {config.node_id} must "
            f"be included in the set of voters controller.quorum.voters={shown}",
            key="controller.quorum.voters",
        )
    else:
        _require(
            config.node_id not in voters,
            f"If process.roles contains just the 'broker' role, the node id {config.node_id} must "
            f"not be included in the set of voters controller.quorum.voters={shown}",
            key="controller.quorum.voters",
        )
        _require(
            not config["controller.quorum.auto.join.enable"],
            "controller.quorum.auto.join.enable is only supported when process.roles contains the "
            "'controller' role. Remove it from this broker",
            key="controller.quorum.auto.join.enable",
        )


def _check_controller_listeners(config: ParsedConfig) -> None:
    key = "controller.listener.names"
    names = config.controller_listener_names
    listening = {listener.name for listener in config.listeners}
    shown = ",".join(names)
    if not config.is_controller:
        present = [name for name in names if name in listening]
        _require(
            not present,
            f"{key}={shown} must not contain a value appearing in the 'listeners' configuration "
            f"when running KRaft with just the broker role; {','.join(present)} does",
            key=key,
        )
        for name in names:
            _require(
                name in config.security_protocols,
                f"Controller listener with name {name} defined in {key} not found in "
                f"listener.security.protocol.map. Add {name}:PLAINTEXT (or its protocol) to it",
                key=key,
            )
        return
    if not config.is_broker:
        _require(
            len(config.advertised_controller_listeners) == len(config.listeners),
            f"The listeners config must only contain KRaft controller listeners from {key}={shown} "
            "when process.roles=controller",
            key="listeners",
        )
        inter_broker = config["inter.broker.listener.name"]
        _require(
            inter_broker is None or inter_broker.upper() not in names,
            f"{key}={shown} must not contain an explicitly set inter.broker.listener.name="
            f"{inter_broker} when process.roles=controller. A controller needs no listener for "
            "brokers: remove inter.broker.listener.name",
            key="inter.broker.listener.name",
        )
    _require(
        all(name in listening for name in names),
        f"{key}={shown} must only contain values appearing in the 'listeners' configuration when "
        f"running the KRaft controller role; listeners has {','.join(sorted(listening))}",
        key=key,
    )


def _check_broker_listeners(config: ParsedConfig) -> None:
    if not config.is_broker:
        return
    advertised = [listener.name for listener in config.advertised_broker_listeners]
    listening = [listener.name for listener in config.listeners]
    _require(
        bool(advertised),
        "There must be at least one broker advertised listener. Perhaps all listeners appear in "
        "controller.listener.names?",
        key="advertised.listeners",
    )
    _require(
        config.inter_broker_listener_name in advertised,
        f"inter.broker.listener.name={config.inter_broker_listener_name} must be a listener name "
        "defined in advertised.listeners. The valid options based on currently configured "
        f"listeners are {','.join(advertised)}",
        key="inter.broker.listener.name",
    )
    _require(
        set(advertised) <= set(listening),
        "advertised.listeners listener names must be equal to or a subset of the ones defined in "
        f"listeners. Found {','.join(advertised)}. The valid options based on the current "
        f"configuration are {','.join(listening)}",
        key="advertised.listeners",
    )


def _check_advertised_hosts(config: ParsedConfig) -> None:
    for listener in (*config.advertised_broker_listeners, *config.advertised_controller_listeners):
        _require(
            listener.host != "0.0.0.0",
            f"advertised.listeners cannot use the nonroutable meta-address 0.0.0.0 ({listener}). "
            "Use a routable IP address or a host name",
            key="advertised.listeners",
        )


def _check_early_start(config: ParsedConfig) -> None:
    names = {listener.name for listener in config.listeners}
    for name in config["early.start.listeners"] or ():
        _require(
            name.upper() in names,
            f"early.start.listeners contains listener {name}, but this is not contained in "
            f"listeners, which has {','.join(sorted(names))}",
            key="early.start.listeners",
        )


def _check_network(config: ParsedConfig) -> None:
    queued, request_max = config["queued.max.request.bytes"], config["socket.request.max.bytes"]
    _require(
        queued <= 0 or queued >= request_max,
        f"queued.max.request.bytes={queued} must be larger or equal to "
        f"socket.request.max.bytes={request_max}",
        key="queued.max.request.bytes",
    )
    _require(
        config["max.connections.per.ip"] != 0
        or bool(config.network.max_connections_per_ip_overrides),
        "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides "
        "property is set",
        key="max.connections.per.ip",
    )
    idle = config["connections.max.idle.ms"]
    delay = config["connection.failed.authentication.delay.ms"]
    _require(
        idle < 0 or delay < idle,
        f"connection.failed.authentication.delay.ms={delay} should always be less than "
        f"connections.max.idle.ms={idle} to prevent failed authentication responses from timing "
        "out",
        key="connection.failed.authentication.delay.ms",
    )


def _check_sasl(config: ParsedConfig) -> None:
    if not config.is_broker:
        return
    name = config.inter_broker_listener_name
    if not config.security_protocols.get(name, "").startswith("SASL_"):
        return
    own = config.originals.get(f"listener.name.{name.lower()}.sasl.enabled.mechanisms")
    enabled = config["sasl.enabled.mechanisms"]
    if own is not None:
        enabled = tuple(part.strip() for part in own.split(","))
    mechanism = config["sasl.mechanism.inter.broker.protocol"]
    _require(
        mechanism in enabled,
        f"sasl.mechanism.inter.broker.protocol={mechanism} must be included in "
        f"sasl.enabled.mechanisms={','.join(enabled)} when SASL is used for inter-broker "
        "communication",
        key="sasl.mechanism.inter.broker.protocol",
    )


def _check_groups(config: ParsedConfig) -> None:
    protocols = config["group.coordinator.rebalance.protocols"]
    _require(
        "classic" in protocols,
        f"group.coordinator.rebalance.protocols={','.join(protocols)}: disabling the 'classic' "
        "protocol is not supported. Add classic",
        key="group.coordinator.rebalance.protocols",
    )
    least = config["group.min.session.timeout.ms"]
    most = config["group.max.session.timeout.ms"]
    _require(
        least <= most,
        f"group.min.session.timeout.ms={least} must be less than or equal to "
        f"group.max.session.timeout.ms={most}",
        key="group.min.session.timeout.ms",
    )
    for kind in ("consumer", "share", "streams"):
        for stem in ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"):
            _check_bounds(config, f"group.{kind}", stem)
        heartbeat = config[f"group.{kind}.heartbeat.interval.ms"]
        session = config[f"group.{kind}.session.timeout.ms"]
        _require(
            heartbeat < session,
            f"group.{kind}.heartbeat.interval.ms={heartbeat} must be less than "
            f"group.{kind}.session.timeout.ms={session}",
            key=f"group.{kind}.heartbeat.interval.ms",
        )
    for stem in ("delivery.count.limit", "record.lock.duration.ms", "partition.max.record.locks"):
        _check_bounds(config, "group.share", stem)
    standby = config["group.streams.num.standby.replicas"]
    most = config["group.streams.max.standby.replicas"]
    _require(
        standby <= most,
        f"group.streams.num.standby.replicas={standby} must be less than or equal to "
        f"group.streams.max.standby.replicas={most}",
        key="group.streams.num.standby.replicas",
    )


def _check_share_sessions(config: ParsedConfig) -> None:
    sessions, size = config["group.share.max.share.sessions"], config["group.share.max.size"]
    _require(
        sessions >= size,
        f"group.share.max.share.sessions={sessions} must be greater than or equal to "
        f"group.share.max.size={size}",
        key="group.share.max.share.sessions",
    )


def _check_assignors(config: ParsedConfig) -> None:
    for key, known in _ASSIGNORS.items():
        for name in config[key]:
            if name not in known and name not in known.values():
                raise ConfigError.invalid(
                    key, name, f"Class {name} cannot be found. Allowed are {', '.join(known)}"
                )


def _check_compression_ids(config: ParsedConfig) -> None:
    for key in (
        "offsets.topic.compression.codec",
        "share.coordinator.state.topic.compression.codec",
    ):
        if config[key] not in _COMPRESSION_IDS:
            raise ConfigError.invalid(
                key, config[key], "must be 0 (none), 1 (gzip), 2 (snappy), 3 (lz4) or 4 (zstd)"
            )


def _check_cordoned_dirs(config: ParsedConfig) -> None:
    if not config.is_broker:
        return
    key = "cordoned.log.dirs"
    cordoned = config[key] or ()
    if "*" in cordoned:
        _require(
            len(cordoned) == 1,
            f"{key}={','.join(cordoned)}: when it is set to *, it must not contain other values",
            key=key,
        )
        return
    missing = [path for path in cordoned if path not in config.log_dirs]
    _require(
        not missing,
        f"All entries in {key} must be present in log.dirs or log.dir. Missing entries: "
        f"{','.join(missing)}",
        key=key,
    )


def _check_classes(config: ParsedConfig) -> None:
    """A plug-in that cannot be loaded must not be ignored: it may be there to reject requests."""
    for name in config.originals:
        key = BROKER_KEYS.get(name)
        if key is None or name in PYTHON_CLASSES:
            continue
        wanted: tuple[str, ...] = ()
        built_in: tuple[str, ...] = ()
        if key.type is ConfigType.CLASS:
            wanted = (config[name],)
            built_in = (key.default,)
        elif name in _CLASS_LISTS:
            wanted, built_in = config[name], key.default
        for class_name in wanted:
            if class_name not in built_in:
                use = f" or use {built_in[0]}" if any(built_in) else ""
                raise ConfigError.invalid(
                    name,
                    class_name,
                    f"Class {class_name} could not be found. Java plug-ins cannot be loaded; "
                    f"remove the key{use}",
                )


def _check_bounds(config: ParsedConfig, prefix: str, stem: str) -> None:
    key, least_key, most_key = f"{prefix}.{stem}", f"{prefix}.min.{stem}", f"{prefix}.max.{stem}"
    value, least, most = config[key], config[least_key], config[most_key]
    _require(
        least <= most,
        f"{most_key}={most} must be greater than or equal to {least_key}={least}",
        key=most_key,
    )
    _require(
        least <= value,
        f"{key}={value} must be greater than or equal to {least_key}={least}",
        key=key,
    )
    _require(
        value <= most, f"{key}={value} must be less than or equal to {most_key}={most}", key=key
    )


_CHECKS: tuple[Callable[[Any], None], ...] = (
    _check_node_id,
    _check_log_times,
    _check_cleaner,
    _check_replica_fetch,
    _check_quorum,
    _check_controller_listeners,
    _check_broker_listeners,
    _check_advertised_hosts,
    _check_early_start,
    _check_network,
    _check_sasl,
    _check_groups,
    _check_share_sessions,
    _check_assignors,
    _check_compression_ids,
    _check_cordoned_dirs,
    _check_classes,
)
