"""Reads the steps that change the shape of rows from a document's data.

Mistakes are reported with the path of what is wrong; None is returned for a step that cannot be
read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moldau.pipelines.definition.bodies import Body, Reader
from moldau.pipelines.definition.mistakes import Path
from moldau.pipelines.definition.model import Transforms
from moldau.pipelines.definition.relation_reading import RELATION_READERS
from moldau.pipelines.definition.scoring import SCORE_OPTIONS, Score
from moldau.pipelines.definition.transforms import (
    ColumnsToHeaders,
    Deduplicate,
    Explode,
    Flatten,
    HeadersToColumns,
    Mask,
)

__all__ = ["TRANSFORM_OPTIONS", "read_transform"]

#: What may stand beside the step's own name.
TRANSFORM_OPTIONS: dict[str, tuple[str, ...]] = {
    "flatten": ("name", "from"),
    "mask": ("name", "from"),
    "explode": ("name", "from"),
    "headers_to_columns": ("name", "from"),
    "columns_to_headers": ("name", "from", "keep"),
    "deduplicate": ("name", "from"),
    "window": ("name", "from"),
    "join": ("name", "from"),
    "lookup": ("name", "from"),
    "score": ("name", "from"),
}


def read_transform(
    reader: Reader, kind: str, fields: Mapping[str, Any], path: Path, step: dict[str, Any]
) -> Transforms | None:
    """`fields` are the whole step's; `step` its name, source and place."""
    body = Body(reader, kind, fields[kind], (*path, kind), f"steps[{path[-1]}]")
    made = _READERS[kind](body, {**fields, "path": path}, step)
    return made if body.is_right else None


def _flatten(body: Body, beside: Mapping[str, Any], step: dict[str, Any]) -> Flatten:
    if body.data is None:
        return Flatten(**step)
    if not isinstance(body.data, Mapping):
        return Flatten(body.names(body.data), **step)
    fields = body.fields("columns", "separator", "depth")
    columns = body.names(fields["columns"], "columns") if fields.get("columns") else ()
    separator, depth = body.text(fields, "separator", "_"), body.number(fields, "depth")
    return Flatten(columns, separator=separator, depth=depth, **step)


def _mask(body: Body, beside: Mapping[str, Any], step: dict[str, Any]) -> Mask:
    if not isinstance(body.data, Mapping):
        body.wrong("expected a mapping of columns", hint="{email: hash, card: partial}")
        return Mask({}, **step)
    return Mask({str(name): rule for name, rule in body.data.items()}, **step)


def _explode(body: Body, beside: Mapping[str, Any], step: dict[str, Any]) -> Explode:
    if isinstance(body.data, str):
        return Explode(body.data, **step)
    fields = body.fields("column", "as", "position", "outer", needs=("column",))
    return Explode(
        body.text(fields, "column", ""),
        into=body.names(fields["as"], "as") if fields.get("as") else (),
        position=body.text(fields, "position"),
        outer=body.flag(fields, "outer"),
        **step,
    )


def _headers(body: Body, beside: Mapping[str, Any], step: dict[str, Any]) -> HeadersToColumns:
    return HeadersToColumns(body.pairs(body.data), **step)


def _to_headers(body: Body, beside: Mapping[str, Any], step: dict[str, Any]) -> ColumnsToHeaders:
    keep = beside.get("keep", False)
    if not isinstance(keep, bool):
        body.wrong(f"keep: expected true or false, got {keep!r}")
    return ColumnsToHeaders(body.pairs(body.data), keep=keep is True, **step)


def _deduplicate(body: Body, beside: Mapping[str, Any], step: dict[str, Any]) -> Deduplicate:
    if not isinstance(body.data, Mapping):
        return Deduplicate(body.names(body.data), **step)
    fields = body.fields("keys", "watermark", needs=("keys",))
    keys = body.names(fields["keys"], "keys") if fields.get("keys") else ()
    return Deduplicate(keys, watermark=body.watermark(fields), **step)


def _score(body: Body, beside: Mapping[str, Any], step: dict[str, Any]) -> Score:
    fields = body.fields(*SCORE_OPTIONS, needs=("model", "columns"))
    columns = body.names(fields["columns"], "columns") if fields.get("columns") else ()
    return Score(
        body.text(fields, "model", ""),
        columns,
        into=body.text(fields, "as", "score"),
        type=body.text(fields, "type", "DOUBLE"),
        method=body.text(fields, "method", "predict"),
        **step,
    )


_READERS: Mapping[str, Callable[[Body, Mapping[str, Any], dict[str, Any]], Transforms]] = {
    "flatten": _flatten,
    "mask": _mask,
    "explode": _explode,
    "headers_to_columns": _headers,
    "columns_to_headers": _to_headers,
    "deduplicate": _deduplicate,
    **RELATION_READERS,
    "score": _score,
}
