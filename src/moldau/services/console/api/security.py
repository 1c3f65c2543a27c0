"""Security: ACLs, SCRAM users, quotas, delegation tokens."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, TypeVar

from moldau.client.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaOp,
    DelegationToken,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from moldau.http.machine.routes import Route
from moldau.http.request import Request
from moldau.services.console.api.bodies import Body, body_of, paging_of
from moldau.services.console.api.routing import CLUSTER, PAGING, api, fields, text
from moldau.services.console.backend import Backend, Call
from moldau.services.console.machine.errors import bad_request, missing
from moldau.services.console.machine.paging import page_of

__all__ = ["SecurityHandlers"]

E = TypeVar("E", bound=IntEnum)
ITERATIONS: Final = 4096
_ACL: Final = fields(
    "resource_type", "resource_name", "principal", "operation", resource_type="string",
    resource_name="string", pattern_type="string", principal="string", host="string",
    operation="string", permission="string",
)  # fmt: skip


class SecurityHandlers:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        tag = "security"
        token = fields("id", id="string", period_ms="integer")
        return [
            api("GET", f"{CLUSTER}/acls", self.acls, "A page of the ACLs", tag=tag,
                parameters=PAGING),
            api("POST", f"{CLUSTER}/acls", self.add_acl, "Add an ACL", tag=tag, body=_ACL),
            api("POST", f"{CLUSTER}/acls/delete", self.delete_acl, "Delete an ACL", tag=tag,
                body=_ACL),
            api("GET", f"{CLUSTER}/users", self.users, "Users with SCRAM credentials", tag=tag),
            api("PUT", f"{CLUSTER}/users/{{user}}", self.set_user, "Set a user's password",
                tag=tag, body=fields("password", password="string", mechanism="string",
                                     iterations="integer")),
            api("DELETE", f"{CLUSTER}/users/{{user}}", self.delete_user,
                "Delete a user's credentials", tag=tag,
                parameters=(text("mechanism", "only this one"),)),
            api("GET", f"{CLUSTER}/quotas", self.quotas, "Quotas", tag=tag),
            api("POST", f"{CLUSTER}/quotas", self.set_quota,
                "Set quotas; null takes one away", tag=tag,
                body=fields("entity", "values", entity="object", values="object")),
            api("GET", f"{CLUSTER}/tokens", self.tokens, "Delegation tokens", tag=tag),
            api("POST", f"{CLUSTER}/tokens", self.create_token, "Create a delegation token",
                tag=tag, body=fields(renewers="array", max_lifetime_ms="integer", owner="string")),
            api("POST", f"{CLUSTER}/tokens/renew", self.renew_token, "Renew one", tag=tag,
                body=token),
            api("POST", f"{CLUSTER}/tokens/expire", self.expire_token, "End one", tag=tag,
                body=token),
        ]  # fmt: skip

    async def acls(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            found = await call.admin.describe_acls()
            rows = [_shown_acl(each) for each in found]
            shown, counts = page_of(
                rows,
                paging_of(request),
                name=lambda row: " ".join(row.values()),
                columns={"principal": lambda row: row["principal"],
                         "resource": lambda row: (row["resource_type"], row["resource_name"])},
            )  # fmt: skip
            return {"data": shown, **counts}

    async def add_acl(self, request: Request) -> dict[str, Any]:
        body = await body_of(request)
        binding = _binding(body)
        async with self._backend.change(request, "add-acl", _acl_text(binding)) as call:
            await call.admin.create_acls([binding])
            return _shown_acl(binding)

    async def delete_acl(self, request: Request) -> dict[str, Any]:
        body = await body_of(request)
        binding = _binding(body)
        async with self._backend.change(request, "delete-acl", _acl_text(binding)) as call:
            wanted = binding.to_filter()
            deleted = (await call.admin.delete_acls([wanted]))[wanted]
            return {"deleted": len(deleted)}

    async def users(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            found = await call.admin.describe_user_scram_credentials(check=False)
            return {
                "data": [
                    {
                        "user": name,
                        "credentials": [
                            {
                                "mechanism": info.mechanism.mechanism_name,
                                "iterations": info.iterations,
                            }
                            for info in each.credential_infos
                        ],
                    }
                    for name, each in sorted(found.values_by_key.items())
                ]
            }

    async def set_user(self, request: Request) -> dict[str, Any]:
        body = await body_of(request)
        user = request.path["user"]
        mechanism = ScramMechanism.from_mechanism_name(body.text("mechanism", "SCRAM-SHA-512"))
        if mechanism is ScramMechanism.UNKNOWN:
            raise bad_request("mechanism: use SCRAM-SHA-256 or SCRAM-SHA-512.")
        password = body.text("password")
        if not password:
            raise bad_request("The password is empty.")
        info = ScramCredentialInfo(mechanism, body.integer("iterations", ITERATIONS))
        async with self._backend.change(
            request, "set-user", user, {"mechanism": mechanism.mechanism_name}
        ) as call:
            await call.admin.alter_user_scram_credentials(
                [UserScramCredentialUpsertion(user, info, password)]
            )
            return {"user": user}

    async def delete_user(self, request: Request) -> dict[str, Any]:
        user, named = request.path["user"], request.text("mechanism")
        async with self._backend.change(request, "delete-user", user) as call:
            found = (await call.admin.describe_user_scram_credentials([user]))[user]
            mechanisms = [
                info.mechanism
                for info in found.credential_infos
                if named is None or info.mechanism.mechanism_name == named
            ]
            for mechanism in mechanisms:
                await call.admin.alter_user_scram_credentials(
                    [UserScramCredentialDeletion(user, mechanism)]
                )
            return {"deleted": len(mechanisms)}

    async def quotas(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            found = await call.admin.describe_client_quotas()
            return {
                "data": [
                    {"entity": entity.names, "values": values}
                    for entity, values in sorted(found.items(), key=lambda each: str(each[0]))
                ]
            }

    async def set_quota(self, request: Request) -> dict[str, Any]:
        body = await body_of(request)
        named = body.mapping("entity")
        if not all(each is None or isinstance(each, str) for each in named.values()):
            raise bad_request("The names of an entity are texts, or null for the default.")
        entity = ClientQuotaEntity.of(named)
        try:
            operations = tuple(
                ClientQuotaOp(key, None if value is None else float(value))
                for key, value in body.mapping("values").items()
            )
        except (TypeError, ValueError):
            raise bad_request("Quotas are numbers, or null.") from None
        if not entity.entries or not operations:
            raise bad_request("Name an entity (user, client-id or ip) and at least one quota.")
        async with self._backend.change(
            request, "set-quota", _entity_text(entity.names), body.fields
        ) as call:
            await call.admin.alter_client_quotas([ClientQuotaAlteration(entity, operations)])
            return {"entity": entity.names}

    async def tokens(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            found = await call.admin.describe_delegation_token()
            return {"data": [_shown_token(each) for each in found]}

    async def create_token(self, request: Request) -> dict[str, Any]:
        body = await body_of(request)
        try:
            renewers = [KafkaPrincipal.parse(str(each)) for each in body.items("renewers", [])]
            owner = KafkaPrincipal.parse(body.text("owner")) if "owner" in body else None
        except ValueError as error:
            raise bad_request(str(error)) from None
        async with self._backend.change(
            request, "create-token", request.principal.name, body.fields
        ) as call:
            made = await call.admin.create_delegation_token(
                owner=owner,
                renewers=renewers,
                max_lifetime_ms=body.integer("max_lifetime_ms", -1),
            )
            # The secret is shown once, to the user who made the token.
            return {**_shown_token(made), "hmac": made.hmac_as_base64_string}

    async def renew_token(self, request: Request) -> dict[str, Any]:
        body = await body_of(request)
        token_id = body.text("id")
        async with self._backend.change(request, "renew-token", token_id) as call:
            expires = await call.admin.renew_delegation_token(
                await _hmac(call, token_id), renew_time_period_ms=body.integer("period_ms", -1)
            )
            return {"expires_ms": expires}

    async def expire_token(self, request: Request) -> dict[str, Any]:
        body = await body_of(request)
        token_id = body.text("id")
        async with self._backend.change(request, "expire-token", token_id) as call:
            expires = await call.admin.expire_delegation_token(
                await _hmac(call, token_id), expiry_time_period_ms=body.integer("period_ms", -1)
            )
            return {"expires_ms": expires}


def _shown_acl(binding: AclBinding) -> dict[str, str]:
    return {
        "resource_type": binding.pattern.resource_type.name,
        "resource_name": binding.pattern.name,
        "pattern_type": binding.pattern.pattern_type.name,
        "principal": binding.entry.principal,
        "host": binding.entry.host,
        "operation": binding.entry.operation.name,
        "permission": binding.entry.permission_type.name,
    }


def _acl_text(binding: AclBinding) -> str:
    shown = _shown_acl(binding)
    return (
        f"{shown['permission']} {shown['principal']} {shown['operation']} on "
        f"{shown['resource_type']} {shown['resource_name']} ({shown['pattern_type']})"
    )


def _binding(body: Body) -> AclBinding:
    return AclBinding(
        ResourcePattern(
            _named(ResourceType, body.text("resource_type")),
            body.text("resource_name"),
            _named(PatternType, body.text("pattern_type", "LITERAL")),
        ),
        AccessControlEntry(
            body.text("principal"),
            body.text("host", "*"),
            _named(AclOperation, body.text("operation")),
            _named(AclPermissionType, body.text("permission", "ALLOW")),
        ),
    )


def _named(kind: type[E], name: str) -> E:
    found = kind.__members__.get(name.upper())
    if found is None or name.upper() in ("UNKNOWN", "ANY", "MATCH"):
        known = [each for each in kind.__members__ if each not in ("UNKNOWN", "ANY", "MATCH")]
        raise bad_request(f"{name}: use one of {', '.join(known)}")
    return found


def _entity_text(names: dict[str, str | None]) -> str:
    return ", ".join(
        f"{kind} {'(default)' if name is None else name}" for kind, name in names.items()
    )


def _shown_token(token: DelegationToken) -> dict[str, Any]:
    info = token.token_info
    return {
        "id": info.token_id,
        "owner": str(info.owner),
        "requester": str(info.token_requester),
        "renewers": [str(each) for each in info.renewers],
        "issued_ms": info.issue_timestamp,
        "expires_ms": info.expiry_timestamp,
        "max_ms": info.max_timestamp,
    }


async def _hmac(call: Call, token_id: str) -> bytes:
    """The secret of a token that the user may see; the browser never needs it. Raises HttpError."""
    for token in await call.admin.describe_delegation_token():
        if token.token_info.token_id == token_id:
            return token.hmac
    raise missing("delegation token", token_id)
