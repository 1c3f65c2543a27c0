"""Avro container files: data with its schema, in blocks that may be compressed.

    with open("orders.avro", "wb") as file:
        write_avro_file(file, schema, records, codec="deflate")
    with open("orders.avro", "rb") as file:
        for record in AvroFile(file):
            ...

Codecs: null, deflate, bzip2, xz, snappy and zstandard; the last two need their libraries.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import IO, Any, Final

import fastavro

from moldau.data.avro.language import AvroLanguage, AvroSchema
from moldau.data.avro.limits import is_recursive
from moldau.data.errors import DataError
from moldau.data.schema_language import SchemaError

__all__ = ["CODECS", "AvroFile", "write_avro_file"]

CODECS: Final = ("null", "deflate", "bzip2", "xz", "snappy", "zstandard")
_SYNC_INTERVAL: Final = 16_000


class AvroFile:
    """The records of a file, read one after the other, as the writer's schema has them or as
    `reader_schema` does. Raises DataError for what is no such file."""

    def __init__(
        self,
        file: IO[bytes],
        reader_schema: str | None = None,
        *,
        logical_types: bool = True,
        named_branches: bool = False,
    ) -> None:
        self._file = file
        try:
            self._reader: Any = fastavro.reader(
                file,
                None if reader_schema is None else json.loads(reader_schema),
                return_named_type=named_branches,
            )
            text = self._reader.metadata["avro.schema"]
            self.schema: AvroSchema = AvroLanguage().parse(text, strict=False)
        except SchemaError as error:
            raise DataError(f"the schema of the file: {error}") from None
        except Exception as error:
            # fastavro raises what a wrong byte leads to.
            raise DataError(f"not an Avro container file: {error}") from None
        if is_recursive(self.schema.root):
            # fastavro decodes by recursion in C, which data may nest deeper than the stack.
            raise DataError("the schema of the file holds itself, which is not read here")
        self.codec: str = self._reader.codec
        if not logical_types:
            plain = _without_logical_types(self._reader.writer_schema)
            self._reader = _values(file, fastavro.parse_schema(plain), named_branches)

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self._reader
        except Exception as error:
            raise DataError(f"the file is damaged: {error}") from None


def write_avro_file(
    file: IO[bytes], schema: str, records: Iterable[Any], *, codec: str = "deflate"
) -> None:
    """Records are dicts, or whatever the schema has. Raises DataError."""
    if codec not in CODECS:
        raise DataError(f"codec {codec} is none of {', '.join(CODECS)}")
    parsed = AvroLanguage().parse(schema)
    try:
        fastavro.writer(
            file,
            fastavro.parse_schema(json.loads(parsed.resolved_text)),
            records,
            codec=codec,
            sync_interval=_SYNC_INTERVAL,
        )
    except Exception as error:
        raise DataError(f"the records cannot be written: {error}") from error


def _values(file: IO[bytes], schema: Any, named_branches: bool) -> Iterator[Any]:
    """The values of another schema than the file's own, which fastavro's reader would go by."""
    file.seek(0)
    block: Any  # fastavro's types leave out the bytes.
    for block in fastavro.block_reader(file):
        for _ in range(block.num_records):
            yield fastavro.schemaless_reader(
                block.bytes_, schema, None, return_named_type=named_branches
            )


def _without_logical_types(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_logical_types(each) for each in node]
    if isinstance(node, dict):
        return {
            key: each if key in ("default", "name", "symbols") else _without_logical_types(each)
            for key, each in node.items()
            if key != "logicalType" and not key.startswith("__")
        }
    return node
