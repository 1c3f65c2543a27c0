"""From texts to parsed schemas: references are looked up, and what was parsed is kept for a while.

A schema is parsed with the texts of everything it refers to, directly or not. Both the number of
references and how deep they nest are bounded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from moldau.data.languages import NEW, STORED
from moldau.data.schema_language import (
    ParsedSchema,
    ResolvedReference,
    SchemaError,
    SchemaLanguage,
)
from moldau.services.registry.machine.errors import InvalidSchema
from moldau.services.registry.machine.schemas import LATEST, Reference, Schema, StoredSchema
from moldau.services.registry.machine.state import RegistryState
from moldau.services.registry.machine.subjects import qualify

__all__ = ["LANGUAGES", "Canonical", "Languages", "SchemaParser"]

_REFERENCES_MAX: Final = 10_000
_DEPTH_MAX: Final = 200

_CacheKey = tuple[bool, str, str, tuple[ResolvedReference, ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Languages:
    """By type; `stored` reads what the registry holds already, less strictly than what is new."""

    new: Mapping[str, Callable[[], SchemaLanguage]]
    stored: Mapping[str, Callable[[], SchemaLanguage]]


LANGUAGES: Final = Languages(new=NEW, stored=STORED)


@dataclass(frozen=True, slots=True)
class Canonical:
    """A schema in the form in which it is stored, and parsed."""

    schema: Schema
    parsed: ParsedSchema


class SchemaParser:
    def __init__(
        self,
        state: RegistryState,
        languages: Languages,
        *,
        cache_size: int = 1_000,
    ) -> None:
        self._state = state
        self._languages = languages
        self._cache_size = cache_size
        self._cache: OrderedDict[_CacheKey, ParsedSchema] = OrderedDict()

    @property
    def types(self) -> list[str]:
        return list(self._languages.new)

    def canonical(
        self, subject: str, schema: Schema, *, normalize: bool = False, as_new: bool = False
    ) -> Canonical:
        """`as_new` refuses references to versions that are deleted."""
        references, resolved = self._resolve(subject, schema, as_new=as_new)
        parsed = self._parse(schema, resolved, as_new=as_new)
        if normalize:
            parsed = parsed.normalized()
        return Canonical(replace(schema, text=parsed.canonical_text, references=references), parsed)

    def parse(self, stored: StoredSchema) -> ParsedSchema:
        """What is stored."""
        _, resolved = self._resolve(stored.subject, stored.schema, as_new=False)
        return self._parse(stored.schema, resolved, as_new=False)

    def _parse(
        self, schema: Schema, resolved: tuple[ResolvedReference, ...], *, as_new: bool
    ) -> ParsedSchema:
        content = (schema.type, schema.text, resolved, schema.reserved_fields)
        key = (as_new, *content)
        # What is good enough for a new schema is so for a stored one.
        for each in (key, (True, *content)):
            found = self._cache.get(each)
            if found is not None:
                self._cache.move_to_end(each)
                return found
        languages = self._languages.new if as_new else self._languages.stored
        load = languages.get(schema.type)
        if load is None:
            raise InvalidSchema(f"Invalid schema type {schema.type}")
        try:
            found = load().parse(schema.text, resolved, reserved_fields=schema.reserved_fields)
        except (SchemaError, RecursionError) as error:
            detail = str(error) or type(error).__name__
            raise InvalidSchema(
                f"Invalid schema of type {schema.type}, details: {detail}"
            ) from error
        self._cache[key] = found
        if len(self._cache) > self._cache_size:
            self._cache.popitem(last=False)
        return found

    def _resolve(
        self, subject: str, schema: Schema, *, as_new: bool
    ) -> tuple[tuple[Reference, ...], tuple[ResolvedReference, ...]]:
        """The references with their versions, and the texts of all, each before its users."""
        if not schema.references:
            return (), ()
        found: dict[str, ResolvedReference] = {}
        references = self._collect(subject, schema, found, as_new=as_new, depth=0)
        return references, tuple(found.values())

    def _collect(
        self,
        subject: str,
        schema: Schema,
        found: dict[str, ResolvedReference],
        *,
        as_new: bool,
        depth: int,
    ) -> tuple[Reference, ...]:
        if depth > _DEPTH_MAX or len(found) > _REFERENCES_MAX:
            raise _invalid(schema, "too many references, or nested too deeply")
        references = []
        for each in schema.references:
            name = each.name
            if name is None or each.subject is None or each.version is None:
                raise _invalid(schema, f"Invalid reference: {each.to_json()}")
            target = str(qualify(subject, each.subject))
            stored = self._state.version(target, each.version, deleted=not as_new)
            if stored is None:
                raise _invalid(
                    schema,
                    f'No schema reference found for subject "{target}" and version {each.version}',
                )
            if each.version == LATEST:
                each = replace(each, version=stored.version)
            references.append(each)
            if name not in found:
                self._collect(stored.subject, stored.schema, found, as_new=as_new, depth=depth + 1)
                found[name] = ResolvedReference(name, stored.schema.text)
        return tuple(references)


def _invalid(schema: Schema, detail: str) -> InvalidSchema:
    return InvalidSchema(f"Invalid schema of type {schema.type}, details: {detail}")
