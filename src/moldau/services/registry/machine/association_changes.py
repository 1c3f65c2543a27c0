"""Creating, updating and deleting associations, with their schemas and subjects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from moldau.services.registry.machine.association_requests import (
    Lookup,
    Resource,
    Wanted,
    not_frozen_so,
)
from moldau.services.registry.machine.associations import (
    STRONG,
    WEAK,
    Association,
    AssociationId,
    Associations,
    AssociationSet,
    Filter,
)
from moldau.services.registry.machine.decision import Decision
from moldau.services.registry.machine.deletion import Deletion
from moldau.services.registry.machine.errors import (
    association_exists,
    association_frozen,
    invalid_association,
    no_active_version,
    references_exist,
    subject_associated,
    subject_strongly_associated,
)
from moldau.services.registry.machine.records import Record
from moldau.services.registry.machine.registration import Registration
from moldau.services.registry.machine.schemas import StoredSchema
from moldau.services.registry.machine.scopes import IMPORT, Scopes
from moldau.services.registry.machine.state import RegistryState
from moldau.services.registry.machine.subjects import normalize, qualify

__all__ = ["Associated", "AssociationChanges"]


@dataclass(frozen=True, slots=True)
class Associated:
    """What a resource is associated with, and the schemas by association type."""

    resource: Resource
    associations: Sequence[Association] = ()
    schemas: Mapping[str, StoredSchema] | None = None

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "resourceName": self.resource.name,
            "resourceNamespace": self.resource.namespace,
            "resourceId": self.resource.id,
            "resourceType": self.resource.type,
            "associations": [self._info(each) for each in self.associations],
        }
        return {key: value for key, value in found.items() if value}

    def _info(self, association: Association) -> dict[str, Any]:
        info: dict[str, Any] = {
            "subject": association.id.subject,
            "associationType": association.id.association_type,
            "lifecycle": association.lifecycle,
        }
        if association.frozen != association.is_strong:
            info["frozen"] = association.frozen
        stored = (self.schemas or {}).get(association.id.association_type)
        if stored is not None:
            info["schema"] = stored.to_json()
        return info


class AssociationChanges:
    def __init__(
        self, state: RegistryState, scopes: Scopes, registration: Registration, deletion: Deletion
    ) -> None:
        self._state = state
        self._scopes = scopes
        self._registration = registration
        self._deletion = deletion

    @property
    def _associations(self) -> Associations:
        return self._state.associations

    # Finding.

    def look_up(self, lookup: Lookup, *, schemas: bool) -> Associated:
        wanted = Filter(lookup.resource_type, lookup.association_types, lookup.lifecycle)
        if lookup.resource_id is not None:
            found = self._associations.of_resource_id(lookup.resource_id, wanted)
        else:
            name, namespace = lookup.resource_name or "", lookup.resource_namespace or ""
            found = self._associations.of_resource(name, namespace, wanted)
        first = found[0] if found else None
        resource = Resource(
            lookup.resource_name or ("" if first is None else first.id.resource_name),
            lookup.resource_namespace or ("" if first is None else first.id.resource_namespace),
            lookup.resource_id or (None if first is None else first.resource_id),
            lookup.resource_type,
        )
        latest = {each.id.association_type: self._state.latest(each.id.subject) for each in found}
        shown = {name: stored for name, stored in latest.items() if stored is not None}
        return Associated(resource, found, shown if schemas else None)

    def of(self, resource: Resource) -> list[Association]:
        return self._associations.of_resource_id(resource.id, Filter(resource.type))

    # Creating and updating.

    def put(
        self,
        resource: Resource,
        wanted: Sequence[Wanted],
        *,
        context: str,
        created: bool,
        dry_run: bool,
        new_guid: Callable[[], str],
    ) -> Decision[Associated]:
        """`created`: nothing that is there is changed."""
        asked = [self._in_context(each, context) for each in wanted]
        present = self._present(resource, asked, by_name=created and dry_run)
        asked = [
            self._settled(resource, each, present.get(each.association_type), created=created)
            for each in asked
        ]
        kept = {
            each.association_type
            for each in asked
            if self._is_unchanged(
                resource, each, present.get(each.association_type), created=created
            )
        }
        self._check_lifecycles(resource, asked)
        for each in asked:
            self._check_subject(each, asked, present.get(each.association_type))
        schemas, records = self._registered(asked)
        if dry_run:
            return Decision((), Associated(resource))
        changed = [
            _association(resource, each, present.get(each.association_type), new_guid)
            for each in asked
            if each.association_type not in kept
        ]
        return Decision(
            (*records, *(AssociationSet(each.id, each) for each in changed)),
            Associated(resource, changed, schemas),
        )

    def _in_context(self, wanted: Wanted, context: str) -> Wanted:
        if wanted.subject is None:
            return wanted
        name = str(qualify(context or None, wanted.subject))
        subject = normalize(self._scopes.resolve_alias(name))
        self._scopes.check_writable(subject)
        return replace(wanted, subject=subject)

    def _present(
        self, resource: Resource, wanted: Sequence[Wanted], *, by_name: bool
    ) -> dict[str, Association]:
        """What is there, by association type."""
        types = [each.association_type for each in wanted]
        found = self._associations.of_resource_id(resource.id, Filter(resource.type, types))
        if not found and by_name and resource.id is None:
            # A topic that is about to be created may have no id yet.
            found = self._of_name(resource, types)
        return {each.id.association_type: each for each in found}

    def _of_name(self, resource: Resource, types: Sequence[str] = ()) -> list[Association]:
        """Of the resource with this name that was changed last: names are used again."""
        found = self._associations.of_resource(
            resource.name, resource.namespace, Filter(resource.type, types)
        )
        last = max(
            found,
            key=lambda each: (each.updated_ms or 0, each.created_ms or 0, each.resource_id),
            default=None,
        )
        return [each for each in found if last is not None and each.resource_id == last.resource_id]

    def _settled(
        self, resource: Resource, wanted: Wanted, present: Association | None, *, created: bool
    ) -> Wanted:
        """With its subject, after checking what does not depend on other associations."""
        if present is None and not created:
            wanted = wanted.with_defaults(created=False)
        default = resource.default_subject(wanted.association_type)
        subject = wanted.subject
        if subject is None:
            if present is not None:
                subject = present.id.subject
            elif wanted.lifecycle == STRONG:
                subject = default
            else:
                raise invalid_association("subject", "must be provided for WEAK associations")
        lifecycle = _lifecycle(wanted, present)
        if lifecycle == WEAK:
            if wanted.schema is not None:
                raise invalid_association("lifecycle", "cannot be WEAK when schema is provided")
            if subject == default:
                raise invalid_association(
                    "subject", f"WEAK associations cannot use subject '{default}'"
                )
        frozen = bool(wanted.frozen) if present is None else present.frozen
        requested = frozen if wanted.frozen is None else wanted.frozen
        if requested != (lifecycle == STRONG):
            raise not_frozen_so(lifecycle, requested)
        if frozen and subject != default:
            raise invalid_association(
                "subject", f"frozen associations must use subject '{default}'"
            )
        return replace(wanted, subject=subject)

    def _is_unchanged(
        self, resource: Resource, wanted: Wanted, present: Association | None, *, created: bool
    ) -> bool:
        if present is None:
            self._check_new(wanted, created=created)
            return False
        subject = wanted.subject or ""
        if (
            present.id.subject == subject
            and wanted.lifecycle in (None, present.lifecycle)
            and wanted.frozen in (None, present.frozen)
        ):
            if created and wanted.schema is not None and self._stored(wanted) is None:
                raise association_exists(wanted.association_type, resource.name)
            return True
        if created:
            raise association_exists(wanted.association_type, resource.name)
        if wanted.lifecycle is None and wanted.schema is None:
            raise invalid_association(
                "lifecycle", "at least lifecycle or schema must be provided for update"
            )
        if present.id.subject != subject:
            raise invalid_association(
                "subject",
                f"subject of association cannot be changed from '{present.id.subject}' to "
                f"'{subject}'",
            )
        if wanted.frozen not in (None, present.frozen):
            raise invalid_association("frozen", "frozen attribute of association cannot be changed")
        if present.frozen:
            raise association_frozen(wanted.association_type, present.id.subject)
        return False

    def _check_new(self, wanted: Wanted, *, created: bool) -> None:
        subject = wanted.subject or ""
        if self._scopes.mode(subject) == IMPORT or wanted.lifecycle != STRONG:
            return
        if not created:
            raise invalid_association(
                "lifecycle",
                "cannot be STRONG when creating an association; STRONG associations must be "
                "created with the topic",
            )
        if wanted.schema is None:
            raise invalid_association(
                "schema", "schema must be provided when creating a frozen association"
            )
        latest = self._state.latest(subject)
        if latest is not None and (latest.version != 1 or self._stored(wanted) is None):
            raise invalid_association(
                "frozen",
                "cannot create a frozen association when schemas already exist in the subject",
            )

    def _stored(self, wanted: Wanted) -> StoredSchema | None:
        if wanted.schema is None:
            return None
        return self._registration.find(
            wanted.subject or "", wanted.schema.schema, normalize=wanted.normalize, deleted=False
        )

    def _check_lifecycles(self, resource: Resource, wanted: Sequence[Wanted]) -> None:
        """All associations of a resource have the same."""
        present = self._of_name(resource) if resource.id is None else self.of(resource)
        lifecycles = {each.id.association_type: each.lifecycle for each in present}
        for each in wanted:
            if each.lifecycle is not None:
                lifecycles[each.association_type] = each.lifecycle
        if len(set(lifecycles.values())) > 1:
            detail = ", ".join(f"{name}={each}" for name, each in lifecycles.items())
            raise invalid_association(
                "lifecycle",
                f"all associations for a resource must have the same lifecycle, but got {detail}",
            )

    def _check_subject(
        self, wanted: Wanted, asked: Sequence[Wanted], present: Association | None
    ) -> None:
        subject = wanted.subject or ""
        if wanted.schema is not None and self._scopes.mode(subject) == IMPORT:
            raise invalid_association(
                "schema", f"cannot be provided while subject '{subject}' is in IMPORT mode"
            )
        if wanted.schema is None and self._state.latest(subject) is None:
            raise no_active_version(subject)
        others = [
            each
            for each in self._associations.of_subject(subject)
            if present is None or each.id != present.id
        ]
        if _lifecycle(wanted, present) == WEAK:
            if any(each.is_strong for each in others):
                raise subject_strongly_associated(subject)
            return
        if others:
            raise subject_associated(subject)
        referred = any(
            self._state.references_to(subject, each.version)
            for each in self._state.versions(subject, deleted=True)
        )
        if referred or any(_refers_to(each, subject) for each in asked):
            raise references_exist(subject)

    def _registered(
        self, asked: Sequence[Wanted]
    ) -> tuple[dict[str, StoredSchema], tuple[Record, ...]]:
        schemas: dict[str, StoredSchema] = {}
        records: tuple[Record, ...] = ()
        for each in asked:
            if each.schema is None:
                continue
            decision = self._registration.register(
                each.subject or "",
                each.schema,
                normalize=each.normalize,
                pending=tuple(schemas.values()),
            )
            schemas[each.association_type] = decision.response
            records = (*records, *decision.records)
        return schemas, records

    # Deleting.

    def delete(
        self,
        resource_id: str | None,
        wanted: Filter,
        *,
        cascade: bool,
        dry_run: bool,
    ) -> Decision[None]:
        """`cascade`: subjects go with the topic that owns them."""
        doomed = self._associations.of_resource_id(resource_id, wanted)
        for each in doomed:
            self._scopes.check_writable(each.id.subject)
            if each.frozen and not cascade:
                raise association_frozen(each.id.association_type, each.id.subject)
        records: list[Record] = []
        for each in doomed:
            records.append(AssociationSet(each.id, None))
            subject = each.id.subject
            if cascade and each.is_strong and self._scopes.mode(subject) != IMPORT:
                records += self._deletion.purge_subject(subject)
        return Decision(() if dry_run else tuple(records), None)


def _lifecycle(wanted: Wanted, present: Association | None) -> str:
    found = wanted.lifecycle or (None if present is None else present.lifecycle)
    if found is None:
        raise invalid_association("lifecycle", "lifecycle must be set")
    return found


def _refers_to(wanted: Wanted, subject: str) -> bool:
    if wanted.schema is None:
        return False
    return any(
        each.subject is not None and str(qualify(wanted.subject, each.subject)) == subject
        for each in wanted.schema.schema.references
    )


def _association(
    resource: Resource, wanted: Wanted, present: Association | None, new_guid: Callable[[], str]
) -> Association:
    if present is not None:
        return replace(
            present,
            lifecycle=_lifecycle(wanted, present),
            frozen=present.frozen if wanted.frozen is None else wanted.frozen,
        )
    return Association(
        id=AssociationId(
            resource.name,
            resource.namespace,
            resource.type,
            wanted.association_type,
            wanted.subject or "",
        ),
        guid=new_guid(),
        resource_id=resource.id or "",
        lifecycle=_lifecycle(wanted, None),
        frozen=bool(wanted.frozen),
    )
