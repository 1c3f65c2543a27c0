"""/associations: which subjects belong to the keys and values of which topics."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Final

from moldau.http.request import Answer, Request
from moldau.services.registry.api.parameters import json_body, paged, subject_of
from moldau.services.registry.machine.association_changes import Associated
from moldau.services.registry.machine.association_requests import (
    TOPIC,
    Delete,
    Operation,
    Resource,
    create_or_update_request,
    lifecycle_of,
    lookup_request,
    operations_request,
)
from moldau.services.registry.machine.associations import Association, Filter
from moldau.services.registry.machine.decision import Decision
from moldau.services.registry.machine.errors import (
    InvalidRequest,
    RegistryError,
    association_not_found,
    invalid_association,
)
from moldau.services.registry.machine.json_fields import JsonObject, list_field
from moldau.services.registry.machine.schemas import StoredSchema
from moldau.services.registry.machine.subjects import normalize_context
from moldau.services.registry.service import RegistryService

__all__ = ["AssociationsApi"]

_SEVERAL: Final = 207
_REQUESTS_MAX: Final = 1_000


class AssociationsApi:
    def __init__(self, service: RegistryService) -> None:
        self._service = service
        self._registry = service.registry
        self._associations = service.registry.state.associations

    # Reading.

    def by_subject(self, request: Request) -> list[dict[str, Any]]:
        subject = subject_of(self._service, request)
        return self._page(request, self._associations.of_subject(subject, _filter(request)))

    def by_name(self, request: Request) -> list[dict[str, Any]]:
        name, namespace = request.path["resourceName"], request.path["resource"]
        return self._page(
            request, self._associations.of_resource(name, namespace, _filter(request))
        )

    def by_id(self, request: Request) -> list[dict[str, Any]]:
        found = self._associations.of_resource_id(request.path["resource"], _filter(request))
        return self._page(request, found)

    def _page(self, request: Request, found: list[Association]) -> list[dict[str, Any]]:
        limit = self._service.config.limits["schema"]
        return paged(request, [each.to_json() for each in found], limit)

    async def get_several(self, request: Request) -> Answer:
        schemas = request.flag("includeSchemas")
        results = []
        for body in await _requests(request):
            try:
                found = self._registry.associations.look_up(lookup_request(body), schemas=schemas)
                results.append({"result": found.to_json()})
            except RegistryError as error:
                message = f"Error while getting associations: {error.message}"
                results.append(_failed(500, message))
        return Answer(status=_SEVERAL, body={"results": results})

    # Writing.

    async def create(self, request: Request) -> Answer:
        return await self._put(request, created=True, resource_id=None)

    async def create_or_update(self, request: Request) -> Answer:
        return await self._put(request, created=False, resource_id=request.path["resource"])

    async def _put(self, request: Request, *, created: bool, resource_id: str | None) -> Answer:
        dry_run = request.flag("dryRun")
        resource, wanted = create_or_update_request(
            await json_body(request), created=created, dry_run=dry_run, resource_id=resource_id
        )
        return await self._service.write(
            request,
            self._decide(request, resource, Operation(created, wanted)),
            Associated.to_json,
        )

    async def delete(self, request: Request) -> Answer:
        wanted, resource_id = _filter(request), request.path["resource"]
        cascade, dry_run = request.flag("cascadeLifecycle"), request.flag("dryRun")
        if not self._associations.of_resource_id(resource_id, wanted):
            raise association_not_found(resource_id)
        answer = await self._service.write(
            request,
            lambda: self._registry.associations.delete(
                resource_id, wanted, cascade=cascade, dry_run=dry_run
            ),
            lambda _: None,
        )
        return Answer(status=204) if answer.status == 200 else answer

    async def change_several(self, request: Request) -> Answer:
        results: list[dict[str, Any]] = []
        for body in await _requests(request):
            forwarded = await self._change(request, body, results)
            if forwarded is not None:
                return forwarded
        return Answer(status=_SEVERAL, body={"results": results})

    async def _change(
        self, request: Request, body: JsonObject, results: list[dict[str, Any]]
    ) -> Answer | None:
        """Add the result of one resource, or return what the primary answered to all of them."""
        dry_run = request.flag("dryRun")
        schemas: dict[str, StoredSchema] = {}
        try:
            resource, operations = operations_request(body, dry_run=dry_run)
            for each in operations:
                done: list[Associated] = []
                answer = await self._service.write(
                    request, self._decide(request, resource, each), done.append
                )
                if not done:
                    return answer
                schemas.update(done[0].schemas or {})
        except RegistryError as error:
            results.append(_failed(error.code, error.message))
            return None
        found = [] if dry_run else self._registry.associations.of(resource)
        results.append({"result": Associated(resource, found, schemas).to_json()})
        return None

    def _decide(
        self, request: Request, resource: Resource, operation: Operation | Delete
    ) -> Callable[[], Decision[Associated]]:
        changes, dry_run = self._registry.associations, request.flag("dryRun")
        given = request.path.get("context") or request.text("context")
        context = normalize_context(given) if given else ""

        def decide() -> Decision[Associated]:
            if isinstance(operation, Delete):
                wanted = Filter(resource.type, (operation.association_type,))
                gone = changes.delete(
                    resource.id, wanted, cascade=operation.cascade, dry_run=dry_run
                )
                return Decision(gone.records, Associated(resource))
            return changes.put(
                resource,
                operation.wanted,
                context=context,
                created=operation.created,
                dry_run=dry_run,
                new_guid=lambda: str(uuid.uuid4()),
            )

        return decide


def _filter(request: Request) -> Filter:
    return Filter(
        request.text("resourceType") or TOPIC,
        tuple(request.query.get("associationType", ())),
        lifecycle_of(request.text("lifecycle")),
    )


async def _requests(request: Request) -> list[JsonObject]:
    found = list_field(await json_body(request), "requests")
    if not found:
        raise invalid_association("requests", "cannot be null or empty")
    if len(found) > _REQUESTS_MAX:
        raise invalid_association("requests", f"cannot have more than {_REQUESTS_MAX} elements")
    for each in found:
        if not isinstance(each, dict):
            raise InvalidRequest("field 'requests' must be an array of objects")
    return found


def _failed(code: int, message: str) -> dict[str, Any]:
    return {"error": {"error_code": code, "message": message}}
