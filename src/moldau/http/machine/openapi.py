"""The OpenAPI 3.0 document of a service, made from its routes: what is not served is not in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from moldau.http.machine.errors import phrase_of
from moldau.http.machine.media_types import parse_media_type
from moldau.http.machine.routes import Route

__all__ = ["openapi_document"]

_ERROR: Final = {
    "type": "object",
    "required": ["error_code", "message"],
    "properties": {
        "error_code": {"type": "integer", "format": "int32"},
        "message": {"type": "string", "nullable": True},
    },
}
_KINDS: Final[dict[str | None, dict[str, Any]]] = {
    None: {"type": "string"},
    "int": {"type": "integer", "format": "int32"},
    "long": {"type": "integer", "format": "int64"},
}


def openapi_document(
    routes: Iterable[Route],
    *,
    title: str,
    version: str,
    description: str = "",
    schemas: Mapping[str, Any] | None = None,
    security: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """`schemas` are what routes refer to with `#/components/schemas/...`."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        if not route.hidden:
            paths.setdefault(route.template, {})[route.method.lower()] = _operation(route)
    document: dict[str, Any] = {
        "openapi": "3.0.3",
        "info": {"title": title, "version": version, "description": description},
        "paths": paths,
        "components": {"schemas": {"Error": _ERROR, **(schemas or {})}},
    }
    if security:
        document["components"]["securitySchemes"] = dict(security)
        document["security"] = [{name: []} for name in security]
    return document


def _operation(route: Route) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": _KINDS[kind]}
        for name, kind in route.path_parameters
    ]
    parameters += [
        {
            "name": each.name,
            "in": "query",
            "required": each.required,
            "description": each.description,
            "schema": dict(each.schema),
        }
        for each in route.parameters
    ]
    operation: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "parameters": parameters,
        "responses": _responses(route),
    }
    if route.description:
        operation["description"] = route.description
    if route.tag:
        operation["tags"] = [route.tag]
    if route.public:
        operation["security"] = []
    if route.consumes:
        schema = dict(route.body or {})
        operation["requestBody"] = {
            "required": route.body_required,
            "content": {name: {"schema": schema} for name in _names(route.consumes)},
        }
    return operation


def _responses(route: Route) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status, schema in route.responses.items():
        answer: dict[str, Any] = {"description": phrase_of(status)}
        if status != 204:
            content = {"schema": dict(schema)} if schema else {}
            answer["content"] = dict.fromkeys(_names(route.produces), content)
        found[str(status)] = answer
    error = {"schema": {"$ref": "#/components/schemas/Error"}}
    found["default"] = {
        "description": "An error",
        "content": dict.fromkeys(_names(route.produces), error),
    }
    return found


def _names(types: Iterable[str]) -> list[str]:
    """Without weights."""
    return [found.name for found in map(parse_media_type, types) if found is not None]


def _operation_id(route: Route) -> str:
    words = "".join(char if char.isalnum() else " " for char in route.template).split()
    return route.method.lower() + "".join(word[0].upper() + word[1:] for word in words)
