"""The registry without its surroundings: what it remembers, decides and answers."""

from __future__ import annotations

from moldau.services.registry.machine.association_changes import AssociationChanges
from moldau.services.registry.machine.compatibility import incompatibilities
from moldau.services.registry.machine.deletion import Deletion
from moldau.services.registry.machine.errors import InvalidSchema
from moldau.services.registry.machine.parsing import Languages, SchemaParser
from moldau.services.registry.machine.queries import Queries
from moldau.services.registry.machine.records import Record
from moldau.services.registry.machine.registration import Registration
from moldau.services.registry.machine.schemas import Schema, StoredSchema
from moldau.services.registry.machine.scopes import Scopes, ServerDefaults
from moldau.services.registry.machine.settings import Settings
from moldau.services.registry.machine.state import RegistryState

__all__ = ["Registry"]


class Registry:
    """Parts that share one state; only `replay` changes it."""

    def __init__(
        self,
        languages: Languages,
        defaults: ServerDefaults,
        *,
        cache_size: int = 1_000,
    ) -> None:
        self.state = RegistryState()
        self.scopes = Scopes(self.state, defaults)
        self.parser = SchemaParser(self.state, languages, cache_size=cache_size)
        self.registration = Registration(self.state, self.scopes, self.parser)
        self.deletion = Deletion(self.state, self.scopes)
        self.associations = AssociationChanges(
            self.state, self.scopes, self.registration, self.deletion
        )
        self.settings = Settings(self.state, self.scopes)
        self.queries = Queries(self.state)

    def replay(self, record: Record) -> None:
        self.state.replay(record)

    def normalizes(self, subject: str, *, asked: bool) -> bool:
        return asked or self.scopes.config(subject).normalize is True

    def check_compatibility(
        self, subject: str, schema: Schema, against: list[StoredSchema], *, normalize: bool
    ) -> list[str]:
        """Why a schema could not be registered after these versions; empty if it could."""
        if not schema.text.strip():
            raise InvalidSchema("Empty schema")
        config = self.scopes.config(subject)
        canonical = self.parser.canonical(
            subject,
            schema,
            normalize=normalize and not self.scopes.is_import(subject),
            as_new=True,
        )
        return incompatibilities(
            canonical, against, config=config, scopes=self.scopes, parser=self.parser
        )

    def formatted(self, stored: StoredSchema, format_name: str | None) -> str:
        """The text of a stored schema in another form."""
        if not format_name or not format_name.strip():
            return stored.schema.text
        return self.parser.parse(stored).formatted(format_name)
