"""Serdes whose bytes begin with the id of a registered schema."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from moldau.data.errors import DataError
from moldau.data.schema_language import SchemaError
from moldau.serde.framing import MAGIC_ID
from moldau.sql.errors import KsqlException
from moldau.sql.formats.common import Row
from moldau.sql.formats.errors import SerdeError
from moldau.sql.ports import SchemaRegistry

_PREFIX = struct.Struct(">bI")
PREFIX_SIZE = _PREFIX.size
_SCHEMAS_MAX = 1000
_HINT = "\nHint: You probably forgot to add VALUE_SCHEMA_ID when creating the source."


def split(data: bytes) -> tuple[int, bytes]:
    """The id and what follows it."""
    if len(data) < PREFIX_SIZE or data[0] != MAGIC_ID:
        raise SerdeError("Unknown magic byte!")
    return _PREFIX.unpack_from(data)[1], data[PREFIX_SIZE:]


class IdWriter:
    """The first bytes of a topic's records: the id of the schema, registered when first needed."""

    def __init__(
        self,
        registry: SchemaRegistry | None,
        schema_type: str,
        text: str,
        *,
        is_key: bool,
        schema_id: int | None,
    ) -> None:
        self._registry = registry
        self._schema_type = schema_type
        self._text = text
        self._suffix = "-key" if is_key else "-value"
        self._fixed = None if schema_id is None else _PREFIX.pack(MAGIC_ID, schema_id)
        #: By topic, as far as they are known.
        self.prefixes: dict[str, bytes] = {}

    def prefix(self, topic: str) -> bytes:
        if self._fixed is not None:
            return self._fixed
        found = self.prefixes.get(topic)
        if found is None:
            if self._registry is None:
                raise SerdeError(
                    "ksql.schema.registry.url is not set: the format needs a Schema Registry"
                )
            subject = topic + self._suffix
            schema_id = self._registry.register(subject, self._schema_type, self._text)
            found = self.prefixes[topic] = _PREFIX.pack(MAGIC_ID, schema_id)
        return found


class SchemaReader:
    """Readers by the id of the writer's schema, made when an id is first met."""

    def __init__(
        self, registry: SchemaRegistry | None, make: Callable[[str, str], Callable[[bytes], Any]]
    ) -> None:
        self._registry = registry
        self._make = make
        #: By the first bytes of a record, which hold the id.
        self.readers: dict[bytes, Callable[[bytes], Any]] = {}

    def read(self, data: bytes) -> Any:
        reader = self.readers.get(data[:PREFIX_SIZE])
        if reader is None:
            schema_id, _ = split(data)
            if self._registry is None:
                raise SerdeError(
                    "ksql.schema.registry.url is not set: the format needs a Schema Registry"
                )
            if len(self.readers) >= _SCHEMAS_MAX:
                self.readers.clear()
            reader = self._make(*self._registry.by_id(schema_id))
            self.readers[data[:PREFIX_SIZE]] = reader
        return reader(data[PREFIX_SIZE:])


def registered_schema(registry: SchemaRegistry | None, schema_id: int) -> tuple[str, str]:
    """Type and text of the schema that a statement names by its id."""
    problem = "Failed to fetch schema for serialization from Schema Registry using schema id: "
    if registry is None:
        raise KsqlException(f"{problem}{schema_id}")
    try:
        return registry.by_id(schema_id)
    except LookupError as error:
        raise KsqlException(f"{problem}{schema_id}") from error


def writing(write: Callable[[str, Row], bytes | None]) -> Callable[[str, Row], bytes | None]:
    """Errors say which topic was written to."""

    def guarded(topic: str, row: Row) -> bytes | None:
        try:
            return write(topic, row)
        except (KsqlException, DataError, SchemaError, LookupError, ValueError) as error:
            raise SerdeError(
                f"Error serializing message to topic: {topic}. {error}{_HINT}"
            ) from error

    return guarded


def reading(read: Callable[[bytes], Any], *, single: bool) -> Callable[[str, bytes], Row | None]:
    """Errors say which topic was read from; a single value becomes a row."""

    def guarded(topic: str, data: bytes) -> Row | None:
        try:
            found = read(data)
        except (KsqlException, DataError, SchemaError, LookupError, ValueError) as error:
            raise SerdeError(f"Error deserializing message from topic: {topic}. {error}") from error
        return (found,) if single else found

    return guarded
