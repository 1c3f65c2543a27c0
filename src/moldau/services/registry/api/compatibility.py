"""/compatibility: would this schema be accepted."""

from __future__ import annotations

from typing import Any

from moldau.http.request import Request
from moldau.services.registry.api.parameters import json_body, subject_of, version_of
from moldau.services.registry.machine.errors import InvalidSchema, version_not_found
from moldau.services.registry.machine.registration import RegisterRequest
from moldau.services.registry.machine.schemas import LATEST, StoredSchema
from moldau.services.registry.service import RegistryService

__all__ = ["CompatibilityApi"]


class CompatibilityApi:
    def __init__(self, service: RegistryService) -> None:
        self._service = service
        self._registry = service.registry

    async def check_version(self, request: Request) -> dict[str, Any]:
        subject, version = subject_of(self._service, request), version_of(request)
        body = await json_body(request)
        stored = self._registry.state.version(subject, version)
        if stored is None and version != LATEST:
            raise version_not_found(version)
        return self._checked(request, subject, body, [] if stored is None else [stored])

    async def check_subject(self, request: Request) -> dict[str, Any]:
        subject = subject_of(self._service, request)
        body = await json_body(request)
        return self._checked(request, subject, body, self._registry.state.versions(subject))

    def _checked(
        self,
        request: Request,
        subject: str,
        body: dict[str, Any],
        against: list[StoredSchema],
    ) -> dict[str, Any]:
        schema = RegisterRequest.from_json(body).schema
        verbose = request.flag("verbose")
        try:
            reasons = self._registry.check_compatibility(
                subject,
                schema,
                against,
                normalize=self._registry.normalizes(subject, asked=request.flag("normalize")),
            )
        except InvalidSchema as error:
            if not verbose:
                raise
            reasons = [error.message]
        found: dict[str, Any] = {"is_compatible": not reasons}
        if verbose:
            found["messages"] = reasons
        return found
