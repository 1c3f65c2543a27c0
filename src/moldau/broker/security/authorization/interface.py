"""What an authorizer is: implement this to decide by other means than Kafka's ACLs.

    # server.properties
    authorizer.class.name=my_company.kafka.TeamAuthorizer
    team.file=/etc/kafka/teams.json

    # my_company/kafka.py
    class TeamAuthorizer:
        def configure(self, settings):
            self._teams = json.loads(Path(settings["team.file"]).read_text())

        def authorize(self, request, operation, resource_type, name):
            if resource_type == ResourceType.TOPIC:
                return name.split(".")[0] in self._teams.get(request.principal, ())
            return operation in (AclOperation.READ, AclOperation.DESCRIBE)

The class is created without arguments, once per node. `authorize` is called for every resource of
every request on the node's event loop: it must be quick and must not wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.network.context import RequestContext
from moldau.wire.acls import AclOperation, ResourceType


class Authorizer(Protocol):
    """Decides what the sender of a request may do."""

    def configure(self, settings: Mapping[str, str]) -> None:
        """Called once, with all settings of the node as they are written."""
        ...

    def authorize(
        self,
        request: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        """Whether `request.principal` at `request.client_host` may do that."""
        ...


@runtime_checkable
class TypeAuthorizer(Protocol):
    """An authorizer that also knows whether there is any resource with a permission.

    InitProducerId asks it; without this method `authorize` is called for a name nobody uses."""

    def authorize_by_resource_type(
        self, request: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> bool: ...


@runtime_checkable
class MetadataAuthorizer(Protocol):
    """An authorizer that uses the ACLs in the metadata log. Without this method, CreateAcls,
    DeleteAcls and DescribeAcls are answered with SECURITY_DISABLED."""

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Called with the whole image first, then with every change, before clients see it."""
        ...


@runtime_checkable
class ExplainingAuthorizer(Protocol):
    """An authorizer that can give the reason of a decision, for the log."""

    def rule(
        self,
        request: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
    ) -> str: ...
