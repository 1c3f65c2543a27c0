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
from moldau.spark.schemas.typed import ColumnDecoder, ColumnEncoder, derived_schema

__all__ = ["from_registry", "to_registry"]

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
) -> Any:
    """Bytes as the type of the subject's latest schema; null for what does not decode if the mode
    is PERMISSIVE."""
    settings = {**(config or {}), "schema.registry.url": url}
    with SchemaRegistryClient(config=settings) as registry:
        schema = registry.latest(subject).schema
        kind = from_arrow_type(ColumnDecoder(registry, schema, is_key=is_key).type)
    decoders: list[ColumnDecoder] = []

    def decode(values: pa.Array) -> pa.Array:
        if not decoders:
            decoders.append(ColumnDecoder(_client(settings), schema, is_key=is_key))
        found, bad = decoders[0].decode(values)
        if bad and mode == "FAILFAST":
            raise RuntimeError(
                f"a row does not decode with the schema of {subject}: {bad[0].error}. The mode "
                "PERMISSIVE gives null for it."
            )
        return found

    return arrow_udf(decode, kind)(column)


def to_registry(
    column: Any,
    url: str,
    subject: str,
    *,
    schema: str | None = None,
    schema_type: str = AVRO,
    config: Mapping[str, str] | None = None,
) -> Any:
    """A typed column as bytes; with the subject's latest schema unless one is given, which is then
    registered. A subject that is not there yet gets the schema of the column's type."""
    settings = {**(config or {}), "schema.registry.url": url}
    state: list[ColumnEncoder] = []

    def encode(values: pa.Array) -> pa.Array:
        if not state:
            registry = _client(settings)
            state.append(
                ColumnEncoder(
                    registry, registered(registry, subject, schema, schema_type, values.type)
                )
            )
        return state[0].encode(values)

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
    return RegisteredSchema(found.id, text, subject, found.version)
