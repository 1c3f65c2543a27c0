"""/schemas: by id and guid, and listings of all of them."""

from __future__ import annotations

from typing import Any, Final

from moldau.http.request import Answer, Request
from moldau.services.registry.api.parameters import paged, prefix_of, query_subject
from moldau.services.registry.api.rendered import RenderedSchemas
from moldau.services.registry.api.subjects import add_tags, qualify_references, raw_text
from moldau.services.registry.machine.associations import STRONG, WEAK, Filter
from moldau.services.registry.machine.errors import InvalidRequest
from moldau.services.registry.machine.schemas import StoredSchema
from moldau.services.registry.machine.subjects import context_of
from moldau.services.registry.service import RegistryService

__all__ = ["SchemasApi"]

_NONE: Final = "NONE"


class SchemasApi:
    def __init__(self, service: RegistryService) -> None:
        self._service = service
        self._registry = service.registry
        size_max = service.config.cache_size
        self._plain = RenderedSchemas(lambda each: _unnamed(self._body(each)), size_max=size_max)
        self._named = RenderedSchemas(self._body, size_max=size_max)

    def list_types(self, request: Request) -> list[str]:
        return self._registry.parser.types

    def list_schemas(self, request: Request) -> list[dict[str, Any]]:
        found = self._registry.queries.schemas(
            prefix_of(request, ""),
            deleted=request.flag("deleted"),
            latest_only=request.flag("latestOnly"),
            aliases=request.flag("aliases"),
            rule_type=request.text("ruleType"),
        )
        if any(name in request.query for name in ("resourceType", "associationType", "lifecycle")):
            found = self._associated(request, found)
        return paged(request, found, self._service.config.limits["schema"])

    def _associated(self, request: Request, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Those with such associations; the lifecycle NONE means those without any."""
        lifecycles = request.query.get("lifecycle", [])
        for each in lifecycles:
            if each not in (STRONG, WEAK, _NONE):
                raise InvalidRequest(f"lifecycle must be STRONG, WEAK or NONE, not {each!r}")
        wanted = Filter(request.text("resourceType"), request.query.get("associationType", ()))
        kept = []
        for body in found:
            present = self._registry.state.associations.of_subject(body["subject"], wanted)
            matching = [each for each in present if not lifecycles or each.lifecycle in lifecycles]
            if matching:
                shown = [each.to_json() for each in matching]
                kept.append({**body, "associations": shown})
            elif not present and _NONE in lifecycles:
                kept.append(body)
        return kept

    def get_by_id(self, request: Request) -> dict[str, Any] | Answer:
        stored = self._by_id(request)
        in_context = "context" in request.path
        if not request.query:
            return Answer(body=(self._named if in_context else self._plain).of(stored))
        body = self._body(stored, request.text("format"))
        if not in_context and "subject" not in request.query:
            body = _unnamed(body)
        if request.text("referenceFormat") == "qualified":
            qualify_references(body, stored.subject)
        add_tags(request, body, stored)
        if request.flag("fetchMaxId"):
            maxima = self._registry.state.id_maxima
            body["maxId"] = maxima.get(context_of(stored.subject), 1)
        return body

    def get_text_by_id(self, request: Request) -> Answer:
        stored = self._by_id(request)
        return raw_text(self._registry.formatted(stored, request.text("format")))

    def _by_id(self, request: Request) -> StoredSchema:
        subject = query_subject(self._service, request)
        return self._registry.queries.by_id(request.path["id"], subject)

    def _body(self, stored: StoredSchema, format_name: str | None = None) -> dict[str, Any]:
        body = stored.to_json()
        del body["id"]
        body["schema"] = self._registry.formatted(stored, format_name)
        return body

    def list_subjects(self, request: Request) -> list[str]:
        names = [each.subject for each in self._users(request)]
        return paged(request, names, self._service.config.limits["subject"])

    def list_versions(self, request: Request) -> list[dict[str, Any]]:
        versions = [
            {"subject": each.subject, "version": each.version} for each in self._users(request)
        ]
        return paged(request, versions, self._service.config.limits["subject.version"])

    def _users(self, request: Request) -> list[StoredSchema]:
        return self._registry.queries.users_of_id(
            request.path["id"],
            query_subject(self._service, request),
            deleted=request.flag("deleted"),
        )

    def get_by_guid(self, request: Request) -> dict[str, Any]:
        stored = self._registry.queries.by_guid(request.path["guid"])
        return _unnamed(self._body(stored, request.text("format")))

    def list_ids_of_guid(self, request: Request) -> list[dict[str, Any]]:
        found = self._registry.queries.ids_of_guid(request.path["guid"])
        return [{"context": context, "id": id} for context, id in sorted(found)]


def _unnamed(body: dict[str, Any]) -> dict[str, Any]:
    """A schema of many subjects is shown with one of them only to who asked for that one."""
    del body["subject"], body["version"]
    return body
