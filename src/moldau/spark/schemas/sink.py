"""The typed columns of a query that writes topics, as bytes."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.serde.registry_client import SchemaRegistryClient
from moldau.spark.columns.schema import pyarrow
from moldau.spark.schemas.functions import registered
from moldau.spark.schemas.header_ids import with_id
from moldau.spark.schemas.machine.options import SchemaOptions
from moldau.spark.schemas.typed import ColumnEncoder

__all__ = ["encoded"]


def encoded(
    batches: Iterator[pyarrow.RecordBatch], options: SchemaOptions
) -> Iterator[pyarrow.RecordBatch]:
    """In a task. A column's schema is the one that the options give, or the subject's latest; for a
    subject that is not there yet it is made from the column's type."""
    encoders: dict[str, ColumnEncoder] = {}
    with SchemaRegistryClient(config=options.registry) as registry:
        for batch in batches:
            arrays, names = list(batch.columns), list(batch.schema.names)
            for name, column in options.columns.items():
                if name not in names or not batch.num_rows:
                    continue
                position = names.index(name)
                encoder = encoders.get(name)
                if encoder is None:
                    found = registered(
                        registry,
                        column.subject or "",
                        column.schema,
                        column.schema_type,
                        batch.column(position).type,
                    )
                    encoder = encoders[name] = ColumnEncoder(
                        registry, found, id_in_header=column.id_in_header
                    )
                arrays[position] = encoder.encode(batch.column(position))
                if encoder.header is not None:
                    _add_id(arrays, names, name, encoder.header)
            yield pyarrow.RecordBatch.from_arrays(arrays, names=names) if batch.num_rows else batch


def _add_id(arrays: list[pyarrow.Array], names: list[str], name: str, id: bytes) -> None:
    """Into the column of headers, which is made if there is none."""
    at = names.index("headers") if "headers" in names else None
    before = None if at is None else arrays[at]
    made = with_id(before, arrays[names.index(name)], id, is_key=name == "key")
    if at is None:
        arrays.append(made)
        names.append("headers")
    else:
        arrays[at] = made
