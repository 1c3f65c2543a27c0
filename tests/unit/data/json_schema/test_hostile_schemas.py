"""Whatever is sent as a schema: a schema or a SchemaError, and nothing else."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.data.errors import DataError
from moldau.data.json_schema import Draft, JsonSchema, JsonSchemaLanguage, JsonSchemaValidator
from moldau.data.json_schema.connect import schema_from_connect, schema_to_connect
from moldau.data.schema_language import ResolvedReference, SchemaError
from support.examples import examples

NAMES = st.sampled_from(["a", "b", "$id", "", "x/y"])
REFS = st.sampled_from(["#", "#/definitions/a", "#/$defs/b", "#a", "b.json", "b.json#/x", "a", ""])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["string", "object", "#", "[", *(each.value for each in Draft)]),
    st.text(max_size=3),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
_BY_VALUE: list[tuple[st.SearchStrategy[Any], list[str]]] = [
    (TYPES | st.lists(TYPES, max_size=3), ["type"]),
    (st.integers(0, 3), ["minLength", "maxLength", "minItems", "maxItems", "minProperties"]),
    (st.integers(0, 3), ["maxProperties", "minContains", "maxContains", "connect.index"]),
    (st.integers(1, 3) | st.just(0.5), ["minimum", "maximum", "exclusiveMinimum", "multipleOf"]),
    (st.sampled_from(["^a", "(?=a)b", "[", "\\p{Alpha}"]), ["pattern"]),
    (st.text(max_size=3), ["title", "description", "format", "$comment"]),
    (st.sampled_from(["a", "b", "http://example.com/a", "#a", ""]), ["$id", "id", "$anchor"]),
    (REFS, ["$ref", "$dynamicRef"]),
    (VALUES, ["const", "default", "x-more"]),
    (st.lists(VALUES, max_size=3), ["enum"]),
    (st.lists(NAMES, max_size=2), ["required"]),
    (st.booleans(), ["uniqueItems", "readOnly", "$recursiveAnchor"]),
    (st.sampled_from(["int8", "bytes", "map"]), ["connect.type"]),
    (st.dictionaries(NAMES, st.text(max_size=2), max_size=2), ["connect.parameters"]),
    (st.dictionaries(NAMES, st.lists(NAMES, max_size=2), max_size=2), ["dependentRequired"]),
]


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly schemas: now and then a keyword has a value of another type."""
    keywords = {name: values for values, names in _BY_VALUE for name in names}
    for name in ("not", "if", "then", "else", "items", "contains", "propertyNames"):
        keywords[name] = inner
    for name in ("additionalProperties", "unevaluatedItems", "unevaluatedProperties"):
        keywords[name] = st.booleans() | inner
    keywords["additionalItems"] = st.booleans() | inner
    for name in ("allOf", "anyOf", "oneOf", "prefixItems"):
        keywords[name] = st.lists(inner, max_size=3)
    for name in ("properties", "patternProperties", "dependentSchemas", "definitions", "$defs"):
        keywords[name] = st.dictionaries(NAMES, inner, max_size=3)
    keywords["dependencies"] = st.dictionaries(NAMES, inner | st.lists(NAMES), max_size=2)
    pairs = st.sampled_from(list(keywords)).flatmap(
        lambda name: st.tuples(st.just(name), keywords[name])
    )
    wrong = st.sampled_from(list(keywords)).flatmap(lambda name: st.tuples(st.just(name), VALUES))
    rarely = st.integers(0, 30).flatmap(lambda number: wrong if number == 30 else pairs)
    return st.lists(rarely, max_size=5).map(dict)


SCHEMAS = st.tuples(
    st.sampled_from([{}, *({"$schema": each.value} for each in Draft)]),
    st.recursive(st.just({}) | st.booleans(), schemas, max_leaves=8),
).map(lambda both: both[0] | both[1] if isinstance(both[1], dict) else both[1])


def parsed(document: Any, reference: Any) -> JsonSchema | None:
    references = [ResolvedReference("b.json", json.dumps(reference))]
    with contextlib.suppress(SchemaError):
        return JsonSchemaLanguage().parse(json.dumps(document), references)
    return None


@settings(max_examples=examples(300), deadline=None)
@given(SCHEMAS, SCHEMAS, VALUES)
def test_any_document_is_a_schema_or_an_error(old: Any, new: Any, value: Any) -> None:
    writer, reader = parsed(old, new), parsed(new, old)
    for schema in filter(None, (writer, reader)):
        assert (
            JsonSchemaLanguage().parse(schema.canonical_text, schema.references).canonical_text
            == schema.canonical_text
        )
        schema.normalized()
        with contextlib.suppress(SchemaError):
            JsonSchemaValidator(schema).problems(value)
        with contextlib.suppress(DataError):
            schema_from_connect(schema_to_connect(schema))
    if writer is not None and reader is not None:
        reader.incompatibilities(writer)
        writer.incompatibilities(writer)


@settings(max_examples=examples(200), deadline=None)
@given(st.text(max_size=30) | VALUES.map(json.dumps))
def test_any_text_is_a_schema_or_an_error(text: str) -> None:
    with contextlib.suppress(SchemaError):
        JsonSchemaLanguage().parse(text)
