"""Reads windows, joins and lookups from a document's data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moldau.pipelines.definition.bodies import Body
from moldau.pipelines.definition.relations import KEEP, ROWS_MAX, Join, Lookup, Window

__all__ = ["RELATION_READERS"]


def _window(body: Body, beside: Mapping[str, Any], step: dict[str, Any]) -> Window:
    known = ("time", "size", "every", "gap", "by", "delay", "aggregates")
    fields = body.fields(*known, needs=("time", "aggregates"))
    intervals = {name: body.text(fields, name) for name in ("size", "every", "gap", "delay")}
    aggregates = fields.get("aggregates") or {}
    if not isinstance(aggregates, Mapping):
        body.wrong("aggregates: expected a mapping of names and expressions", "aggregates")
        aggregates = {}
    return Window(
        body.text(fields, "time", ""),
        body.pairs(aggregates, "aggregates"),
        by=body.names(fields["by"], "by") if fields.get("by") else (),
        **intervals,
        **step,
    )


def _join(body: Body, beside: Mapping[str, Any], step: dict[str, Any]) -> Join:
    known = ("with", "keys", "kind", "time", "before", "after", "prefix")
    fields = body.fields(*known, needs=("with", "keys"))
    return Join(
        body.text(fields, "with", ""),
        body.pairs(fields["keys"], "keys") if fields.get("keys") else {},
        kind=body.text(fields, "kind", "inner").lower(),
        time=body.pairs(fields["time"], "time") if fields.get("time") else {},
        before=body.text(fields, "before"),
        after=body.text(fields, "after"),
        prefix=body.text(fields, "prefix", ""),
        **step,
    )


def _lookup(body: Body, beside: Mapping[str, Any], step: dict[str, Any]) -> Lookup:
    known = ("topic", "key", "schema", "columns", "prefix", "missing", "maxRows")
    fields = body.fields(*known, needs=("topic", "key", "schema"))
    rows_max = body.number(fields, "maxRows")
    return Lookup(
        body.text(fields, "topic", ""),
        body.text(fields, "key", ""),
        body.text(fields, "schema", ""),
        columns=body.names(fields["columns"], "columns") if fields.get("columns") else (),
        prefix=body.text(fields, "prefix", ""),
        missing=body.text(fields, "missing", KEEP),
        rows_max=ROWS_MAX if rows_max is None else rows_max,
        **step,
    )


RELATION_READERS: dict[
    str, Callable[[Body, Mapping[str, Any], dict[str, Any]], Window | Join | Lookup]
] = {"window": _window, "join": _join, "lookup": _lookup}
