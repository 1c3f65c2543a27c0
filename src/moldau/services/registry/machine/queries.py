"""What can be asked for, without changing anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import Any

from moldau.services.registry.machine.errors import (
    id_not_found,
    schema_not_found,
    subject_not_found,
    version_not_found,
)
from moldau.services.registry.machine.schemas import StoredSchema, guid_from_text
from moldau.services.registry.machine.state import RegistryState
from moldau.services.registry.machine.subjects import (
    DEFAULT_CONTEXT,
    QualifiedSubject,
    qualify,
)

__all__ = ["Deleted", "Queries"]


class Deleted(Enum):
    """Which versions are listed."""

    EXCLUDED = auto()
    INCLUDED = auto()
    ONLY = auto()
    AS_NEGATIVE = auto()

    def shows(self, deleted: bool) -> bool:
        if self is Deleted.EXCLUDED:
            return not deleted
        return deleted or self is not Deleted.ONLY


class Queries:
    def __init__(self, state: RegistryState) -> None:
        self._state = state

    def subjects(self, prefix: str, deleted: Deleted) -> list[str]:
        """Those with a prefix; one counts as deleted when all its versions are."""
        return sorted(
            name
            for name in self._state.subjects_with_prefix(prefix)
            if deleted.shows(not self._state.has_subject(name, deleted=False))
        )

    def versions(self, subject: str, deleted: Deleted) -> list[int]:
        with_deleted = deleted in (Deleted.INCLUDED, Deleted.ONLY)
        if not self._state.has_subject(subject, deleted=with_deleted):
            raise subject_not_found(subject)
        negative = deleted is Deleted.AS_NEGATIVE
        return [
            -each.version if negative and each.deleted else each.version
            for each in self._state.versions(subject, deleted=True)
            if deleted.shows(each.deleted)
        ]

    def version(self, subject: str, version: int, *, deleted: bool) -> StoredSchema:
        """A subject without a context is looked for in all of them."""
        found = self._state.version(subject, version, deleted=deleted)
        if found is not None:
            return found
        name = QualifiedSubject.parse(subject)
        if name.context == DEFAULT_CONTEXT:
            for context in self._state.contexts:
                other = str(QualifiedSubject(context, name.subject))
                found = self._state.version(other, version, deleted=deleted)
                if found is not None:
                    break
        if found is None:
            if not self._state.has_subject(subject, deleted=deleted):
                raise subject_not_found(subject)
            raise version_not_found(version)
        return found

    def by_id(self, id: int, subject: str | None) -> StoredSchema:
        found = self._by_id(id, subject)
        if found is None:
            raise id_not_found(id)
        return found

    def _by_id(self, id: int, subject: str | None) -> StoredSchema | None:
        found = self._state.by_id(id, subject)
        name = None if subject is None else QualifiedSubject.parse(subject)
        if found is not None or name is None or name.is_context or name.context != DEFAULT_CONTEXT:
            return found
        # A subject without a context is looked for in all of them, then the id alone.
        for context in self._state.contexts:
            found = self._state.by_id(id, str(QualifiedSubject(context, name.subject)))
            if found is not None:
                return found
        return self._state.by_id(id, name.context_name)

    def users_of_id(self, id: int, subject: str | None, *, deleted: bool) -> list[StoredSchema]:
        """The versions that have an id, one for each subject."""
        found = self._by_id(id, subject)
        if found is None:
            raise schema_not_found()
        context = QualifiedSubject.parse(found.subject).context
        users = self._state.users_of_id(context, id)
        stored = [self._state.version(*user, deleted=deleted) for user in sorted(users.items())]
        return [each for each in stored if each is not None]

    def by_guid(self, text: str) -> StoredSchema:
        for context, id in self.ids_of_guid(text):
            found = self._state.by_id(id, QualifiedSubject(context, "").context_name)
            if found is not None:
                return found
        raise id_not_found(text)

    def ids_of_guid(self, text: str) -> list[tuple[str, int]]:
        """Contexts and ids."""
        guid = guid_from_text(text)
        found: list[tuple[str, int]] = []
        for context in (DEFAULT_CONTEXT, *self._state.contexts):
            id = None if guid is None else self._state.id_of_guid(context, guid)
            if id is not None:
                found.append((context, id))
        if not found:
            raise id_not_found(text)
        return found

    def with_metadata(
        self, subject: str, wanted: Mapping[str, str], *, deleted: bool
    ) -> StoredSchema:
        """The newest version with these properties."""
        for each in reversed(self._state.versions(subject, deleted=deleted)):
            metadata = each.schema.metadata
            if metadata is not None and wanted.items() <= dict(metadata.properties).items():
                return each
        if not self._state.has_subject(subject, deleted=deleted):
            raise subject_not_found(subject)
        raise schema_not_found()

    def schemas(
        self,
        prefix: str,
        *,
        deleted: bool,
        latest_only: bool,
        aliases: bool,
        rule_type: str | None,
    ) -> list[dict[str, Any]]:
        """Bodies of all versions of the subjects with a prefix."""
        names = set(self._state.subjects_with_prefix(prefix))
        by_alias: dict[str, list[str]] = {}
        if aliases:
            by_alias = self._aliases(prefix)
            names.update(by_alias)
        found = []
        for name in sorted(names):
            versions = self._state.versions(name, deleted=deleted)
            for each in versions[-1:] if latest_only else versions:
                rules = each.schema.rule_set
                if rule_type and (rules is None or not rules.has_type(rule_type)):
                    continue
                body = each.to_json()
                if name in by_alias:
                    body["aliases"] = by_alias[name]
                found.append(body)
        return found

    def _aliases(self, prefix: str) -> dict[str, list[str]]:
        """Subjects with the names that stand for them."""
        found: dict[str, list[str]] = {}
        for name, config in self._state.configs.items():
            if name is not None and config.alias and name.startswith(_bare(prefix)):
                found.setdefault(str(qualify(name, config.alias)), []).append(name)
        return found

    def contexts(self, prefix: str) -> list[str]:
        return [
            each for each in (DEFAULT_CONTEXT, *self._state.contexts) if each.startswith(prefix)
        ]


def _bare(prefix: str) -> str:
    return "" if prefix == ":*:" else prefix


def page(items: Iterable[Any], *, offset: int, limit: int, limit_max: int) -> list[Any]:
    """A limit that is not positive, or too large, is the largest one."""
    found = list(items)
    size = limit if 0 < limit <= limit_max else limit_max
    start = max(offset, 0)
    return found[start : start + size]
