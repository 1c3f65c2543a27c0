"""`from_registry` and `to_registry`: columns of any DataFrame, with schemas of a registry.

from moldau.spark.schemas.functions import from_registry, to_registry

orders = frame.select(from_registry("value", "http://127.0.0.1:8081", "orders-value"))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]
from pyspark.sql.pandas.types import from_arrow_type

from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.values import AVRO, RegisteredSchema, Schema
from moldau.spark.schemas.header_ids import with_id
from moldau.spark.schemas.typed import ColumnDecoder, ColumnEncoder, derived_schema

__all__ = ["from_registry", "to_registry"]

_WITH_HEADERS = "data binary, headers array<struct<key: string, value: binary>>"

#: Clients by address, in a worker: functions are called for every batch.
_clients: dict[tuple[tuple[str, str], ...], SchemaRegistryClient] = {}


def _client(config: Mapping[str, str]) -> SchemaRegistryClient:
    key = tuple(sorted(config.items()))
    found = _clients.get(key)
    if found is None:
        found = _clients[key] = SchemaRegistryClient(config=config)
    return found


def from_registry(
    column: Any,
    url: str,
    subject: str,
    *,
    config: Mapping[str, str] | None = None,
    mode: Literal["FAILFAST", "PERMISSIVE"] = "FAILFAST",
    is_key: bool = False,
    headers: Any = None,
) -> Any:
    """Bytes as the type of the subject's latest schema; null for what does not decode if the mode
    is PERMISSIVE. `headers` is the column of the records' headers, which may name the schemas."""
    settings = {**(config or {}), "schema.registry.url": url}
    with SchemaRegistryClient(config=settings) as registry:
        schema = registry.latest(subject).schema
        kind = from_arrow_type(ColumnDecoder(registry, schema, is_key=is_key).type)
    decoders: list[ColumnDecoder] = []

    def decode(values: pa.Array, given: pa.Array | None) -> pa.Array:
        if not decoders:
            decoders.append(ColumnDecoder(_client(settings), schema, is_key=is_key))
        found, bad = decoders[0].decode(values, given)
        if bad and mode == "FAILFAST":
            raise RuntimeError(
                f"a row does not decode with the schema of {subject}: {bad[0].error}. The mode "
                "PERMISSIVE gives null for it."
            )
        return found

    def decode_alone(values: pa.Array) -> pa.Array:
        return decode(values, None)

    # Spark counts the parameters of a function, and tells its kind by their types.
    def decode_named(values: pa.Array, given: pa.Array) -> pa.Array:
        return decode(values, given)

    if headers is None:
        return arrow_udf(decode_alone, kind)(column)
    return arrow_udf(decode_named, kind)(column, headers)


def to_registry(
    column: Any,
    url: str,
    subject: str,
    *,
    schema: str | None = None,
    schema_type: str = AVRO,
    config: Mapping[str, str] | None = None,
    is_key: bool = False,
    id_in_header: bool = False,
) -> Any:
    """A typed column as bytes; with the subject's latest schema unless one is given, which is then
    registered. A subject that is not there yet gets the schema of the column's type.

    With `id_in_header` it is a struct: `data`, the bytes without the schema's id, and `headers`,
    the record's headers, which name the schema.
    """
    settings = {**(config or {}), "schema.registry.url": url}
    state: list[ColumnEncoder] = []

    def encoder(kind: pa.DataType) -> ColumnEncoder:
        if not state:
            registry = _client(settings)
            found = registered(registry, subject, schema, schema_type, kind)
            state.append(ColumnEncoder(registry, found, id_in_header=id_in_header))
        return state[0]

    def encode(values: pa.Array) -> pa.Array:
        return encoder(values.type).encode(values)

    def encode_with_headers(values: pa.Array) -> pa.Array:
        used = encoder(values.type)
        headers = with_id(None, values, used.header or b"", is_key=is_key)
        return pa.StructArray.from_arrays([used.encode(values), headers], ["data", "headers"])

    if id_in_header:
        return arrow_udf(encode_with_headers, _WITH_HEADERS)(column)
    return arrow_udf(encode, "binary")(column)


def registered(
    registry: SchemaRegistryClient,
    subject: str,
    schema: str | None,
    schema_type: str,
    kind: pa.DataType,
) -> RegisteredSchema:
    """The schema that a column is written with."""
    from moldau.serde.errors import RegistryError

    if schema is not None:
        text = Schema(schema, schema_type)
    else:
        try:
            return registry.latest(subject)
        except RegistryError as error:
            if error.status != 404:
                raise
        name = "".join(each if each.isalnum() else "_" for each in subject.rpartition("-")[0])
        text = derived_schema(kind, schema_type, name or "Record")
    found = registry.register_full(subject, text)
    if found.guid is None:
        # A registry of an older release answers with the id alone.
        found = registry.lookup(subject, text)
    return RegisteredSchema(found.id, text, subject, found.version, found.guid)
