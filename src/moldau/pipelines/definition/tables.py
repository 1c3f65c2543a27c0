"""Tables by their kind's name, for pipelines written in Python.

    Parquet("archive", partitionBy=["day"])
    Jdbc("jdbc:postgresql://db/shop", table="orders", upsert=["id"])

Options have the names they have in YAML.
"""

from __future__ import annotations

from typing import Any

from moldau.pipelines.definition.model import Table, Watermark
from moldau.pipelines.definition.places import place_of_caller


def _table(
    kind: str,
    address: str,
    watermark: Watermark | None,
    streaming: bool,
    options: dict[str, Any],
) -> Table:
    return Table(
        kind,
        {kind: address, **options},
        watermark=watermark,
        streaming=streaming,
        place=place_of_caller(),
    )


def Parquet(
    path: str, *, watermark: Watermark | None = None, streaming: bool = True, **options: Any
) -> Table:
    """A folder of Parquet files."""
    return _table("parquet", path, watermark, streaming, options)


def Json(
    path: str, *, watermark: Watermark | None = None, streaming: bool = True, **options: Any
) -> Table:
    """A folder of files with a JSON object in each line."""
    return _table("json", path, watermark, streaming, options)


def Csv(
    path: str, *, watermark: Watermark | None = None, streaming: bool = True, **options: Any
) -> Table:
    """A folder of CSV files."""
    return _table("csv", path, watermark, streaming, options)


def Xml(
    path: str, *, watermark: Watermark | None = None, streaming: bool = True, **options: Any
) -> Table:
    """A folder of XML files; `rowTag` is the element that is a row."""
    return _table("xml", path, watermark, streaming, options)


def Text(
    path: str, *, watermark: Watermark | None = None, streaming: bool = True, **options: Any
) -> Table:
    """A folder of text files, a row for each line, in the column `value`."""
    return _table("text", path, watermark, streaming, options)


def Avro(
    path: str, *, watermark: Watermark | None = None, streaming: bool = True, **options: Any
) -> Table:
    """A folder of Avro files."""
    return _table("avro", path, watermark, streaming, options)


def Delta(
    path: str, *, watermark: Watermark | None = None, streaming: bool = True, **options: Any
) -> Table:
    """A Delta Lake table."""
    return _table("delta", path, watermark, streaming, options)


def Iceberg(
    warehouse: str, *, watermark: Watermark | None = None, streaming: bool = True, **options: Any
) -> Table:
    """An Apache Iceberg table in a warehouse folder or of a catalog."""
    return _table("iceberg", warehouse, watermark, streaming, options)


def Jdbc(
    url: str, *, watermark: Watermark | None = None, streaming: bool = True, **options: Any
) -> Table:
    """A database's table."""
    return _table("jdbc", url, watermark, streaming, options)
