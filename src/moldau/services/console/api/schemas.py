"""Schemas of the cluster's registry: subjects, versions, differences, checks, changes."""

from __future__ import annotations

import asyncio
import difflib
import json
from typing import Any, Final
from urllib.parse import quote

from moldau.http.machine.errors import HttpError
from moldau.http.machine.routes import Route
from moldau.http.request import Request
from moldau.services.console.api.bodies import body_of, paging_of
from moldau.services.console.api.routing import CLUSTER, PAGING, api, fields, number
from moldau.services.console.backend import Backend
from moldau.services.console.machine.paging import page_of
from moldau.services.console.remote import Remote, managing

__all__ = ["SchemaHandlers"]

_KEY: Final = "schema.registry.url"
_AT_ONCE: Final = 8
_SUBJECT: Final = f"{CLUSTER}/schemas/{{subject}}"


class SchemaHandlers:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        tag = "schemas"
        schema = fields("schema", schema="string", type="string")
        return [
            api("GET", f"{CLUSTER}/schemas", self.list, "Subjects with their latest versions",
                tag=tag, parameters=PAGING),
            api("GET", _SUBJECT, self.show, "All versions of a subject", tag=tag),
            api("GET", f"{_SUBJECT}/diff", self.diff, "What two versions differ in", tag=tag,
                parameters=(number("from", "a version"), number("to", "another one"))),
            api("POST", f"{_SUBJECT}/check", self.check, "Whether a schema may be registered",
                tag=tag, body=schema),
            api("POST", f"{_SUBJECT}/versions", self.register, "Register a schema", tag=tag,
                body=schema),
            api("PUT", f"{_SUBJECT}/compatibility", self.set_level, "Set the compatibility level",
                tag=tag, body=fields("level", level="string")),
            api("DELETE", f"{_SUBJECT}/compatibility", self.reset_level,
                "Back to the registry's compatibility level", tag=tag),
            api("PUT", f"{CLUSTER}/schema-compatibility", self.set_default,
                "Set the level of subjects that have none", tag=tag,
                body=fields("level", level="string")),
            api("DELETE", _SUBJECT, self.delete, "Delete a subject with all versions", tag=tag),
            api("DELETE", f"{_SUBJECT}/versions/{{version}}", self.delete_version,
                "Delete one version", tag=tag),
        ]  # fmt: skip

    async def list(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            registry = Remote(call, _KEY)
            subjects: list[str] = await registry.ask("GET", "/subjects")
            names, counts = page_of(
                subjects, paging_of(request), name=lambda name: name, columns={}
            )
            limit = asyncio.Semaphore(_AT_ONCE)
            defaults = await registry.ask("GET", "/config")

            async def complete(name: str) -> dict[str, Any]:
                async with limit:
                    return {"name": name} | await _latest(registry, name)

            rows = await asyncio.gather(*map(complete, names))
            return {
                "data": list(rows),
                **counts,
                "default_compatibility": defaults["compatibilityLevel"],
            }

    async def show(self, request: Request) -> dict[str, Any]:
        subject = request.path["subject"]
        with self._backend.call(request) as call:
            registry = Remote(call, _KEY)
            numbers = await registry.ask("GET", f"/subjects/{_quoted(subject)}/versions")
            limit = asyncio.Semaphore(_AT_ONCE)

            async def version(each: int) -> dict[str, Any]:
                async with limit:
                    found = await registry.ask(
                        "GET", f"/subjects/{_quoted(subject)}/versions/{each}"
                    )
                return {
                    "version": each,
                    "id": found["id"],
                    "type": found.get("schemaType", "AVRO"),
                    "schema": _pretty(found["schema"]),
                    "references": found.get("references", []),
                }

            versions = list(await asyncio.gather(*map(version, numbers)))
            return {
                "name": subject,
                "compatibility": await _level(registry, subject),
                "versions": versions,
            }

    async def diff(self, request: Request) -> dict[str, Any]:
        """Lines with a sign: + added, - removed, a blank for both."""
        subject = request.path["subject"]
        with self._backend.call(request) as call:
            registry = Remote(call, _KEY)
            texts = []
            for name in ("from", "to"):
                found = await registry.ask(
                    "GET", f"/subjects/{_quoted(subject)}/versions/{request.number(name) or 1}"
                )
                texts.append(_pretty(found["schema"]).splitlines())
            lines = [
                {"sign": line[0], "text": line[2:]}
                for line in difflib.ndiff(texts[0], texts[1])
                if not line.startswith("?")
            ]
            return {"data": lines}

    async def check(self, request: Request) -> dict[str, Any]:
        subject = request.path["subject"]
        body = await body_of(request)
        schema = {"schema": body.text("schema"), "schemaType": body.text("type", "AVRO")}
        with self._backend.call(request) as call:
            registry = Remote(call, _KEY)
            path = f"/compatibility/subjects/{_quoted(subject)}/versions?verbose=true"
            try:
                found = await registry.ask("POST", path, schema)
            except HttpError as error:
                if error.status not in (404, 422):
                    raise
                if error.status == 404:
                    return {"compatible": True, "messages": []}
                return {"compatible": False, "messages": [error.message]}
            return {"compatible": found["is_compatible"], "messages": found.get("messages") or []}

    async def register(self, request: Request) -> dict[str, Any]:
        subject = request.path["subject"]
        body = await body_of(request)
        schema = {"schema": body.text("schema"), "schemaType": body.text("type", "AVRO")}
        async with managing(self._backend, request, "register-schema", subject, schema) as call:
            found = await Remote(call, _KEY).ask(
                "POST", f"/subjects/{_quoted(subject)}/versions", schema
            )
            return {"id": found["id"]}

    async def set_level(self, request: Request) -> dict[str, Any]:
        subject = request.path["subject"]
        level = (await body_of(request)).text("level")
        async with managing(self._backend, request, "set-compatibility", subject, level) as call:
            await Remote(call, _KEY).ask(
                "PUT", f"/config/{_quoted(subject)}", {"compatibility": level}
            )
            return {}

    async def reset_level(self, request: Request) -> dict[str, Any]:
        subject = request.path["subject"]
        async with managing(self._backend, request, "reset-compatibility", subject) as call:
            await Remote(call, _KEY).ask("DELETE", f"/config/{_quoted(subject)}")
            return {}

    async def set_default(self, request: Request) -> dict[str, Any]:
        level = (await body_of(request)).text("level")
        async with managing(self._backend, request, "set-compatibility", "*", level) as call:
            await Remote(call, _KEY).ask("PUT", "/config", {"compatibility": level})
            return {}

    async def delete(self, request: Request) -> dict[str, Any]:
        subject = request.path["subject"]
        async with managing(self._backend, request, "delete-subject", subject) as call:
            versions = await Remote(call, _KEY).ask("DELETE", f"/subjects/{_quoted(subject)}")
            return {"versions": versions}

    async def delete_version(self, request: Request) -> dict[str, Any]:
        subject, version = request.path["subject"], request.path["version"]
        async with managing(
            self._backend, request, "delete-schema", f"{subject} {version}"
        ) as call:
            await Remote(call, _KEY).ask(
                "DELETE", f"/subjects/{_quoted(subject)}/versions/{_quoted(version)}"
            )
            return {}


async def _latest(registry: Remote, subject: str) -> dict[str, Any]:
    try:
        found = await registry.ask("GET", f"/subjects/{_quoted(subject)}/versions/latest")
    except HttpError as error:
        return {"version": None, "type": None, "id": None, "error": error.message}
    return {
        "version": found["version"],
        "type": found.get("schemaType", "AVRO"),
        "id": found["id"],
        "compatibility": await _level(registry, subject),
    }


async def _level(registry: Remote, subject: str) -> str | None:
    """The subject's own level; None if the registry's holds."""
    try:
        found = await registry.ask("GET", f"/config/{_quoted(subject)}")
    except HttpError:
        return None
    return str(found.get("compatibilityLevel"))


def _pretty(schema: str) -> str:
    """JSON with one field in a line; Protobuf as it is."""
    try:
        return json.dumps(json.loads(schema), indent=2)
    except ValueError:
        return schema


def _quoted(text: str) -> str:
    return quote(text, safe="")
