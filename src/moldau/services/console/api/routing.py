"""How a route of the API is declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moldau.http.machine.routes import Parameter, Route

__all__ = ["CLUSTER", "NDJSON", "PAGING", "api", "fields", "number", "text"]

CLUSTER: Final = "/clusters/{cluster}"
NDJSON: Final = "application/x-ndjson"


def api(
    method: str,
    path: str,
    handler: Any,
    summary: str,
    *,
    tag: str,
    body: Mapping[str, Any] | None = None,
    parameters: tuple[Parameter, ...] = (),
    public: bool = False,
    produces: tuple[str, ...] = ("application/json",),
    timeout_ms: int | None = None,
    status: int = 200,
) -> Route:
    """A route below /api. `body` is JSON Schema, for example of `fields`."""
    return Route(
        method=method,
        path=f"/api{path}",
        handler=handler,
        summary=summary,
        tag=tag,
        consumes=("application/json",) if body is not None else (),
        body=body,
        parameters=parameters,
        responses={status: {"type": "object"} if status == 200 else None},
        public=public,
        produces=produces,
        timeout_ms=timeout_ms,
    )


def fields(*required: str, **kinds: str) -> dict[str, Any]:
    """A JSON object: the types of its fields, and which must be there."""
    return {
        "type": "object",
        "required": list(required),
        "properties": {
            name: {} if kind == "any" else {"type": kind} for name, kind in kinds.items()
        },
    }


def text(name: str, description: str) -> Parameter:
    return Parameter(name=name, description=description)


def number(name: str, description: str) -> Parameter:
    return Parameter(name=name, description=description, schema={"type": "integer"})


PAGING: Final = (
    text("search", "part of the name"),
    number("page", "from 0"),
    number("size", "rows on a page, at most 500"),
    text("sort", "a column; with a minus in front of it, from the largest"),
)
