"""This broker as it registers itself where it and its controller are one process."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from moldau.broker.metadata.features import SUPPORTED_FEATURES
from moldau.broker.metadata.model import Endpoint
from moldau.wire.messages import BrokerRegistrationRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerIdentity:
    """This broker as it registers itself.

    `previous_broker_epoch` is that of the clean-shutdown file, -1 after a crash.
    `controller_endpoints` are where it serves as a controller, empty if it does not.
    """

    broker_id: int
    incarnation_id: UUID
    endpoints: tuple[Endpoint, ...]
    log_dirs: tuple[UUID, ...]
    rack: str | None = None
    previous_broker_epoch: int = -1
    controller_endpoints: tuple[Endpoint, ...] = ()

    def registration(self, cluster_id: str) -> BrokerRegistrationRequest:
        return BrokerRegistrationRequest(
            broker_id=self.broker_id,
            cluster_id=cluster_id,
            incarnation_id=self.incarnation_id,
            listeners=[
                BrokerRegistrationRequest.Listener(
                    name=end.name,
                    host=end.host,
                    port=end.port,
                    security_protocol=end.security_protocol,
                )
                for end in self.endpoints
            ],
            features=[
                BrokerRegistrationRequest.Feature(
                    name=name,
                    min_supported_version=levels.min_version,
                    max_supported_version=levels.max_version,
                )
                for name, levels in SUPPORTED_FEATURES.items()
            ],
            rack=self.rack,
            log_dirs=list(self.log_dirs),
            previous_broker_epoch=self.previous_broker_epoch,
        )
