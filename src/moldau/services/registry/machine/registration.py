"""Registering a schema, and finding one that is registered.

A schema is registered under a subject once: asking again returns the version that is there. One id
belongs to equal schemas of a context, whatever their subjects. In mode IMPORT a request brings id
and version along, and nothing is checked but that an id keeps its schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from moldau.services.registry.machine.compatibility import incompatibilities
from moldau.services.registry.machine.configs import Config
from moldau.services.registry.machine.contracts import (
    Metadata,
    RuleSet,
    merge_metadata,
    merge_rule_sets,
)
from moldau.services.registry.machine.decision import Decision
from moldau.services.registry.machine.errors import (
    IncompatibleSchema,
    InvalidSchema,
    invalid_rule_set,
    not_permitted,
)
from moldau.services.registry.machine.json_fields import (
    JsonObject,
    int_field,
    object_field,
    text_list,
)
from moldau.services.registry.machine.parsing import Canonical, SchemaParser
from moldau.services.registry.machine.records import ContextSet, Record, SchemaSet
from moldau.services.registry.machine.schemas import LATEST, Schema, StoredSchema
from moldau.services.registry.machine.scopes import READWRITE, Scopes
from moldau.services.registry.machine.state import RegistryState
from moldau.services.registry.machine.subjects import (
    DEFAULT_CONTEXT,
    QualifiedSubject,
    context_of,
    qualify,
)
from moldau.services.registry.machine.tags import EntityTags, with_tags, with_tags_of

__all__ = ["RegisterRequest", "Registration", "TagRequest"]


@dataclass(frozen=True, slots=True)
class RegisterRequest:
    """A schema, with an id and a version where it is imported."""

    schema: Schema
    id: int | None = None
    version: int = 0
    tags_added: tuple[EntityTags, ...] = ()
    tags_removed: tuple[EntityTags, ...] = ()
    #: Whether tags of the version before are added to what both have.
    keeps_tags: bool = False

    @classmethod
    def from_json(cls, source: JsonObject) -> RegisterRequest:
        id = int_field(source, "id")
        schema = Schema.from_json(source)
        added = EntityTags.list_from_json(source, "schemaTagsToAdd")
        removed = EntityTags.list_from_json(source, "schemaTagsToRemove")
        return cls(
            schema,
            id if id is not None and id >= 0 else None,
            int_field(source, "version") or 0,
            added,
            removed,
            source.get("propagateSchemaTags") is True,
        )

    @property
    def changes_tags(self) -> bool:
        return bool(self.tags_added or self.tags_removed)


@dataclass(frozen=True, slots=True)
class TagRequest:
    """Other tags, metadata or rules for a version that is there."""

    new_version: int
    added: tuple[EntityTags, ...]
    removed: tuple[EntityTags, ...]
    metadata: Metadata | None
    rule_set: RuleSet | None
    rules_to_merge: RuleSet | None
    rules_to_remove: tuple[str, ...] | None

    @classmethod
    def from_json(cls, source: JsonObject) -> TagRequest:
        rule_set = RuleSet.from_json(object_field(source, "ruleSet"))
        merged = RuleSet.from_json(object_field(source, "rulesToMerge"))
        removed = source.get("rulesToRemove")
        if rule_set is not None and (merged is not None or removed is not None):
            raise invalid_rule_set(
                "ruleSet should be omitted if specifying rulesToMerge or rulesToRemove"
            )
        if rule_set is not None:
            rule_set = rule_set.with_keks()
        for each in (rule_set, merged):
            if each is not None:
                each.check()
        return cls(
            int_field(source, "newVersion") or 0,
            EntityTags.list_from_json(source, "tagsToAdd"),
            EntityTags.list_from_json(source, "tagsToRemove"),
            Metadata.from_json(object_field(source, "metadata")),
            rule_set,
            merged,
            None if removed is None else text_list(removed, "rulesToRemove"),
        )


class Registration:
    def __init__(self, state: RegistryState, scopes: Scopes, parser: SchemaParser) -> None:
        self._state = state
        self._scopes = scopes
        self._parser = parser

    # Finding.

    def find(
        self, subject: str, schema: Schema, *, normalize: bool, deleted: bool
    ) -> StoredSchema | None:
        """The version of a subject that is this schema."""
        config = self._scopes.config(subject)
        found = self._find(subject, schema, normalize=normalize, deleted=deleted)
        if found is not None:
            return found
        # As a registration would fill it in.
        latest = self._state.latest(subject)
        if latest is None:
            return None
        filled = _filled(schema, latest, config)
        if filled == schema:
            return None
        return self._find(subject, filled, normalize=normalize, deleted=deleted)

    def find_in_contexts(
        self, subject: str, schema: Schema, *, normalize: bool, deleted: bool
    ) -> StoredSchema | None:
        """As `find`; a subject without a context is looked for in all of them."""
        found = self.find(subject, schema, normalize=normalize, deleted=deleted)
        name = QualifiedSubject.parse(subject)
        if found is not None or name.context != DEFAULT_CONTEXT:
            return found
        for context in self._state.contexts:
            other = str(QualifiedSubject(context, name.subject))
            if not self._state.has_subject(other, deleted=True):
                continue
            try:
                found = self.find(other, schema, normalize=normalize, deleted=deleted)
            except InvalidSchema:
                continue
            if found is not None:
                return found
        return None

    def _find(
        self,
        subject: str,
        schema: Schema,
        *,
        normalize: bool,
        deleted: bool = False,
        as_new: bool = False,
    ) -> StoredSchema | None:
        if not schema.text.strip():
            return None
        canonical = self._canonical(subject, schema, normalize=normalize, as_new=as_new)
        id = self._state.id_of(subject, canonical.schema)
        if id is not None:
            users = self._state.users_of_id(QualifiedSubject.parse(subject).context, id)
            if subject in users:
                stored = self._state.version(subject, users[subject], deleted=deleted)
                if stored is not None:
                    return stored
        return self._find_equivalent(
            subject, canonical, self._state.versions(subject, deleted=deleted)
        )

    def _find_equivalent(
        self, subject: str, canonical: Canonical, versions: list[StoredSchema]
    ) -> StoredSchema | None:
        """A version that differs only in how its references are written, or by its
        `confluent:version`."""
        schema = canonical.schema
        for stored in reversed(versions):
            if stored.schema.type != schema.type or not schema.equals_but_for_version(
                stored.schema, stored.version
            ):
                continue
            if schema.references == stored.schema.references:
                if schema.text == stored.schema.text:
                    return stored
            elif not schema.references:
                # Sent with its references put in.
                resolved = self._parser.parse(stored).formatted("resolved")
                if resolved == canonical.parsed.formatted("resolved"):
                    return stored
        return None

    # Registering.

    def registered(
        self, subject: str, request: RegisterRequest, *, normalize: bool
    ) -> StoredSchema | None:
        """The version that a registration would return without writing anything."""
        if self._scopes.config(subject).has_defaults_or_overrides or request.changes_tags:
            return None
        if request.keeps_tags:
            return None
        if request.version not in (0, LATEST) and request.id is None:
            return None
        try:
            # As `register` will parse it, if nothing is found.
            found = self._find(subject, request.schema, normalize=normalize, as_new=True)
        except InvalidSchema:
            found = self._find(subject, request.schema, normalize=normalize)
        if found is None or request.id not in (None, found.id):
            return None
        if request.version == 0:
            return found
        if request.version == LATEST:
            latest = self._state.latest(subject)
            return found if latest is not None and latest.version == found.version else None
        stored = self._state.version(subject, request.version)
        return stored if stored is not None and stored.guid == found.guid else None

    def register(
        self,
        subject: str,
        request: RegisterRequest,
        *,
        normalize: bool,
        force: bool = False,
        pending: Sequence[StoredSchema] = (),
    ) -> Decision[StoredSchema]:
        """`pending`: what the same decision registers before it, in other subjects."""
        self._check_mode(subject, request)
        self._check_references(subject, request.schema)
        config = self._scopes.config(subject)
        importing = self._scopes.is_import(subject)
        versions = self._state.versions(subject, deleted=True)
        alive = [each for each in versions if not each.deleted]
        next_version = max((each.version for each in versions), default=0) + 1

        schema = request.schema
        if request.changes_tags:
            checked = self._canonical(subject, schema, normalize=False, as_new=False).schema
            text = with_tags(checked, request.tags_added, request.tags_removed)
            schema = replace(schema, text=text)
        if not importing:
            schema = _populated(schema, alive, config, request.version, next_version)
        if not schema.text.strip():
            raise InvalidSchema("Empty schema")
        if request.keeps_tags and alive and not importing:
            checked = self._canonical(subject, schema, normalize=False, as_new=False).schema
            schema = replace(schema, text=with_tags_of(checked, alive[-1].schema))
        canonical = self._canonical(subject, schema, normalize=normalize, as_new=request.id is None)
        schema = canonical.schema

        id = self._state.id_of(subject, schema)
        if id is None:
            id = _pending_id(subject, schema, pending)
        if id is not None and request.id in (None, id):
            users = self._state.users_of_id(QualifiedSubject.parse(subject).context, id)
            stored = self._state.version(subject, users.get(subject, 0))
            if request.version == 0 and stored is not None:
                return Decision((), stored)
        else:
            id = request.id
        if request.version == 0:
            same = self._find_equivalent(subject, canonical, alive)
            if same is not None and id in (None, same.id):
                return Decision((), same)
        if not importing and not force:
            reasons = incompatibilities(
                canonical, alive, config=config, scopes=self._scopes, parser=self._parser
            )
            if reasons:
                raise IncompatibleSchema(subject, reasons)
        version = next_version if request.version <= 0 else request.version
        if version != next_version and not importing:
            raise InvalidSchema("Version is not one more than previous version")
        if id is None:
            id = max(
                [
                    self._state.next_id(subject),
                    *(each.id + 1 for each in _in_context(subject, pending)),
                ]
            )
        else:
            self._check_id(subject, id, schema)
        stored = StoredSchema(subject, version, id, schema, schema.guid)
        return Decision(self._records(stored, versions), stored)

    def tag(self, stored: StoredSchema, request: TagRequest) -> Decision[StoredSchema]:
        """Another version of a schema, with other tags, metadata or rules."""
        rule_set = request.rule_set
        if request.rules_to_merge is not None or request.rules_to_remove is not None:
            previous = self._state.version(
                stored.subject, request.new_version - 1 if request.new_version else LATEST
            )
            rule_set = None if previous is None else previous.schema.rule_set
            rule_set = merge_rule_sets(rule_set, request.rules_to_merge)
            if rule_set is not None:
                rule_set = rule_set.without(request.rules_to_remove or ())
        metadata = request.metadata or stored.schema.metadata or Metadata()
        schema = replace(
            stored.schema,
            text=with_tags(stored.schema, request.added, request.removed),
            metadata=metadata.with_version(request.new_version),
            rule_set=rule_set,
        )
        return self.register(
            stored.subject, RegisterRequest(schema, version=request.new_version), normalize=False
        )

    def _check_mode(self, subject: str, request: RegisterRequest) -> None:
        self._scopes.check_writable(subject)
        context = QualifiedSubject.parse(subject).context_name
        if request.id is not None:
            if not self._scopes.is_import(subject):
                raise not_permitted(f"Subject {subject} in context {context} is not in import mode")
        elif self._scopes.mode(subject) != READWRITE:
            raise not_permitted(f"Subject {subject} in context {context} is not in read-write mode")

    def _check_references(self, subject: str, schema: Schema) -> None:
        """A subject that belongs to a topic may change and go with it."""
        for each in schema.references:
            target = each.subject
            if target and self._state.associations.has_strong(str(qualify(subject, target))):
                raise not_permitted(
                    f"Subject '{target}' has a strong association and cannot be referenced"
                )

    def _canonical(
        self, subject: str, schema: Schema, *, normalize: bool, as_new: bool
    ) -> Canonical:
        # What is imported was normalized, or not, where it came from.
        normalize = normalize and not self._scopes.is_import(subject)
        return self._parser.canonical(subject, schema, normalize=normalize, as_new=as_new)

    def _check_id(self, subject: str, id: int, schema: Schema) -> None:
        context = QualifiedSubject.parse(subject).context_name
        other = self._state.by_id(id, context)
        if other is not None and other.schema != schema:
            raise not_permitted(
                f"Overwrite new schema with id {id} in context {context} is not permitted."
            )

    def _records(self, stored: StoredSchema, versions: list[StoredSchema]) -> tuple[Record, ...]:
        records: list[Record] = []
        context = QualifiedSubject.parse(stored.subject).context
        if context != DEFAULT_CONTEXT and context not in self._state.contexts:
            records.append(ContextSet(context))
        for old in versions:
            # A version that was deleted and had this id makes room, unless it is referred to:
            # references are by version.
            replaced = old.deleted and old.id == stored.id and old.version < stored.version
            if replaced and not self._state.references_to(old.subject, old.version):
                records.append(SchemaSet(old.subject, old.version, None))
        records.append(SchemaSet(stored.subject, stored.version, stored))
        return tuple(records)


def _in_context(subject: str, pending: Sequence[StoredSchema]) -> list[StoredSchema]:
    context = context_of(subject)
    return [each for each in pending if context_of(each.subject) == context]


def _pending_id(subject: str, schema: Schema, pending: Sequence[StoredSchema]) -> int | None:
    for each in _in_context(subject, pending):
        if (each.guid, each.schema.type) == (schema.guid, schema.type):
            return each.id
    return None


def _populated(
    schema: Schema,
    alive: list[StoredSchema],
    config: Config,
    version: int,
    next_version: int,
) -> Schema:
    """With what it leaves out taken from the version before, and from the config."""
    previous = alive[-1] if alive else None
    if not schema.text.strip():
        if previous is None:
            raise InvalidSchema("Empty schema")
        old = previous.schema
        schema = replace(schema, text=old.text, type=old.type, references=old.references)
    filled = _filled(schema, previous, config)
    if version != 0 or (filled.metadata is not None and filled.metadata.version is not None):
        metadata = (filled.metadata or Metadata()).with_version(next_version)
        filled = replace(filled, metadata=metadata)
    return filled


def _filled(schema: Schema, previous: StoredSchema | None, config: Config) -> Schema:
    metadata, rule_set = schema.metadata, schema.rule_set
    if previous is not None:
        metadata = metadata if metadata is not None else previous.schema.metadata
        rule_set = rule_set if rule_set is not None else previous.schema.rule_set
    metadata = merge_metadata(
        merge_metadata(config.default_metadata, metadata), config.override_metadata
    )
    rule_set = merge_rule_sets(
        merge_rule_sets(config.default_rule_set, rule_set), config.override_rule_set
    )
    return replace(schema, metadata=metadata, rule_set=rule_set)
