"""Routes that ask first whether their user may: permissions per subject.

A listing shows what its user may read. A schema by id may be read by whoever may read one of the
subjects that have it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from moldau.config.errors import ConfigError
from moldau.http.machine.errors import HttpError
from moldau.http.machine.routes import Route
from moldau.http.request import Request
from moldau.services.registry.api.parameters import (
    json_body,
    key_subject,
    query_subject,
    subject_of,
)
from moldau.services.registry.machine.permissions import (
    EVERYTHING,
    InvalidPermissions,
    Permissions,
)
from moldau.services.registry.service import RegistryService

__all__ = ["PermissionsFile", "guarded"]

logger = logging.getLogger(__name__)

_KEY: Final = "subject.permissions.file"
_CONTEXT: Final = "/contexts/{context}"
_KEYS: Final = "/dek-registry/v1"
_RESOURCES: Final = "/associations/resources"
_OPERATIONS: Final = {"GET": "READ", "POST": "WRITE", "PUT": "CONFIG", "DELETE": "DELETE"}


class PermissionsFile:
    """Read again when it changes; a file that is wrong then leaves what was read before."""

    def __init__(self, path: str) -> None:
        """Raises ConfigError."""
        self._path = Path(path)
        self._stamp: tuple[int, int] | None = None
        self._permissions = Permissions([])
        try:
            self._refresh()
        except (OSError, UnicodeDecodeError, InvalidPermissions) as error:
            raise ConfigError(f"{_KEY}: cannot read {path}: {error}", key=_KEY) from None

    @property
    def current(self) -> Permissions:
        try:
            self._refresh()
        except (OSError, UnicodeDecodeError, InvalidPermissions) as error:
            logger.error("%s: the permissions stay as they were: %s", self._path, error)
        return self._permissions

    def _refresh(self) -> None:
        status = self._path.stat()
        stamp = (status.st_mtime_ns, status.st_size)
        if stamp != self._stamp:
            # Also if it is wrong: it is not read again with every request.
            self._stamp = stamp
            self._permissions = Permissions.parse(self._path.read_text())


def guarded(
    routes: Iterable[Route], service: RegistryService, file: PermissionsFile
) -> tuple[Route, ...]:
    guard = _Guard(service, file)
    return tuple(replace(each, handler=guard.around(each)) for each in routes)


class _Guard:
    def __init__(self, service: RegistryService, file: PermissionsFile) -> None:
        self._service = service
        self._file = file

    def around(self, route: Route) -> Callable[[Request], Any]:
        handler, path = route.handler, route.path.removeprefix(_CONTEXT)
        if path in ("/subjects", "/schemas") or (
            path.startswith(_RESOURCES) and route.method == "GET"
        ):
            return lambda request: self._readable(request, handler(request))
        if path.startswith(("/schemas/ids/", "/schemas/guids/")):
            return _first(self._check_schema, handler)
        if path == f"{_KEYS}/keks/{{name}}/deks" and route.method == "POST":
            return self._with_subject_in_body(handler)
        operation = _operation(route.method, path)
        if operation is None:
            return handler
        if "{subject}" not in path:
            return _first(lambda request: self._check(request, operation, EVERYTHING), handler)
        is_key = path.startswith(_KEYS)

        def checked(request: Request) -> Any:
            service = self._service
            subject = (
                key_subject(service, request, request.path["subject"])
                if is_key
                else subject_of(service, request)
            )
            self._check(request, operation, subject)
            return handler(request)

        return checked

    def _with_subject_in_body(self, handler: Callable[[Request], Any]) -> Callable[[Request], Any]:
        async def checked(request: Request) -> Any:
            given = (await json_body(request)).get("subject")
            subject = key_subject(self._service, request, given if isinstance(given, str) else "")
            self._check(request, "WRITE", subject or EVERYTHING)
            return await handler(request)

        return checked

    def _check(self, request: Request, operation: str, subject: str) -> None:
        if not self._may(request, operation, subject):
            what = "the registry" if subject == EVERYTHING else f"Subject: {subject}"
            raise HttpError(
                403, f"User is denied operation {operation} on {what}", error_code=40301
            )

    def _may(self, request: Request, operation: str, subject: str) -> bool:
        user = request.principal
        return self._file.current.allows(user.name, user.roles, operation, subject)

    def _readable(self, request: Request, found: list[Any]) -> list[Any]:
        """Of names, or of objects that have one."""
        return [
            each
            for each in found
            if self._may(request, "READ", each if isinstance(each, str) else each["subject"])
        ]

    def _check_schema(self, request: Request) -> None:
        queries = self._service.registry.queries
        if "id" in request.path:
            users = queries.users_of_id(
                request.path["id"], query_subject(self._service, request), deleted=True
            )
        else:
            users = [queries.by_guid(request.path["guid"])]
        subjects = [each.subject for each in users]
        if not any(self._may(request, "READ", each) for each in subjects):
            raise HttpError(
                403, "User is denied operation READ on all subjects of the schema", error_code=40301
            )


def _first(
    check: Callable[[Request], None], handler: Callable[[Request], Any]
) -> Callable[[Request], Any]:
    def checked(request: Request) -> Any:
        check(request)
        return handler(request)

    return checked


def _operation(method: str, path: str) -> str | None:
    """None: any user that may use the registry."""
    operation = _OPERATIONS[method]
    if path.startswith(_KEYS):
        return "WRITE" if operation == "CONFIG" else operation
    if path == "/associations:batchGet":
        return "READ"
    if path.startswith("/associations"):
        return "WRITE" if operation == "CONFIG" else operation
    if path.startswith(("/config", "/mode")) or path == "":
        if method != "GET":
            return "CONFIG"
        return "READ" if "{subject}" in path else None
    if path.startswith("/compatibility") or (method, path) == ("POST", "/subjects/{subject}"):
        return "READ"
    return operation if "{subject}" in path else None
