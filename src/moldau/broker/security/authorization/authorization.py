"""The node's authorizer as the rest of the broker uses it, and the log of its decisions.

Denied operations are logged at INFO, allowed ones at DEBUG, as Kafka logs them and by the same
logger; checks that only filter what a client may see are not logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.network.context import ConnectionInfo, RequestContext
from moldau.broker.security.audit.log import AuditLog
from moldau.broker.security.authorization.interface import (
    Authorizer,
    ExplainingAuthorizer,
    MetadataAuthorizer,
    TypeAuthorizer,
)
from moldau.broker.security.authorization.machine.standard import StandardAuthorizer
from moldau.broker.security.plugins import load_class
from moldau.wire.acls import AclOperation, ResourceType
from moldau.wire.apis import API_BY_KEY

AUTHORIZER_CLASS: Final = "authorizer.class.name"
#: Kafka's own; the name stands in many a configuration.
STANDARD: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

#: A name that stands for all resources of a type where an authorizer knows only names.
_SOME_NAME: Final = "hardcode"

_CLUSTER: Final = ResourceType.CLUSTER

logger = logging.getLogger("kafka.authorizer.logger")


class Authorization:
    """One per node. Without an authorizer there is none, and nothing is asked."""

    def __init__(self, authorizer: Authorizer, audit: AuditLog | None = None) -> None:
        self._authorizer = authorizer
        self._audit = audit
        self._authorize = authorizer.authorize
        self._granted: dict[ConnectionInfo, None] = {}

    @property
    def uses_acls(self) -> bool:
        """Whether the ACLs in the metadata log have an effect."""
        return isinstance(self._authorizer, MetadataAuthorizer)

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if isinstance(self._authorizer, MetadataAuthorizer):
            self._authorizer.apply(delta, image)
        if delta.acls_changed:
            self.forget()

    def forget(self) -> None:
        """Ask again about everything: ACLs, or what is logged, have changed."""
        for connection in self._granted:
            connection.grants.clear()

    @property
    def remembers(self) -> bool:
        """Whether decisions depend on principal, host, operation and resource only, and change
        with the ACLs: of other authorizers only their authors know what decides."""
        return type(self._authorizer) is StandardAuthorizer

    def remember_in(self, connection: ConnectionInfo) -> None:
        """Clear the connection's grants when what decides may have changed."""
        if connection not in self._granted:
            self._granted[connection] = None
            connection.when_closed(self._on_closed)

    def _on_closed(self, connection: ConnectionInfo) -> None:
        self._granted.pop(connection, None)

    def audit_text(
        self,
        request: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
    ) -> str:
        """What the audit log writes each time that this is allowed; empty for nothing."""
        if self._audit is None:
            return ""
        return self._audit.text_if_allowed(request, operation.name, resource_type.name, name) or ""

    @property
    def audit_again(self) -> Callable[[str], None] | None:
        """To be called with an `audit_text` each time that this is allowed once more; None if the
        audit log gets nothing that is allowed."""
        return self._audit.repeat if self._audit is not None and self._audit.wants_allowed else None

    @property
    def logs(self) -> Callable[[int], bool]:
        """Whether decisions of a level are logged: what is allowed at DEBUG."""
        return logger.isEnabledFor

    def allows(
        self,
        request: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        *,
        logged: bool = True,
        only_asked: bool = False,
    ) -> bool:
        """`only_asked`: the answer is returned to the client, and nothing is done."""
        allowed = self._authorize(request, operation, resource_type, name)
        if self._audit is not None and (
            # A permission on the cluster that stands for those on many resources is not logged
            # where it is missing, but where there is one, it is what allows the operation.
            logged or (allowed and resource_type is _CLUSTER and not only_asked)
        ):
            self._audit.operation(
                request, operation.name, resource_type.name, name, allowed=allowed
            )
        if logged and logger.isEnabledFor(logging.DEBUG if allowed else logging.INFO):
            self._log(request, operation, resource_type, name, allowed)
        return allowed

    def allows_any(
        self, request: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Whether there may be a resource of this type on which the operation is allowed."""
        if isinstance(self._authorizer, TypeAuthorizer):
            return self._authorizer.authorize_by_resource_type(request, operation, resource_type)
        return self._authorizer.authorize(request, operation, resource_type, _SOME_NAME)

    def _log(
        self,
        request: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        allowed: bool,
    ) -> None:
        rule = ""
        if isinstance(self._authorizer, ExplainingAuthorizer):
            rule = self._authorizer.rule(request, operation, resource_type, name)
        logger.log(
            logging.DEBUG if allowed else logging.INFO,
            "Principal = %s is %s operation = %s from host = %s on resource = %s:LITERAL:%s "
            "for request = %s%s",
            request.principal,
            "Allowed" if allowed else "Denied",
            operation.name,
            request.client_host,
            resource_type.name.title().replace("_", ""),
            name,
            API_BY_KEY[request.api_key].name,
            f" based on rule {rule}" if rule else "",
        )


def load_authorization(
    class_name: str,
    settings: Mapping[str, str],
    *,
    caught_up: Callable[[], bool],
    audit: AuditLog | None = None,
) -> Authorization | None:
    """What authorizer.class.name selects; None if it is empty.

    `caught_up` returns whether the metadata image has everything that was committed.
    """
    if not class_name:
        return None
    authorizer: Authorizer
    if class_name in (STANDARD, "StandardAuthorizer"):
        authorizer = StandardAuthorizer(caught_up)
    else:
        authorizer = load_class(AUTHORIZER_CLASS, class_name, methods=("configure", "authorize"))()
    authorizer.configure(settings)
    return Authorization(authorizer, audit)
