"""API v3: access control lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moldau.client.admin import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from moldau.http.machine.errors import HttpError, not_found
from moldau.http.machine.routes import Parameter, Route
from moldau.http.request import Answer, Request
from moldau.services.rest.backend import Backend
from moldau.services.rest.machine import bodies
from moldau.services.rest.machine.errors import bad_request
from moldau.services.rest.v3.routing import CLUSTER, object_body, v3

__all__ = ["AclHandlers"]

_ENUMS: Final[Mapping[str, Any]] = {
    "resource_type": ResourceType,
    "pattern_type": PatternType,
    "operation": AclOperation,
    "permission": AclPermissionType,
}
_NAMES: Final = (
    "resource_type",
    "resource_name",
    "pattern_type",
    "principal",
    "host",
    "operation",
    "permission",
)


class AclHandlers:
    """See the module."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        path = f"{CLUSTER}/acls"
        return [
            v3("GET", path, self._search, "Search ACLs", tag="acl", answer="AclDataList",
               parameters=_parameters(required=False)),
            v3("POST", path, self._create, "Create an ACL", tag="acl", answer="Empty",
               status=201, body="CreateAclRequestData"),
            v3("DELETE", path, self._delete, "Delete ACLs", tag="acl",
               answer="DeleteAclsResponse", parameters=_parameters(required=True)),
            v3("POST", f"{path}:batch", self._create_all, "Create ACLs", tag="acl",
               answer="Empty", status=201, body="CreateAclRequestDataList"),
        ]  # fmt: skip

    async def _search(self, request: Request) -> Any:
        wanted = _filter(request, missing="ANY", refused="cannot be UNKNOWN")
        async with self._backend.v3(request) as call:
            found = await call.clients.admin.describe_acls(wanted)
            query = request.scope["query_string"].decode("latin-1")
            url = call.resources.url("acls") + (f"?{query}" if query else "")
            data = [call.resources.acl(each) for each in sorted(found, key=str)]
            return call.resources.collection("KafkaAcl", data, url)

    async def _create(self, request: Request) -> Answer:
        binding = _binding(await object_body(request))
        async with self._backend.v3(request) as call:
            await call.clients.admin.create_acls([binding])
            location = call.resources.acl(binding)["metadata"]["self"]
            return Answer(status=201, body=b"", headers={"Location": location})

    async def _create_all(self, request: Request) -> Answer:
        body = await object_body(request)
        data = bodies.items(body, "data")
        if data is None:
            bodies.required(body, "data")
        bindings = [_binding(each) for each in data or ()]
        async with self._backend.v3(request) as call:
            if bindings:
                await call.clients.admin.create_acls(bindings)
            return Answer(status=201, body=b"")

    async def _delete(self, request: Request) -> Any:
        wanted = _filter(request, missing="UNKNOWN", refused="cannot be unspecified or UNKNOWN")
        async with self._backend.v3(request) as call:
            found = (await call.clients.admin.delete_acls([wanted]))[wanted]
            for each in found:
                if each.error is not None:
                    raise each.error
            return {"data": [call.resources.acl(each.binding) for each in found]}


def _parameters(*, required: bool) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(
            name=name,
            required=required and name in _ENUMS,
            schema={"type": "string", "enum": [each.name for each in _ENUMS[name]]}
            if name in _ENUMS
            else {"type": "string"},
        )
        for name in _NAMES
    )


def _filter(request: Request, *, missing: str, refused: str) -> AclBindingFilter:
    """Raises HttpError: 404 for a word that is none, as JAX-RS has it for query parameters."""
    words = {}
    for name, kind in _ENUMS.items():
        text = (request.text(name) or missing).upper()
        if text not in kind.__members__:
            raise not_found()
        if text == "UNKNOWN":
            raise bad_request(f"{name} {refused}")
        words[name] = kind[text]
    return AclBindingFilter(
        ResourcePatternFilter(
            words["resource_type"], request.text("resource_name") or None, words["pattern_type"]
        ),
        AccessControlEntryFilter(
            request.text("principal") or None,
            request.text("host") or None,
            words["operation"],
            words["permission"],
        ),
    )


def _binding(body: Mapping[str, Any]) -> AclBinding:
    """Raises HttpError."""
    texts = {}
    for name in _NAMES:
        bodies.required(body, name)
        texts[name] = bodies.text(body, name) or ""
    words = {}
    for name, kind in _ENUMS.items():
        text = texts[name].upper()
        if text not in kind.__members__:
            raise HttpError(400, f"{name} {texts[name]} is none of {', '.join(kind.__members__)}")
        if text in ("UNKNOWN", "ANY", "MATCH"):
            raise bad_request(f"{name} cannot be {text}")
        words[name] = kind[text]
    if not texts["principal"].partition(":")[1]:
        raise HttpError(
            400,
            f"Could not parse principal from `{texts['principal']}` (no colon is present "
            "separating the principal type from the principal name)",
            error_code=40002,
        )
    return AclBinding(
        ResourcePattern(words["resource_type"], texts["resource_name"], words["pattern_type"]),
        AccessControlEntry(
            texts["principal"], texts["host"], words["operation"], words["permission"]
        ),
    )
