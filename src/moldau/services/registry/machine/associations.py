"""Associations: which subject belongs to the keys or values of which topic.

A STRONG association is owned by its topic: it is frozen, its subject has the topic's name, and it
may be deleted with the topic. A WEAK one shares a subject that lives on its own. A subject with a
STRONG association has no other, and no schema may refer to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

__all__ = [
    "ALL",
    "ANY",
    "STRONG",
    "WEAK",
    "Association",
    "AssociationId",
    "AssociationSet",
    "Associations",
    "Filter",
]

STRONG: Final = "STRONG"
WEAK: Final = "WEAK"
#: Stands for every name of a resource, or for every namespace.
ANY: Final = "-"


class AssociationId(NamedTuple):
    """What an association is stored by, in the order of listings."""

    resource_name: str
    resource_namespace: str
    resource_type: str
    association_type: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    id: AssociationId
    guid: str
    resource_id: str
    lifecycle: str
    frozen: bool
    created_ms: int | None = None
    updated_ms: int | None = None

    @property
    def is_strong(self) -> bool:
        return self.lifecycle == STRONG

    def to_json(self) -> dict[str, Any]:
        """What is the default of the lifecycle is left out."""
        found: dict[str, Any] = {
            "subject": self.id.subject,
            "guid": self.guid,
            "resourceName": self.id.resource_name,
            "resourceNamespace": self.id.resource_namespace,
            "resourceId": self.resource_id,
            "resourceType": self.id.resource_type,
            "associationType": self.id.association_type,
            "lifecycle": self.lifecycle,
            "frozen": None if self.frozen == self.is_strong else self.frozen,
            "createTs": self.created_ms,
            "updateTs": self.updated_ms,
        }
        return {key: value for key, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class AssociationSet:
    """An association by its id; None removes it."""

    id: AssociationId
    association: Association | None


@dataclass(frozen=True, slots=True)
class Filter:
    """Which associations are wanted; what is empty allows all."""

    resource_type: str | None = None
    association_types: Collection[str] = ()
    lifecycle: str | None = None

    def allows(self, association: Association) -> bool:
        return (
            self.resource_type in (None, association.id.resource_type)
            and (
                not self.association_types
                or association.id.association_type in self.association_types
            )
            and self.lifecycle in (None, association.lifecycle)
        )


#: Every association.
ALL: Final = Filter()


class Associations:
    """All that there are. Only `replay` changes them."""

    def __init__(self) -> None:
        self._all: dict[AssociationId, Association] = {}
        self._by_subject: dict[str, set[AssociationId]] = {}
        self._by_resource_id: dict[str, set[AssociationId]] = {}

    def replay(self, record: AssociationSet) -> None:
        old = self._all.pop(record.id, None)
        if old is not None:
            _discard(self._by_subject, old.id.subject, old.id)
            _discard(self._by_resource_id, old.resource_id, old.id)
        new = record.association
        if new is None:
            return
        created_ms = new.updated_ms if old is None else old.created_ms
        self._all[new.id] = replace(new, created_ms=created_ms)
        self._by_subject.setdefault(new.id.subject, set()).add(new.id)
        self._by_resource_id.setdefault(new.resource_id, set()).add(new.id)

    def get(self, id: AssociationId) -> Association | None:
        return self._all.get(id)

    def of_subject(self, subject: str, wanted: Filter = ALL) -> list[Association]:
        return self._listed(self._by_subject.get(subject, ()), wanted.allows)

    def has_strong(self, subject: str) -> bool:
        return bool(self.of_subject(subject, Filter(lifecycle=STRONG)))

    def of_resource_id(self, resource_id: str | None, wanted: Filter) -> list[Association]:
        if resource_id is None:
            return []
        return self._listed(self._by_resource_id.get(resource_id, ()), wanted.allows)

    def of_resource(self, name: str, namespace: str, wanted: Filter) -> list[Association]:
        """By the name of a resource; either may be "-"."""
        return self._listed(
            self._all,
            lambda each: (
                name in (ANY, each.id.resource_name)
                and namespace in (ANY, each.id.resource_namespace)
                and wanted.allows(each)
            ),
        )

    def _listed(
        self, ids: Iterable[AssociationId], allows: Callable[[Association], bool]
    ) -> list[Association]:
        found = (self._all[id] for id in ids)
        return sorted((each for each in found if allows(each)), key=lambda each: each.id)


def _discard(table: dict[str, set[AssociationId]], key: str, id: AssociationId) -> None:
    ids = table[key]
    ids.discard(id)
    if not ids:
        del table[key]
