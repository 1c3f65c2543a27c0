"""Keys of records as expressions: for what is written, and for what is looked up."""

from __future__ import annotations

from typing import Any

from moldau.pipelines.definition.places import Place
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.machine.explaining import short

__all__ = ["as_bytes", "key_of"]


def key_of(frame: Any, text: str, place: Place | None, label: str) -> Any:
    """Bytes and text as they are, numbers and times as text, what has fields as JSON."""
    from pyspark.sql import functions as F

    try:
        kind = frame.select(F.expr(text)).schema.fields[0].dataType.typeName()
    except Exception as failure:
        where = str(place) if place else None
        raise PipelineError(
            f"{label}: {short(failure)}", where=where, detail=str(failure)
        ) from None
    key = F.expr(text)
    if kind in ("struct", "map", "array"):
        return F.to_json(key).cast("binary")
    return as_bytes(key) if kind != "binary" else key


def as_bytes(column: Any) -> Any:
    return column.cast("string").cast("binary")
