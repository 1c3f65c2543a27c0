"""The columns of a topic: those of Spark's Kafka source and sink, as Arrow types."""

from __future__ import annotations

from moldau.installation import pip_install

try:
    import pyarrow
except ImportError as error:
    raise ImportError(f"pyarrow is missing: {pip_install('spark')}") from error

__all__ = ["HEADERS", "pyarrow", "source_schema"]

HEADERS = pyarrow.list_(
    pyarrow.struct(
        [pyarrow.field("key", pyarrow.string()), pyarrow.field("value", pyarrow.binary())]
    )
)


def source_schema(*, include_headers: bool) -> pyarrow.Schema:
    """What `read_range` gives."""
    fields = [
        pyarrow.field("key", pyarrow.binary()),
        pyarrow.field("value", pyarrow.binary()),
        pyarrow.field("topic", pyarrow.string()),
        pyarrow.field("partition", pyarrow.int32()),
        pyarrow.field("offset", pyarrow.int64()),
        pyarrow.field("timestamp", pyarrow.timestamp("us", tz="UTC")),
        pyarrow.field("timestampType", pyarrow.int32()),
    ]
    if include_headers:
        fields.append(pyarrow.field("headers", HEADERS))
    return pyarrow.schema(fields)
