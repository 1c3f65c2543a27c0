"""Kafka's StandardAuthorizer: settings and the ACLs of the metadata log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.network.context import RequestContext
from moldau.broker.security.authorization.machine.decisions import AclDecisions
from moldau.config.errors import ConfigError
from moldau.wire.acls import AclOperation, ResourceType

SUPER_USERS: Final = "super.users"
ALLOW_EVERYONE: Final = "allow.everyone.if.no.acl.found"


class StandardAuthorizer:
    """Implements `interface.Authorizer` and what is optional."""

    def __init__(self, caught_up: Callable[[], bool] = lambda: True) -> None:
        """`caught_up`: the metadata image has everything that was committed; until then other ACLs
        may exist than those that are known."""
        self._caught_up = caught_up
        self._ready = False
        self._decisions = AclDecisions(ready=False)

    def configure(self, settings: Mapping[str, str]) -> None:
        allow = settings.get(ALLOW_EVERYONE, "").strip().lower() == "true"
        self._decisions = AclDecisions(
            super_users=super_users(settings),
            allow_everyone_if_no_acl_found=allow,
            ready=False,
        )

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if not delta.acls_changed:
            return
        if delta.from_snapshot:
            self._decisions.replace_acls(image.acls)
        else:
            self._decisions.change_acls(delta.acls, image.acls)

    def authorize(
        self,
        request: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        if not self._ready:
            self._check_ready()
        return self._decisions.authorize(
            request.principal, request.client_host, operation, resource_type, name
        )

    def authorize_by_resource_type(
        self, request: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        if not self._ready:
            self._check_ready()
        return self._decisions.authorize_by_resource_type(
            request.principal, request.client_host, operation, resource_type
        )

    def _check_ready(self) -> None:
        if self._caught_up():
            self._ready = True
            self._decisions.set_ready()

    def rule(
        self,
        request: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
    ) -> str:
        return self._decisions.rule(
            request.principal, request.client_host, operation, resource_type, name
        )


def super_users(settings: Mapping[str, str]) -> frozenset[str]:
    """The principals in super.users, which are separated by semicolons."""
    found = set()
    for text in settings.get(SUPER_USERS, "").split(";"):
        principal = text.strip()
        if not principal:
            continue
        kind, colon, name = principal.partition(":")
        if not (kind and colon and name):
            raise ConfigError(
                f"Invalid value {principal} in {SUPER_USERS}: expected a string in format "
                "principalType:principalName, such as User:admin",
                key=SUPER_USERS,
                value=principal,
            )
        found.add(principal)
    return frozenset(found)
