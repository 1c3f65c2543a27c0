"""What the broker and the controller of one process share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from moldau.broker.config import (
    BrokerConfig,
    ConfigLayers,
    DynamicBrokerConfig,
    Listener,
    resolve_listeners,
)
from moldau.broker.controller_channel import ControllerChannel
from moldau.broker.environment import Environment
from moldau.broker.handlers.api_versions import FeatureLevels
from moldau.broker.local_channel import LoopbackTransport
from moldau.broker.log.manager import LogManager
from moldau.broker.loggers import BrokerLoggers
from moldau.broker.metadata.machine.features import SUPPORTED_FEATURES
from moldau.broker.metadata.machine.model import Endpoint
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.metrics.node import NodeMetrics
from moldau.broker.metrics.requests import RequestMetrics
from moldau.broker.security.audit.log import AuditLog
from moldau.broker.security.authorization.authorization import Authorization
from moldau.broker.security.quotas.shell import ClientQuotas
from moldau.config.errors import ConfigError
from moldau.wire.errors import ApiError, ErrorCode

SECURITY_PROTOCOL_IDS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    cluster_id: str
    node_id: int
    configs: DynamicBrokerConfig
    environment: Environment
    transport: LoopbackTransport
    metadata: MetadataShell
    logs: LogManager
    loggers: BrokerLoggers
    authorization: Authorization | None
    """None: everybody may do everything."""
    quotas: ClientQuotas
    audit: AuditLog | None
    """None: nothing is audited."""
    on_failure: Callable[[BaseException], None]
    """Called on an unrecoverable error."""

    @property
    def config(self) -> BrokerConfig:
        """The current configuration, including dynamic changes."""
        return self.configs.current

    @property
    def metrics(self) -> NodeMetrics | None:
        """None: nothing is measured."""
        return self.environment.metrics

    @property
    def request_metrics(self) -> RequestMetrics | None:
        metrics = self.environment.metrics
        return None if metrics is None else metrics.requests

    @property
    def uses_acls(self) -> bool:
        """Whether the ACLs in the metadata log have an effect."""
        return self.authorization is not None and self.authorization.uses_acls

    def check_own_configs(self, changes: Mapping[str, str | None]) -> None:
        """ApiError if listeners could not use these changes: certificates that cannot be read."""
        layers = self.configs.layers
        values = {**layers.broker, **{name: text for name, text in changes.items() if text}}
        for name in changes.keys() - {name for name, text in changes.items() if text}:
            values.pop(name, None)
        try:
            config = ConfigLayers(layers.static, cluster=layers.cluster, broker=values).effective
        except ConfigError:
            return  # The controller rejects what is wrong in itself.
        try:
            self.environment.check(config)
        except ConfigError as error:
            raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from None

    def controller_channel(self) -> ControllerChannel:
        """A new channel to the active controller."""
        channel = ControllerChannel(
            self.transport,
            self.metadata.controller_node,
            self.environment.clock,
            request_timeout_ms=self.config.quorum.controller_socket_timeout_ms,
        )
        self.metadata.on_leader_changed(channel.on_controller_changed)
        return channel

    def feature_levels(self) -> FeatureLevels:
        return FeatureLevels(
            {name: (each.min_version, each.max_version)
             for name, each in SUPPORTED_FEATURES.items()},
            self.metadata.finalized_features,
            self.metadata.offset,
        )  # fmt: skip


def endpoints_of(listeners: tuple[Listener, ...], environment: Environment) -> tuple[Endpoint, ...]:
    """The endpoints of these listeners, with the ports that are bound."""
    host = "" if all(each.host for each in listeners) else environment.host_name()
    ports = {name: port for name, (_, port) in environment.network.addresses.items()}
    return tuple(
        Endpoint(
            name=each.name,
            host=each.host,
            port=each.port,
            security_protocol=SECURITY_PROTOCOL_IDS[each.security_protocol],
        )
        for each in resolve_listeners(listeners, canonical_host_name=host, bound_ports=ports)
    )
