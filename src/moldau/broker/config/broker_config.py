"""BrokerConfig: a broker's whole configuration, parsed, checked and immutable.

Built from texts in one go: after `from_properties` returns, every key has a value of its type and
every cross-key rule of Kafka holds. Keys Kafka does not define are kept aside in `unknown`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.broker.config.checks import check_values, parse_connection_overrides
from moldau.broker.config.listener_settings import listener_keys_without_effect
from moldau.broker.config.listeners import (
    LOOPBACK,
    Listener,
    listener_name,
    parse_listeners,
    parse_security_protocol_map,
)
from moldau.broker.config.log_config import LogConfig, broker_defaults
from moldau.broker.config.no_effect import REASONS
from moldau.broker.config.resource_keys import DYNAMIC_ONLY_KEYS
from moldau.broker.config.rules import parse_voters
from moldau.broker.config.sections import (
    LogManagerConfig,
    MetadataConfig,
    NetworkConfig,
    QuorumConfig,
    TopicRequestsConfig,
)
from moldau.config.addresses import parse_host_port
from moldau.config.errors import ConfigError
from moldau.config.no_effect import keys_without_effect

__all__ = ["BrokerConfig"]

# One thread accepts connections and answers requests, so more of them wait than Kafka's default of
# 50 allows for; each that finds no room waits a second for TCP's next try. The system's own limit
# (net.core.somaxconn) applies.
_LISTEN_BACKLOG = 4_096

# Keys of plug-ins and of single listeners are valid, though no table lists them.
_OPEN_PREFIXES = (
    "config.providers.",
    "listener.name.",
    "moldau.audit.",
    "moldau.metrics.",
    "rlmm.config.",
    "rsm.config.",
)

# Kafka does not define them as keys of its own either.
_AUTHORIZER_KEYS = ("super.users", "allow.everyone.if.no.acl.found")

_ALL_KEYS = {**BROKER_KEYS, **DYNAMIC_ONLY_KEYS}


class BrokerConfig:
    """Read values with `config["any.kafka.key"]`, or typed from the sections."""

    __slots__ = (
        "_values",
        "advertised_listeners",
        "controller_listener_names",
        "inter_broker_listener_name",
        "listeners",
        "log",
        "log_config_cache",
        "log_dirs",
        "metadata",
        "metadata_log_dir",
        "network",
        "node_id",
        "originals",
        "process_roles",
        "quorum",
        "security_protocols",
        "topic_defaults",
        "topics",
        "unknown",
    )

    def __init__(self, originals: Mapping[str, str], values: dict[str, Any]) -> None:
        self.originals: dict[str, str] = dict(originals)
        self._values = values
        self.unknown: tuple[str, ...] = tuple(
            name
            for name in originals
            if name not in BROKER_KEYS
            and not name.startswith(_OPEN_PREFIXES)
            and not _is_authorizers(name, values["authorizer.class.name"])
        )
        self.node_id: int = values["node.id"]
        self.process_roles: frozenset[str] = frozenset(values["process.roles"])
        self.log_dirs: tuple[str, ...] = values["log.dirs"] or values["log.dir"]
        self.metadata_log_dir: str = values["metadata.log.dir"] or self.log_dirs[0]
        self._set_listeners(values)
        self._set_sections(values)
        self.topic_defaults: dict[str, Any] = broker_defaults(values)
        self.log_config_cache: dict[tuple[tuple[str, str], ...], LogConfig] = {}
        check_values(self)

    @classmethod
    def from_properties(cls, props: Mapping[str, str]) -> BrokerConfig:
        """Parse and check; raises ConfigError with one line that says what to change."""
        texts = dict(props)
        # broker.id is the old name of node.id; Kafka lets either stand for both.
        if "node.id" in texts:
            texts.setdefault("broker.id", texts["node.id"])
        elif "broker.id" in texts:
            texts["node.id"] = texts["broker.id"]
        return cls(texts, BROKER_KEYS.parse(texts) | DYNAMIC_ONLY_KEYS.parse(texts))

    def __getitem__(self, name: str) -> Any:
        """The parsed value of any Kafka broker key."""
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def get(self, name: str, default: Any = None) -> Any:
        return self._values.get(name, default)

    @property
    def values(self) -> Mapping[str, Any]:
        return self._values

    @property
    def without_effect(self) -> list[str]:
        """Keys that are set and have no effect, see no_effect.py."""
        general = keys_without_effect(self.originals, self._values, _ALL_KEYS, REASONS)
        return sorted(general + listener_keys_without_effect(self.originals))

    @property
    def is_broker(self) -> bool:
        return "broker" in self.process_roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.process_roles

    @property
    def broker_listeners(self) -> tuple[Listener, ...]:
        """Where clients and other brokers connect."""
        return tuple(x for x in self.listeners if x.name not in self.controller_listener_names)

    @property
    def controller_listeners(self) -> tuple[Listener, ...]:
        return tuple(x for x in self.listeners if x.name in self.controller_listener_names)

    @property
    def advertised_broker_listeners(self) -> tuple[Listener, ...]:
        """What clients get; hosts may still be empty, see `resolve_listeners`."""
        names = self.controller_listener_names
        return tuple(x for x in self.advertised_listeners if x.name not in names)

    @property
    def advertised_controller_listeners(self) -> tuple[Listener, ...]:
        """In the order of controller.listener.names; those not advertised by their own address."""
        # Binding to every interface says nothing about the address to advertise.
        bound = (x._replace(host="") if x.is_wildcard else x for x in self.listeners)
        by_name = {x.name: x for x in bound}
        first = by_name.get(self.controller_listener_names[0])
        if first is not None and not first.host:
            # The voters of a static quorum say where each is found: by its first listener.
            for voter in self.quorum.controller_quorum_voters:
                if voter.node_id == self.node_id:
                    by_name[first.name] = first._replace(host=voter.host, port=voter.port)
        if self._values["advertised.listeners"] is not None:
            by_name |= {x.name: x for x in self.advertised_listeners}
        return tuple(by_name[name] for name in self.controller_listener_names if name in by_name)

    def _set_listeners(self, values: dict[str, Any]) -> None:
        self.controller_listener_names: tuple[str, ...] = tuple(
            name.upper() for name in values["controller.listener.names"]
        )
        self.security_protocols: dict[str, str] = self._security_protocols(values)
        self.listeners: tuple[Listener, ...] = parse_listeners(
            "listeners", values["listeners"], self.security_protocols
        )
        if "listeners" not in self.originals:
            # Kafka's default is open to every network. It has no security, so it takes a line in
            # the configuration to do the same here.
            self.listeners = tuple(x._replace(host=LOOPBACK) for x in self.listeners)
        advertised = values["advertised.listeners"]
        self.advertised_listeners: tuple[Listener, ...] = (
            self.listeners
            if advertised is None
            else parse_listeners(
                "advertised.listeners", advertised, self.security_protocols, distinct_ports=False
            )
        )
        self.inter_broker_listener_name: str = self._inter_broker_listener(values)

    def _security_protocols(self, values: dict[str, Any]) -> dict[str, str]:
        key = "listener.security.protocol.map"
        protocols = parse_security_protocol_map(key, values[key])
        if key in self.originals:
            return protocols
        # Without a map of the user's own, controller listeners are plain text, unless anything
        # here is secured: then silence must not mean "unprotected".
        names = {listener_name("listeners", entry) for entry in values["listeners"]}
        if not (names | set(self.controller_listener_names)) & {
            "SSL",
            "SASL_SSL",
            "SASL_PLAINTEXT",
        }:
            for name in self.controller_listener_names:
                protocols.setdefault(name, "PLAINTEXT")
        return protocols

    def _inter_broker_listener(self, values: dict[str, Any]) -> str:
        name: str | None = values["inter.broker.listener.name"]
        if name is None:
            return str(values["security.inter.broker.protocol"])
        if "security.inter.broker.protocol" in self.originals:
            raise ConfigError(
                "Only one of inter.broker.listener.name and security.inter.broker.protocol should "
                "be set. Remove one of the two"
            )
        if name.upper() not in self.security_protocols:
            raise ConfigError.invalid(
                "inter.broker.listener.name",
                name,
                "not found in listener.security.protocol.map "
                f"(it has {', '.join(self.security_protocols)})",
            )
        return name.upper()

    def _by_listener(self, name: str) -> dict[str, int]:
        """The values of `listener.name.x.` for a key that is a number."""
        found = {}
        for listener in self.listeners:
            key = f"listener.name.{listener.name.lower()}.{name}"
            if key in self.originals:
                found[listener.name] = int(BROKER_KEYS[name].parse(self.originals[key]))
        return found

    def _set_sections(self, values: dict[str, Any]) -> None:
        overrides_key = "max.connections.per.ip.overrides"
        backlog_key = "socket.listen.backlog.size"
        self.network = NetworkConfig.of(
            values,
            max_connections_per_ip_overrides=parse_connection_overrides(
                overrides_key, values[overrides_key]
            ),
            socket_listen_backlog_size=(
                values[backlog_key] if backlog_key in self.originals else _LISTEN_BACKLOG
            ),
            listener_max_connections=self._by_listener("max.connections"),
            listener_max_connection_creation_rate=self._by_listener("max.connection.creation.rate"),
            protected_listener=(
                self.inter_broker_listener_name if len(self.broker_listeners) > 1 else None
            ),
        )
        self.log = LogManagerConfig.of(values, cordoned_log_dirs=values["cordoned.log.dirs"] or ())
        self.topics = TopicRequestsConfig.of(values)
        servers = (parse_host_port(x) for x in values["controller.quorum.bootstrap.servers"])
        self.quorum = QuorumConfig.of(
            values,
            controller_quorum_voters=parse_voters(
                "controller.quorum.voters", values["controller.quorum.voters"]
            ),
            controller_quorum_bootstrap_servers=tuple(x for x in servers if x is not None),
        )
        self.metadata = MetadataConfig.of(values)


def _is_authorizers(name: str, authorizer: str) -> bool:
    """Whether a key may be a setting of the authorizer; one of the user's own may have any."""
    if not authorizer:
        return False
    return name in _AUTHORIZER_KEYS or not authorizer.endswith("StandardAuthorizer")
