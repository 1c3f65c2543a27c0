"""Everything the registry remembers. `replay` is the only mutator.

Invariants:
- an id belongs to one schema of its context, for ever: a record that says otherwise is ignored, and
  the next id is higher than every id that the context has seen;
- `replay` takes whatever Confluent's registry has written, in any order that compaction leaves.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from typing import TypeVar

from moldau.services.registry.machine.associations import Associations, AssociationSet
from moldau.services.registry.machine.configs import Config
from moldau.services.registry.machine.records import (
    ClearSubject,
    ConfigSet,
    ContextSet,
    DeleteSubject,
    ModeSet,
    Noop,
    Record,
    SchemaSet,
)
from moldau.services.registry.machine.schemas import LATEST, Schema, StoredSchema
from moldau.services.registry.machine.subjects import (
    ALL_CONTEXTS,
    DEFAULT_CONTEXT,
    QualifiedSubject,
    context_of,
    prefix_range,
    qualify,
)

__all__ = ["RegistryState"]

V = TypeVar("V")
SubjectVersion = tuple[str, int]
ContextId = tuple[str, int]


class RegistryState:
    def __init__(self) -> None:
        self._versions: dict[str, dict[int, StoredSchema]] = {}
        self._configs: dict[str | None, Config] = {}
        self._modes: dict[str | None, str] = {}
        self._contexts: set[str] = set()
        #: By context: who has an id. The last version of a subject that got it counts.
        self._by_id: dict[str, dict[int, dict[str, int]]] = {}
        #: By context and guid: the id of a schema, by its type.
        self._by_guid: dict[str, dict[str, dict[str, int]]] = {}
        self._id_maxima: dict[str, int] = {}
        self.associations = Associations()
        self._referenced_by: dict[SubjectVersion, set[ContextId]] = {}
        self._sorted_subjects: list[QualifiedSubject] | None = None

    # Schemas.

    def versions(self, subject: str, *, deleted: bool = False) -> list[StoredSchema]:
        """Of a subject, oldest first."""
        found = self._versions.get(subject, {})
        return [found[each] for each in sorted(found) if deleted or not found[each].deleted]

    def version(self, subject: str, version: int, *, deleted: bool = False) -> StoredSchema | None:
        if version == LATEST:
            return self.latest(subject)
        found = self._versions.get(subject, {}).get(version)
        return found if found is not None and (deleted or not found.deleted) else None

    @property
    def version_count(self) -> int:
        """Of all subjects, also those that are deleted softly."""
        return sum(map(len, self._versions.values()))

    def latest(self, subject: str) -> StoredSchema | None:
        found = self._versions.get(subject)
        if not found:
            return None
        alive = [version for version, each in found.items() if not each.deleted]
        return found[max(alive)] if alive else None

    def has_subject(self, subject: str | None, *, deleted: bool) -> bool:
        """Whether a subject has versions, or a context has subjects, or there are any (None)."""
        return next(self.matching(subject, deleted=deleted), None) is not None

    def matching(self, subject: str | None, *, deleted: bool) -> Iterator[str]:
        """The subject itself, or the subjects of the context, or all of them."""
        if subject is not None and subject in self._versions:
            names: list[str] = [subject]
        elif subject is not None and not QualifiedSubject.parse(subject).is_context:
            return
        else:
            scope = None if subject is None else QualifiedSubject.parse(subject)
            names = [
                name
                for name in self._versions
                if scope is None or scope.contains(QualifiedSubject.parse(name))
            ]
        for name in names:
            if deleted or any(not each.deleted for each in self._versions[name].values()):
                yield name

    def subjects_with_prefix(self, prefix: str) -> list[str]:
        """In the order of contexts, then subjects. Those that are deleted softly are included."""
        if prefix.startswith(ALL_CONTEXTS) and prefix != ALL_CONTEXTS:
            bare = prefix[len(ALL_CONTEXTS) :]
            contexts = [DEFAULT_CONTEXT, *sorted(self._contexts)]
            prefixes = [str(QualifiedSubject(context, bare)) for context in contexts]
            return [each for one in prefixes for each in self.subjects_with_prefix(one)]
        if self._sorted_subjects is None:
            self._sorted_subjects = sorted(map(QualifiedSubject.parse, self._versions))
        names = self._sorted_subjects
        first, last = prefix_range(prefix)
        return [str(each) for each in names[bisect_left(names, first) : bisect_right(names, last)]]

    # Ids.

    def id_of(self, subject: str, schema: Schema) -> int | None:
        """The id that an equal schema has in the subject's context."""
        context = context_of(subject)
        found = self._by_guid.get(context, {}).get(schema.guid, {}).get(schema.type)
        return found if found in self._by_id.get(context, {}) else None

    def users_of_id(self, context: str, id: int) -> Mapping[str, int]:
        """Subjects and versions that have an id in a context."""
        return self._by_id.get(context, {}).get(id, {})

    def by_id(self, id: int, subject: str | None) -> StoredSchema | None:
        """A schema with this id, in a subject, or in any subject of a context."""
        name = QualifiedSubject.parse(subject or "")
        users = self.users_of_id(name.context, id)
        if not users:
            return None
        if not name.is_context:
            user = str(name)
            return self.version(user, users[user], deleted=True) if user in users else None
        user, version = next(iter(users.items()))
        return self.version(user, version, deleted=True)

    def id_of_guid(self, context: str, guid: str) -> int | None:
        ids = self._by_id.get(context, {})
        found = self._by_guid.get(context, {}).get(guid, {})
        return next((id for id in found.values() if id in ids), None)

    def next_id(self, subject: str) -> int:
        return self._id_maxima.get(context_of(subject), 0) + 1

    @property
    def id_maxima(self) -> Mapping[str, int]:
        """The highest id that each context has seen."""
        return self._id_maxima

    def references_to(self, subject: str, version: int) -> frozenset[ContextId]:
        """Contexts and ids of the schemas that use a version."""
        return frozenset(self._referenced_by.get((subject, version), ()))

    # Settings.

    def config(self, subject: str | None) -> Config | None:
        return self._configs.get(subject)

    @property
    def configs(self) -> Mapping[str | None, Config]:
        return self._configs

    def mode(self, subject: str | None) -> str | None:
        return self._modes.get(subject)

    @property
    def modes(self) -> Mapping[str | None, str]:
        return self._modes

    @property
    def contexts(self) -> list[str]:
        """All but the default one."""
        return sorted(self._contexts)

    # Changes.

    def replay(self, record: Record) -> None:
        match record:
            case SchemaSet(subject, version, stored):
                self._remove(subject, version)
                if stored is not None:
                    self._add(stored)
            case ConfigSet(subject, config):
                _set(self._configs, subject, config)
            case ModeSet(subject, mode):
                _set(self._modes, subject, mode)
            case DeleteSubject(subject, last):
                found = self._versions.get(subject, {})
                for version, stored in found.items():
                    if version <= last:
                        found[version] = stored.as_deleted()
            case ClearSubject(subject):
                self._clear(subject)
            case ContextSet(context, exists):
                (self._contexts.add if exists else self._contexts.discard)(context)
            case AssociationSet():
                self.associations.replay(record)
            case Noop(id_maxima):
                for context, id in id_maxima.items():
                    self._note_id(context, id)

    def _add(self, stored: StoredSchema) -> None:
        context = context_of(stored.subject)
        self._note_id(context, stored.id)
        users = self._by_id.setdefault(context, {}).setdefault(stored.id, {})
        if users:
            other = self.by_id(stored.id, QualifiedSubject(context, "").context_name)
            if other is not None and other.schema.text != stored.schema.text:
                return
        versions = self._versions.get(stored.subject)
        if versions is None:
            versions = self._versions[stored.subject] = {}
            self._sorted_subjects = None
        versions[stored.version] = stored
        users[stored.subject] = stored.version
        guids = self._by_guid.setdefault(context, {})
        guids.setdefault(stored.guid, {})[stored.schema.type] = stored.id
        for target in _targets(stored):
            self._referenced_by.setdefault(target, set()).add((context, stored.id))

    def _remove(self, subject: str, version: int) -> None:
        versions = self._versions.get(subject, {})
        stored = versions.pop(version, None)
        if stored is None:
            return
        if not versions:
            del self._versions[subject]
            self._sorted_subjects = None
        context = context_of(subject)
        ids = self._by_id[context]
        users = ids[stored.id]
        if users.get(subject) == version:
            # Another version of the subject may have the id as well, if both were imported.
            same = [each.version for each in versions.values() if each.id == stored.id]
            if same:
                users[subject] = max(same)
            else:
                del users[subject]
        if not users:
            del ids[stored.id]
            for target in _targets(stored):
                referrers = self._referenced_by.get(target)
                if referrers is not None:
                    referrers.discard((context, stored.id))
                    if not referrers:
                        del self._referenced_by[target]

    def _clear(self, subject: str | None) -> None:
        for name in list(self.matching(subject, deleted=True)):
            for version, stored in list(self._versions[name].items()):
                if stored.deleted:
                    self._remove(name, version)

    def _note_id(self, context: str, id: int) -> None:
        if id > self._id_maxima.get(context, 0):
            self._id_maxima[context] = id


def _targets(stored: StoredSchema) -> Iterator[SubjectVersion]:
    for each in stored.schema.references:
        if each.subject is not None and each.version is not None:
            yield str(qualify(stored.subject, each.subject)), each.version


def _set(table: dict[str | None, V], key: str | None, value: V | None) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value
