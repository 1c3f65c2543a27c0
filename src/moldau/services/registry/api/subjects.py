"""/subjects: listing, lookup, versions, registration and deletion."""

from __future__ import annotations

import re
from typing import Any

from moldau.http.request import Answer, Request
from moldau.services.registry.api.parameters import (
    deleted_of,
    json_body,
    name_of,
    paged,
    prefix_of,
    register_request,
    subject_of,
    version_of,
)
from moldau.services.registry.api.rendered import RenderedSchemas
from moldau.services.registry.machine.errors import (
    invalid_subject,
    schema_not_found,
    subject_not_found,
)
from moldau.services.registry.machine.registration import RegisterRequest, TagRequest
from moldau.services.registry.machine.schemas import StoredSchema
from moldau.services.registry.machine.subjects import (
    ALL_CONTEXTS,
    QualifiedSubject,
    is_valid_subject,
    normalize,
    qualify,
)
from moldau.services.registry.machine.tags import found_tags
from moldau.services.registry.service import RegistryService

__all__ = ["SubjectsApi"]


class SubjectsApi:
    def __init__(self, service: RegistryService) -> None:
        self._service = service
        self._registry = service.registry
        self._plain = RenderedSchemas(StoredSchema.to_json, size_max=service.config.cache_size)

    def list_subjects(self, request: Request) -> list[str]:
        names = self._registry.queries.subjects(
            prefix_of(request, ALL_CONTEXTS), deleted_of(request)
        )
        return paged(request, names, self._service.config.limits["subject"])

    def list_versions(self, request: Request) -> list[int]:
        subject = subject_of(self._service, request)
        versions = self._registry.queries.versions(subject, deleted_of(request))
        return paged(request, versions, self._service.config.limits["subject.version"])

    def get_version(self, request: Request) -> dict[str, Any] | Answer:
        stored = self._version(request, deleted=request.flag("deleted"))
        if not request.query:
            return Answer(body=self._plain.of(stored))
        body = self.rendered(stored, request.text("format"))
        if request.text("referenceFormat") == "qualified":
            qualify_references(body, stored.subject)
        add_tags(request, body, stored)
        return body

    def get_text(self, request: Request) -> Answer:
        stored = self._version(request, deleted=request.flag("deleted"))
        return raw_text(self._registry.formatted(stored, request.text("format")))

    def get_referring(self, request: Request) -> list[int]:
        stored = self._version(request, deleted=True)
        ids = self._registry.deletion.referring_ids(
            stored.subject, stored.version, deleted=request.flag("deleted")
        )
        return paged(request, ids, self._service.config.limits["schema"])

    def _version(self, request: Request, *, deleted: bool) -> StoredSchema:
        subject = subject_of(self._service, request)
        return self._registry.queries.version(subject, version_of(request), deleted=deleted)

    def rendered(self, stored: StoredSchema, format_name: str | None) -> dict[str, Any]:
        body = stored.to_json()
        if format_name:
            body["schema"] = self._registry.formatted(stored, format_name)
        return body

    def get_with_metadata(self, request: Request) -> dict[str, Any]:
        wanted = dict(
            zip(request.query.get("key", []), request.query.get("value", []), strict=False)
        )
        stored = self._registry.queries.with_metadata(
            subject_of(self._service, request), wanted, deleted=request.flag("deleted")
        )
        return self.rendered(stored, request.text("format"))

    async def look_up(self, request: Request) -> dict[str, Any] | Answer:
        found = RegisterRequest.from_json(await json_body(request))
        subject = subject_of(self._service, request)
        deleted = request.flag("deleted")
        stored = self._registry.registration.find_in_contexts(
            subject,
            found.schema,
            normalize=self._registry.normalizes(subject, asked=request.flag("normalize")),
            deleted=deleted,
        )
        if stored is None:
            if not self._registry.state.has_subject(subject, deleted=deleted):
                raise subject_not_found(subject)
            raise schema_not_found()
        if not request.query:
            return Answer(body=self._plain.of(stored))
        return self.rendered(stored, request.text("format"))

    async def register(self, request: Request) -> Answer:
        asked = await register_request(request)
        given = self._registry.scopes.resolve_alias(name_of(request))
        name = QualifiedSubject.parse(given)
        empty = name.is_context or name.subject == "*"
        if not is_valid_subject(given, for_settings=False) or (
            empty and self._service.config.rejects_empty_subject
        ):
            raise invalid_subject(given)
        subject = normalize(given)
        normalizes = self._registry.normalizes(subject, asked=request.flag("normalize"))
        force = request.flag("force")
        registration = self._registry.registration

        def render(stored: StoredSchema) -> dict[str, Any]:
            form = request.text("format") or _form_of(asked.schema.text, stored)
            return _registered(self.rendered(stored, form))

        stored = registration.registered(subject, asked, normalize=normalizes)
        if stored is not None:
            return Answer(body=render(stored))
        return await self._service.write(
            request,
            lambda: registration.register(subject, asked, normalize=normalizes, force=force),
            render,
        )

    async def tag(self, request: Request) -> Answer:
        asked = TagRequest.from_json(await json_body(request))
        stored = self._version(request, deleted=False)
        return await self._service.write(
            request,
            lambda: self._registry.registration.tag(stored, asked),
            lambda tagged: _registered(tagged.to_json()),
        )

    async def delete_version(self, request: Request) -> Answer:
        subject, version = subject_of(self._service, request), version_of(request)
        permanent = request.flag("permanent")
        return await self._service.write(
            request,
            lambda: self._registry.deletion.delete_version(subject, version, permanent=permanent),
            lambda deleted: deleted,
        )

    async def delete_subject(self, request: Request) -> Answer:
        subject = subject_of(self._service, request)
        permanent = request.flag("permanent")
        return await self._service.write(
            request,
            lambda: self._registry.deletion.delete_subject(subject, permanent=permanent),
            lambda deleted: deleted,
        )


def _registered(body: dict[str, Any]) -> dict[str, Any]:
    """What a registration answers with."""
    body = {"id": body.pop("id"), **body}
    for name in ("subject", "deleted", "ts"):
        body.pop(name, None)
    return body


def add_tags(request: Request, body: dict[str, Any], stored: StoredSchema) -> None:
    """Put in what the parameter `findTags` asks for."""
    wanted = request.query.get("findTags")
    if wanted:
        body["schemaTags"] = [each.to_json() for each in found_tags(stored.schema, wanted)]


def raw_text(text: str) -> Answer:
    """A schema alone, as it is."""
    return Answer(body=text.encode("utf-8", "surrogatepass"))


def qualify_references(body: dict[str, Any], subject: str) -> None:
    """Subjects of references as they are written from outside the context."""
    for each in body.get("references", ()):
        each["subject"] = str(qualify(subject, each["subject"]))


def _form_of(text: str, stored: StoredSchema) -> str | None:
    """Clients in Python register descriptors in base64, and remember what they get in return: so
    they get the same form."""
    is_base64 = stored.schema.type == "PROTOBUF" and re.fullmatch(r"[A-Za-z0-9+/=]+", text)
    return "serialized" if is_base64 else None
