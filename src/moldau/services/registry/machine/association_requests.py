"""Requests about associations: what they ask for, and what is wrong with them on their face."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from moldau.services.registry.machine.associations import STRONG, WEAK
from moldau.services.registry.machine.errors import InvalidRequest, invalid_association
from moldau.services.registry.machine.json_fields import (
    JsonObject,
    boolean_field,
    list_field,
    object_field,
    text_field,
    text_list,
)
from moldau.services.registry.machine.registration import RegisterRequest

__all__ = [
    "TOPIC",
    "Delete",
    "Lookup",
    "Operation",
    "Resource",
    "Wanted",
    "create_or_update_request",
    "lifecycle_of",
    "lookup_request",
    "operations_request",
]

#: The only type of resource.
TOPIC: Final = "topic"
_ASSOCIATION_TYPES: Final = ("key", "value")
_NAME_LENGTH_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class Resource:
    """A topic: by name and namespace, and by an id that outlives neither."""

    name: str
    namespace: str
    id: str | None
    type: str = TOPIC

    def default_subject(self, association_type: str) -> str:
        return f":.{self.namespace}:{self.name}-{association_type}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """An association as a request wants it; what is None is left as it is, or has a default."""

    association_type: str
    subject: str | None = None
    lifecycle: str | None = None
    frozen: bool | None = None
    schema: RegisterRequest | None = None
    normalize: bool = False

    def with_defaults(self, *, created: bool) -> Wanted:
        """For an association that is not there yet. A schema belongs to a topic that is created
        with it; without one the subject is shared."""
        if self.schema is not None:
            if not created:
                raise invalid_association(
                    "schema",
                    "cannot be provided when adding an association to an existing topic; "
                    "an association with a schema must be created with the topic",
                )
            if self.lifecycle == WEAK:
                raise invalid_association("lifecycle", "cannot be WEAK when schema is provided")
            if self.frozen is False:
                raise invalid_association("frozen", "cannot be false when a schema is provided")
        lifecycle = STRONG if self.schema is not None else self.lifecycle or WEAK
        frozen = lifecycle == STRONG
        if self.frozen not in (None, frozen):
            raise not_frozen_so(lifecycle, self.frozen)
        return replace(self, lifecycle=lifecycle, frozen=frozen)


@dataclass(frozen=True, slots=True)
class Delete:
    association_type: str
    cascade: bool


@dataclass(frozen=True, slots=True)
class Operation:
    """Associations of a topic that are created, or created and updated, together."""

    created: bool
    wanted: tuple[Wanted, ...]


@dataclass(frozen=True, slots=True)
class Lookup:
    """Whose associations are wanted: of an id, or else of a name in a namespace."""

    resource_name: str | None
    resource_namespace: str | None
    resource_id: str | None
    resource_type: str
    association_types: tuple[str, ...]
    lifecycle: str | None


def not_frozen_so(lifecycle: str, frozen: bool | None) -> Exception:
    return invalid_association(
        "frozen", f"association with lifecycle of {lifecycle} cannot be frozen={_java(frozen)}"
    )


def create_or_update_request(
    body: JsonObject, *, created: bool, dry_run: bool, resource_id: str | None = None
) -> tuple[Resource, tuple[Wanted, ...]]:
    """`resource_id`: from the path."""
    resource = _resource(body, dry_run=dry_run, resource_id=resource_id)
    infos = _objects(body, "associations")
    if not infos:
        raise invalid_association("associations", "cannot be null or empty")
    found = tuple(_wanted(each, resource, created=created) for each in infos)
    _check_distinct(found)
    return resource, found


def operations_request(
    body: JsonObject, *, dry_run: bool
) -> tuple[Resource, list[Operation | Delete]]:
    """Operations in a row that create, or that update, are one."""
    resource = _resource(body, dry_run=dry_run)
    infos = _objects(body, "associations")
    if not infos:
        raise invalid_association("associations", "cannot be null or empty")
    found: list[Operation | Delete] = []
    seen: list[Wanted | Delete] = []
    for each in infos:
        kind = (text_field(each, "opType") or "").upper()
        if kind == "DELETE":
            gone = Delete(_association_type(each), boolean_field(each, "cascadeLifecycle") or False)
            seen.append(gone)
            found.append(gone)
            continue
        if kind not in ("CREATE", "UPSERT"):
            raise InvalidRequest(f"opType must be CREATE, UPSERT or DELETE, not {kind!r}")
        wanted = _wanted(each, resource, created=kind == "CREATE")
        seen.append(wanted)
        last = found[-1] if found else None
        if isinstance(last, Operation) and last.created == (kind == "CREATE"):
            found[-1] = Operation(last.created, (*last.wanted, wanted))
        else:
            found.append(Operation(kind == "CREATE", (wanted,)))
    _check_distinct(seen)
    return resource, found


def lookup_request(body: JsonObject) -> Lookup:
    resource_id = text_field(body, "resourceId") or None
    name = text_field(body, "resourceName") or None
    namespace = text_field(body, "resourceNamespace") or None
    if resource_id is None and name is None:
        raise invalid_association(
            "resourceId", "either resourceId or resourceName must be specified"
        )
    if name is not None and namespace is None:
        raise invalid_association(
            "resourceNamespace", "resourceNamespace is required when resourceName is specified"
        )
    return Lookup(
        name,
        namespace,
        resource_id,
        text_field(body, "resourceType") or TOPIC,
        text_list(body.get("associationTypes") or (), "associationTypes"),
        lifecycle_of(text_field(body, "lifecycle")),
    )


def lifecycle_of(text: str | None) -> str | None:
    if text is not None and text not in (STRONG, WEAK):
        raise InvalidRequest(f"lifecycle must be STRONG or WEAK, not {text!r}")
    return text


def _resource(body: JsonObject, *, dry_run: bool, resource_id: str | None = None) -> Resource:
    name = _name(body, "resourceName")
    namespace = _name(body, "resourceNamespace")
    given = text_field(body, "resourceId")
    if given is not None and resource_id not in (None, given):
        raise invalid_association(
            "resourceId",
            "Resource ID in the path parameter does not match the resource ID in the request body",
        )
    id = given if given is not None else resource_id
    if not dry_run and not id:
        raise invalid_association("resourceId", "cannot be null or empty")
    if (text_field(body, "resourceType") or TOPIC) != TOPIC:
        raise invalid_association("resourceType", f"must be '{TOPIC}'")
    return Resource(name, namespace, id)


def _name(body: JsonObject, field: str) -> str:
    name = text_field(body, field)
    if not name:
        raise invalid_association(field, "cannot be null or empty")
    if len(name) > _NAME_LENGTH_MAX:
        raise invalid_association(field, f"exceeds max length of {_NAME_LENGTH_MAX}")
    for each in name:
        if not (each.isalnum() or each in "_-"):
            raise invalid_association(field, f"illegal character '{each}'")
    return name


def _wanted(source: JsonObject, resource: Resource, *, created: bool) -> Wanted:
    schema = object_field(source, "schema")
    asked = None if schema is None else RegisterRequest.from_json(schema)
    if asked is not None and asked.schema.rule_set is not None:
        asked.schema.rule_set.check()
    found = Wanted(
        association_type=_association_type(source),
        subject=text_field(source, "subject"),
        lifecycle=lifecycle_of(text_field(source, "lifecycle")),
        frozen=boolean_field(source, "frozen"),
        schema=asked,
        normalize=boolean_field(source, "normalize") or False,
    )
    if found.subject is not None and not _is_subject(found.subject):
        raise invalid_association("subject", "must not be empty")
    if created:
        found = found.with_defaults(created=True)
    if found.lifecycle == WEAK:
        if found.schema is not None:
            raise invalid_association("lifecycle", "cannot be WEAK when schema is provided")
        if found.frozen:
            raise invalid_association(
                "frozen", "association with lifecycle of WEAK cannot be frozen"
            )
        if created and found.subject is None:
            raise invalid_association("subject", "must be provided for WEAK associations")
    return _with_subject(found, resource) if created else found


def _with_subject(wanted: Wanted, resource: Resource) -> Wanted:
    default = resource.default_subject(wanted.association_type)
    if wanted.subject is None:
        return replace(wanted, subject=default)
    if wanted.frozen and wanted.subject != default:
        raise invalid_association("subject", f"frozen associations must use subject '{default}'")
    if wanted.lifecycle == WEAK and wanted.subject == default:
        raise invalid_association("subject", f"WEAK associations cannot use subject '{default}'")
    return wanted


def _association_type(source: JsonObject) -> str:
    found = text_field(source, "associationType") or "value"
    if found not in _ASSOCIATION_TYPES:
        raise invalid_association("associationType", "must be either 'key' or 'value'")
    return found


def _is_subject(subject: str) -> bool:
    return bool(subject) and not any(
        ord(each) <= 0x1F or 0x7F <= ord(each) <= 0x9F for each in subject
    )


def _check_distinct(found: Sequence[Wanted | Delete]) -> None:
    seen: set[str] = set()
    for each in found:
        if each.association_type in seen:
            raise invalid_association(
                "associationType",
                f"may only appear once per request, but '{each.association_type}' appears more "
                "than once",
            )
        seen.add(each.association_type)


def _objects(body: JsonObject, field: str) -> list[JsonObject]:
    found = list_field(body, field)
    for each in found:
        if not isinstance(each, dict):
            raise InvalidRequest(f"field {field!r} must be an array of objects")
    return found


def _java(value: bool | None) -> str:
    return "null" if value is None else "true" if value else "false"
