"""What handlers read from a request: subjects with context and alias, versions, pages, bodies."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from moldau.http.request import Request
from moldau.services.registry.machine.errors import (
    InvalidRequest,
    RegistryError,
    invalid_version,
)
from moldau.services.registry.machine.queries import Deleted, page
from moldau.services.registry.machine.registration import RegisterRequest
from moldau.services.registry.machine.schemas import LATEST
from moldau.services.registry.machine.subjects import (
    QualifiedSubject,
    has_context,
    normalize,
    normalize_context,
)
from moldau.services.registry.service import RegistryService

__all__ = [
    "deleted_of",
    "json_body",
    "key_subject",
    "name_of",
    "paged",
    "prefix_of",
    "query_subject",
    "register_request",
    "settings_name",
    "subject_of",
    "version_of",
]

_INT32_MAX: Final = 2**31 - 1
_VERSION: Final = re.compile(r"[+-]?[0-9]{1,10}")


def _in_context(request: Request, name: str) -> str:
    context = request.path.get("context")
    if context is None or has_context(name):
        return name
    return normalize_context(context) + name


def name_of(request: Request) -> str:
    """The subject in the path, in the context of the path, whatever alias it is."""
    return _in_context(request, request.path["subject"])


def subject_of(service: RegistryService, request: Request) -> str:
    """The subject that the path is about."""
    return normalize(service.registry.scopes.resolve_alias(name_of(request)))


def key_subject(service: RegistryService, request: Request, given: str) -> str:
    """The subject that keys are for, which may have an alias of its own."""
    if not given:
        return given
    name = _in_context(request, given)
    return normalize(service.registry.scopes.resolve_alias(name, for_deks=True))


def query_subject(service: RegistryService, request: Request) -> str:
    """The parameter `subject`, or the context of the path, or the default context."""
    name = _in_context(request, request.text("subject") or "")
    return service.registry.scopes.resolve_alias(name) if name else name


def settings_name(request: Request) -> str | None:
    """What a config or mode is for: a subject, a context, or None for the registry."""
    name = _in_context(request, request.path.get("subject", ""))
    return None if QualifiedSubject.parse(name).is_default_context else normalize(name)


def prefix_of(request: Request, default: str) -> str:
    given = request.text("subjectPrefix")
    if request.path.get("context") is not None:
        return _in_context(request, given or "")
    return default if given is None else given


def version_of(request: Request) -> int:
    text: str = request.path["version"]
    if text.strip().lower() == "latest":
        return LATEST
    if not _VERSION.fullmatch(text.strip()):
        raise invalid_version(text)
    version = int(text)
    if version > _INT32_MAX or (version <= 0 and version != LATEST):
        raise invalid_version(text)
    return version


def deleted_of(request: Request) -> Deleted:
    if request.flag("deletedAsNegative"):
        return Deleted.AS_NEGATIVE
    if request.flag("deletedOnly"):
        return Deleted.ONLY
    return Deleted.INCLUDED if request.flag("deleted") else Deleted.EXCLUDED


def paged(request: Request, items: Iterable[Any], limit_max: int) -> list[Any]:
    offset = request.number("offset", 0) or 0
    limit = request.number("limit", -1)
    if offset < 0:
        raise RegistryError(422, 422, "offset must not be negative")
    return page(items, offset=offset, limit=-1 if limit is None else limit, limit_max=limit_max)


async def json_body(request: Request) -> dict[str, Any]:
    if not (await request.body()).strip():
        raise RegistryError(422, 422, "The request has no body. Send a JSON object")
    body = await request.json()
    if not isinstance(body, dict):
        raise InvalidRequest("The body of the request must be a JSON object")
    return body


async def register_request(request: Request) -> RegisterRequest:
    found = RegisterRequest.from_json(await json_body(request))
    if found.schema.rule_set is None:
        return found
    rule_set = found.schema.rule_set.with_keks()
    rule_set.check()
    return replace(found, schema=replace(found.schema, rule_set=rule_set))
