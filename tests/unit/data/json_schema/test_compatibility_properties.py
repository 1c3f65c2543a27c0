"""What a compatible change means, for small schemas that are made at random.

The comparison is Confluent's, which does not look at everything: conditions, the schemas of
contains, propertyNames and pattern properties, names that are required and no properties. Schemas
here do without those.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from moldau.data.json_schema import JsonSchema, JsonSchemaLanguage, JsonSchemaValidator
from support.examples import examples

MODERN = "https://json-schema.org/draft/2020-12/schema"
NAMES = st.sampled_from(["a", "b", "c"])
BOUNDS = st.integers(0, 3)


def some(**keywords: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=keywords)


def typed(name: str, keywords: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[Any]:
    return keywords.map(lambda found: {"type": name, **found})


LEAVES = st.one_of(
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
    typed("string", some(minLength=BOUNDS, maxLength=BOUNDS)),
    typed("integer", some(minimum=BOUNDS, maximum=BOUNDS)),
    typed("number", some(minimum=BOUNDS, multipleOf=st.sampled_from([1, 2]))),
    st.lists(st.sampled_from([0, 1, "a", "ab"]), min_size=1, unique=True).map(
        lambda values: {"enum": values}
    ),
)


def only_properties_required(keywords: dict[str, Any]) -> dict[str, Any]:
    if "required" in keywords:
        keywords["required"] = [
            name for name in keywords["required"] if name in keywords.get("properties", {})
        ]
    return keywords


def branches(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        typed("array", some(items=inner, minItems=BOUNDS, maxItems=BOUNDS)),
        typed(
            "object",
            some(
                properties=st.dictionaries(NAMES, inner, max_size=3),
                required=st.lists(NAMES, unique=True, max_size=2),
                additionalProperties=st.booleans() | inner,
            ).map(only_properties_required),
        ),
        st.lists(inner, min_size=1, max_size=3).map(lambda found: {"anyOf": found}),
    )


SCHEMAS = st.recursive(LEAVES, branches, max_leaves=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 4) | st.sampled_from(["", "a", "ab", "abcd"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=4,
)


@st.composite
def changes(draw: st.DrawFn, depth: int = 2) -> tuple[Any, Any]:
    """A schema and a changed one, which is often compatible."""
    kind = draw(st.sampled_from(["leaf", "array", "object", "anyOf"] if depth else ["leaf"]))
    if kind == "leaf":
        old = draw(LEAVES)
        relaxed = {name: value for name, value in old.items() if draw(st.booleans())}
        return old, draw(st.sampled_from([old, {**old, "title": "x"}, relaxed]) | LEAVES)
    if kind == "array":
        old, new = draw(changes(depth - 1))
        return {"type": "array", "items": old}, {"type": "array", "items": new}
    pairs = draw(st.lists(changes(depth - 1), min_size=1, max_size=3))
    if kind == "anyOf":
        more = draw(st.lists(LEAVES, max_size=1))
        return {"anyOf": [old for old, _ in pairs]}, {"anyOf": more + [new for _, new in pairs]}
    olds = {name: old for name, (old, _) in zip("abc", pairs, strict=False)}
    news = {name: new for name, (_, new) in zip("abc", pairs, strict=False)}
    for properties in (olds, news):
        if draw(st.booleans()):
            properties.pop(draw(st.sampled_from(list(properties))))
    return _object(draw, olds), _object(draw, news)


def _object(draw: st.DrawFn, properties: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties}
    # A property that takes anything may be added to an open object even if it is required.
    required = [name for name in properties if properties[name] and draw(st.integers(0, 3)) == 0]
    rest = draw(st.sampled_from([None, True, False, {"type": "string"}]))
    return (
        schema | {"required": required} | ({} if rest is None else {"additionalProperties": rest})
    )


def parse(schema: Any, *, modern: bool = False) -> JsonSchema:
    return JsonSchemaLanguage().parse(
        json.dumps({"$schema": MODERN, **schema} if modern else schema)
    )


@settings(max_examples=examples(60), deadline=None)
@given(SCHEMAS, st.booleans())
def test_a_schema_is_compatible_with_itself(schema: Any, modern: bool) -> None:
    once, again = parse(schema, modern=modern), parse(schema, modern=modern)
    assert again.incompatibilities(once) == []
    assert once.normalized().incompatibilities(once) == []


@settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.filter_too_much]
)
@given(changes(), st.lists(VALUES, min_size=5, max_size=10))
def test_a_compatible_reader_takes_what_the_writer_could_write(
    change: tuple[Any, Any], values: list[Any]
) -> None:
    writer, reader = map(parse, change)
    assume(reader.incompatibilities(writer) == [])
    accepted = JsonSchemaValidator(reader)
    for value in filter(JsonSchemaValidator(writer).is_valid, values):
        assert accepted.problems(value) == []


@settings(max_examples=examples(60), deadline=None)
@given(SCHEMAS, SCHEMAS)
def test_what_is_compatible_is_compatible_leniently(old: Any, new: Any) -> None:
    writer, reader = parse(old), parse(new)
    if not reader.incompatibilities(writer):
        assert not reader.incompatibilities(writer, lenient=True)
