"""What ACLs allow to whom, as Kafka's standard authorizer decides it.

Decided here, in this order: a super user may do everything; an ACL that denies wins over all that
allow, whatever their patterns; an ACL that allows; what no ACL covers is denied unless
allow.everyone.if.no.acl.found is set. READ, WRITE, DELETE and ALTER imply DESCRIBE, ALTER_CONFIGS
implies DESCRIBE_CONFIGS, and only where they allow. Hosts are compared as text.

Invariants: a decision is remembered until any ACL changes, and never longer; as long as the ACLs
are not known (`ready`), only super users may do anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from ipaddress import IPv6Address
from typing import Final
from uuid import UUID

from moldau.broker.metadata.machine.acl_model import Acl
from moldau.broker.security.authorization.machine.acl_index import AclIndex
from moldau.wire.acls import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
)
from moldau.wire.messages import AccessControlEntryRecord

#: How many decisions are remembered. A full memory is emptied: entries cost about 200 bytes.
DECISIONS_MAX: Final = 100_000

#: Which operations of an ACL that allows also allow this one.
_IMPLIED_BY: Final[dict[int, frozenset[int]]] = {
    AclOperation.DESCRIBE: frozenset(
        {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.ALTER_CONFIGS}),
}
_NONE: Final[frozenset[int]] = frozenset()

#: Any name will do to find a super user, or a cluster in which everybody may do everything.
_SOME_NAME: Final = "hardcode"


class AclDecisions:
    def __init__(
        self,
        *,
        super_users: Collection[str] = (),
        allow_everyone_if_no_acl_found: bool = False,
        ready: bool = True,
        decisions_max: int = DECISIONS_MAX,
    ) -> None:
        self._super_users = frozenset(super_users)
        self._default = allow_everyone_if_no_acl_found
        self._ready = ready
        self._decisions_max = decisions_max
        self._index = AclIndex()
        self._decisions: dict[tuple[str, str, int, int, str], bool] = {}
        self._by_type: dict[tuple[str, str, int, int], bool] = {}

    # Changes. ---------------------------------------------------------------------------------

    def set_ready(self) -> None:
        """All ACLs are known."""
        self._ready = True
        self._forget()

    def replace_acls(self, records: Mapping[UUID, AccessControlEntryRecord]) -> None:
        self._index = AclIndex()
        self.change_acls(records, records)

    def change_acls(
        self, ids: Iterable[UUID], records: Mapping[UUID, AccessControlEntryRecord]
    ) -> None:
        """The ACLs with these ids are now those in `records`, or are gone."""
        for acl_id in ids:
            record = records.get(acl_id)
            if record is None:
                self._index.remove(acl_id)
            else:
                self._index.add(acl_id, Acl.of(record))
        self._forget()

    def _forget(self) -> None:
        self._decisions.clear()
        self._by_type.clear()

    # Decisions. -------------------------------------------------------------------------------

    def authorize(
        self, principal: str, host: str, operation: int, resource_type: int, name: str
    ) -> bool:
        key = (principal, host, operation, resource_type, name)
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._decide(principal, host, operation, resource_type, name)[0]
            if len(self._decisions) >= self._decisions_max:
                self._decisions.clear()
            self._decisions[key] = decision
        return decision

    def rule(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> str:
        """What decides, as Kafka's audit log spells it."""
        return self._decide(principal, host, operation, resource_type, name)[1]

    def authorize_by_resource_type(
        self, principal: str, host: str, operation: int, resource_type: int
    ) -> bool:
        """Whether there may be a resource of this type on which the operation is allowed."""
        key = (principal, host, operation, resource_type)
        decision = self._by_type.get(key)
        if decision is None:
            decision = self._decide_by_type(principal, host, operation, resource_type)
            if len(self._by_type) >= self._decisions_max:
                self._by_type.clear()
            self._by_type[key] = decision
        return decision

    def _decide(
        self, principal: str, host: str, operation: int, resource_type: int, name: str
    ) -> tuple[bool, str]:
        if principal in self._super_users:
            return True, "SuperUser"
        if not self._ready:
            return False, "NotReady"
        host = _as_in_acls(host)
        allowed: Acl | None = None
        covered = False
        for acl in self._index.covering(resource_type, name):
            covered = True
            if not _concerns(acl, principal, host):
                continue
            if acl.permission_type == AclPermissionType.DENY:
                if acl.operation in (operation, AclOperation.ALL):
                    return False, f"MatchingAcl(acl={acl})"
            elif allowed is None and (
                acl.operation in (operation, AclOperation.ALL)
                or acl.operation in _IMPLIED_BY.get(operation, _NONE)
            ):
                allowed = acl
        if allowed is not None:
            return True, f"MatchingAcl(acl={allowed})"
        if covered or not self._default:
            return False, "DefaultDeny"
        return True, "DefaultAllow"

    def _decide_by_type(
        self, principal: str, host: str, operation: int, resource_type: int
    ) -> bool:
        if self._decide(principal, host, operation, resource_type, _SOME_NAME)[0]:
            return True
        if not self._ready:
            return False
        host = _as_in_acls(host)
        denied: set[tuple[int, str]] = set()
        allowed: set[tuple[int, str]] = set()
        for acl in self._index.of_type(resource_type):
            if acl.operation in (operation, AclOperation.ALL) and _concerns(acl, principal, host):
                denies = acl.permission_type == AclPermissionType.DENY
                (denied if denies else allowed).add((acl.pattern_type, acl.resource_name))
        if (PatternType.LITERAL, WILDCARD) in denied:
            return False
        if (PatternType.LITERAL, WILDCARD) in allowed:
            return True
        return any(not _is_dominated(pattern, name, denied) for pattern, name in allowed)


def _as_in_acls(host: str) -> str:
    """An address as Java spells it: all eight groups of IPv6, and IPv4 never inside IPv6."""
    if ":" not in host:
        return host
    address, percent, scope = host.partition("%")
    parsed = IPv6Address(address)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    groups = (f"{int(group, 16):x}" for group in parsed.exploded.split(":"))
    return ":".join(groups) + percent + scope


def _concerns(acl: Acl, principal: str, host: str) -> bool:
    return acl.principal in (principal, WILDCARD_PRINCIPAL) and acl.host in (host, WILDCARD)


def _is_dominated(pattern: int, name: str, denied: set[tuple[int, str]]) -> bool:
    """Whether everything that the pattern allows is also denied."""
    if pattern == PatternType.LITERAL and (PatternType.LITERAL, name) in denied:
        return True
    return any(
        (PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1)
    )
