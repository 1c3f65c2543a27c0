"""/config and /mode, of the registry, a context or a subject; /contexts."""

from __future__ import annotations

from typing import Any

from moldau.http.request import Answer, Request
from moldau.services.registry.api.parameters import json_body, paged, settings_name
from moldau.services.registry.machine.configs import ConfigChange
from moldau.services.registry.machine.errors import (
    compatibility_not_configured,
    invalid_mode,
    invalid_subject,
    mode_not_configured,
)
from moldau.services.registry.machine.json_fields import text_field
from moldau.services.registry.machine.subjects import is_valid_subject, normalize_context
from moldau.services.registry.service import RegistryService

__all__ = ["ConfigsApi"]


class ConfigsApi:
    def __init__(self, service: RegistryService) -> None:
        self._service = service
        self._registry = service.registry

    # Configs.

    def get_config(self, request: Request) -> dict[str, Any]:
        name = settings_name(request)
        scopes = self._registry.scopes
        in_scope = request.flag("defaultToGlobal")
        config = scopes.config(name) if in_scope else scopes.own_config(name)
        if config is None:
            raise compatibility_not_configured(name)
        return config.to_json()

    async def set_config(self, request: Request) -> Answer:
        change = ConfigChange.from_json(await json_body(request))
        name = _checked(settings_name(request))
        return await self._service.write(
            request,
            lambda: self._registry.settings.set_config(name, change),
            lambda config: config.to_json(level="compatibility"),
        )

    async def delete_config(self, request: Request) -> Answer:
        name = settings_name(request)
        return await self._service.write(
            request,
            lambda: self._registry.settings.delete_config(name),
            lambda config: config.to_json(),
        )

    # Modes.

    def get_mode(self, request: Request) -> dict[str, Any]:
        name = settings_name(request)
        scopes = self._registry.scopes
        mode = scopes.mode(name) if request.flag("defaultToGlobal") else scopes.own_mode(name)
        if mode is None:
            raise mode_not_configured(name)
        return {"mode": mode}

    async def set_mode(self, request: Request) -> Answer:
        body = await json_body(request)
        if "mode" not in body:
            raise invalid_mode()
        mode = text_field(body, "mode")
        name = _checked(settings_name(request))
        force = request.flag("force")
        return await self._service.write(
            request,
            lambda: self._registry.settings.set_mode(name, mode, force=force),
            lambda set_to: {} if set_to is None else {"mode": set_to},
        )

    async def delete_mode(self, request: Request) -> Answer:
        name = settings_name(request)
        recursive = request.flag("recursive")
        return await self._service.write(
            request,
            lambda: self._registry.settings.delete_mode(name, recursive=recursive),
            lambda mode: {} if mode is None else {"mode": mode},
        )

    # Contexts.

    def list_contexts(self, request: Request) -> list[str]:
        found = self._registry.queries.contexts(request.text("contextPrefix") or "")
        return paged(request, found, self._service.config.limits["context"])

    async def delete_context(self, request: Request) -> Answer:
        name = normalize_context(request.path["context"])
        answer = await self._service.write(
            request, lambda: self._registry.deletion.delete_context(name), lambda _: None
        )
        return Answer(status=204) if answer.status == 200 else answer


def _checked(name: str | None) -> str | None:
    if name is not None and not is_valid_subject(name, for_settings=True):
        raise invalid_subject(name)
    return name
