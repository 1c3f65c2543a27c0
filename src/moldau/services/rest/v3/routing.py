"""Routes of API v3: under /v3 and, for clients of Confluent Cloud's paths, under /kafka/v3."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from moldau.http.machine.routes import Parameter, Route
from moldau.http.request import Request
from moldau.services.rest.machine import bodies
from moldau.services.rest.machine.errors import invalid_payload

__all__ = ["both_prefixes", "object_body", "resource", "v3"]

CLUSTER: Final = "/clusters/{cluster_id}"


def resource(name: str) -> dict[str, Any]:
    """A reference to a schema of the document."""
    return {"$ref": f"#/components/schemas/{name}"}


def v3(
    method: str,
    path: str,
    handler: Any,
    summary: str,
    *,
    tag: str,
    answer: str | None = None,
    status: int | None = None,
    body: str | None = None,
    parameters: tuple[Parameter, ...] = (),
) -> Route:
    """`answer` and `body` name schemas; without an answer it is 204."""
    found = status or (200 if answer is not None else 204)
    responses: Mapping[int, Mapping[str, Any] | None] = {
        found: resource(answer) if answer is not None else None
    }
    return Route(
        method=method,
        path=path,
        handler=handler,
        summary=summary,
        tag=f"v3 {tag}",
        consumes=("application/json",) if body is not None else (),
        body=resource(body) if body is not None else None,
        parameters=parameters,
        responses=responses,
    )


def both_prefixes(routes: Iterable[Route]) -> list[Route]:
    found = []
    for each in routes:
        found.append(replace(each, path=f"/v3{each.path}"))
        found.append(replace(each, path=f"/kafka/v3{each.path}", hidden=True))
    return found


async def object_body(
    request: Request, missing: str = "Null input provided. Data is required."
) -> Mapping[str, Any]:
    """Raises HttpError; `missing` says what a request without a body lacks."""
    if (await request.body()).strip() in (b"", b"null"):
        raise invalid_payload(missing)
    return bodies.mapping(await request.json())
