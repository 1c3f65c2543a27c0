"""Deleting subjects, versions and contexts: softly first, then for good.

What another schema refers to cannot be deleted. Ids of what is deleted for good stay used.
"""

from __future__ import annotations

from moldau.services.registry.machine.decision import Decision
from moldau.services.registry.machine.errors import (
    context_not_empty,
    reference_exists,
    subject_associated,
    subject_not_found,
    subject_not_soft_deleted,
    subject_soft_deleted,
    version_not_found,
    version_not_soft_deleted,
    version_soft_deleted,
)
from moldau.services.registry.machine.records import (
    ConfigSet,
    ContextSet,
    DeleteSubject,
    ModeSet,
    Noop,
    Record,
    SchemaSet,
)
from moldau.services.registry.machine.schemas import LATEST
from moldau.services.registry.machine.scopes import Scopes
from moldau.services.registry.machine.state import RegistryState
from moldau.services.registry.machine.subjects import QualifiedSubject

__all__ = ["Deletion"]


class Deletion:
    def __init__(self, state: RegistryState, scopes: Scopes) -> None:
        self._state = state
        self._scopes = scopes

    def delete_version(self, subject: str, version: int, *, permanent: bool) -> Decision[int]:
        stored = self._state.version(subject, version, deleted=True)
        if stored is None:
            if not self._state.has_subject(subject, deleted=True):
                raise subject_not_found(subject)
            raise version_not_found(version)
        if stored.deleted and not permanent:
            raise version_soft_deleted(subject, version)
        self._scopes.check_writable(subject)
        version = stored.version
        if self._referrers(subject, version):
            raise reference_exists(subject, version)
        if not permanent:
            others = (each for each in self._state.versions(subject) if each.version != version)
            if next(others, None) is None and self._state.associations.of_subject(subject):
                raise subject_associated(subject)
            return Decision((SchemaSet(subject, version, stored.as_deleted()),), version)
        if not stored.deleted:
            raise version_not_soft_deleted(subject, version)
        records: list[Record] = [SchemaSet(subject, version, None)]
        if len(self._state.versions(subject, deleted=True)) == 1:
            records += self._settings_removed(subject)
        return Decision((*records, self._ids_kept()), version)

    def delete_subject(self, subject: str, *, permanent: bool) -> Decision[list[int]]:
        """The versions that are deleted."""
        if not self._state.has_subject(subject, deleted=True):
            raise subject_not_found(subject)
        if not permanent and not self._state.has_subject(subject, deleted=False):
            raise subject_soft_deleted(subject)
        self._scopes.check_writable(subject)
        if self._state.associations.of_subject(subject):
            raise subject_associated(subject)
        doomed = self._state.versions(subject, deleted=permanent)
        for each in doomed:
            if self._referrers(subject, each.version) - {subject}:
                raise reference_exists(subject, each.version)
            if permanent and not each.deleted:
                raise subject_not_soft_deleted(subject)
        versions = [each.version for each in doomed]
        if not permanent:
            last = versions[-1] if versions else 0
            return Decision((DeleteSubject(subject, last),), versions)
        # The newest first: an older one may be referred to by a newer one.
        records: list[Record] = [SchemaSet(subject, each, None) for each in reversed(versions)]
        records += self._settings_removed(subject)
        return Decision((*records, self._ids_kept()), versions)

    def purge_subject(self, subject: str) -> list[Record]:
        """All versions, whether they are deleted softly or not."""
        doomed = self._state.versions(subject, deleted=True)
        for each in doomed:
            if self._referrers(subject, each.version) - {subject}:
                raise reference_exists(subject, each.version)
        if not doomed:
            return []
        removed = [SchemaSet(subject, each.version, None) for each in reversed(doomed)]
        return [*removed, *self._settings_removed(subject), self._ids_kept()]

    def delete_context(self, name: str) -> Decision[None]:
        if self._state.has_subject(name, deleted=True):
            raise context_not_empty(name)
        return Decision((ContextSet(QualifiedSubject.parse(name).context, exists=False),), None)

    def _settings_removed(self, subject: str) -> list[Record]:
        records: list[Record] = []
        if self._state.mode(subject) is not None:
            records.append(ModeSet(subject, None))
        if self._state.config(subject) is not None:
            records.append(ConfigSet(subject, None))
        return records

    def _ids_kept(self) -> Noop:
        return Noop(dict(self._state.id_maxima))

    def _referrers(self, subject: str, version: int) -> set[str]:
        """Subjects with a version that refers to this one and is not deleted."""
        return {
            user
            for context, id in self._state.references_to(subject, version)
            for user, used in self._state.users_of_id(context, id).items()
            if self._state.version(user, used) is not None
        }

    def referring_ids(self, subject: str, version: int, *, deleted: bool) -> list[int]:
        """Ids of the schemas that refer to a version, by context and number."""
        if version == LATEST:
            latest = self._state.latest(subject)
            version = 0 if latest is None else latest.version
        return [
            id
            for context, id in sorted(self._state.references_to(subject, version))
            if any(
                self._state.version(user, used, deleted=deleted) is not None
                for user, used in self._state.users_of_id(context, id).items()
            )
        ]
