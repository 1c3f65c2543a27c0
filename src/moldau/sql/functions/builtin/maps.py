"""Maps, lambdas over arrays and maps, and functions for NULL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.sql.functions.declarations import overload, scalar
from moldau.sql.functions.errors import FunctionError


def _as_map(keys: list[str], values: list[Any]) -> dict[str, Any]:
    found = dict.fromkeys(keys)
    found.update(zip(keys, values, strict=False))
    return found


def _map_union(left: dict[str, Any] | None, right: dict[str, Any] | None) -> Any:
    if left is None and right is None:
        return None
    return {**(left or {}), **(right or {})}


def _filter_map(values: dict[Any, Any], keep: Callable[[Any, Any], bool]) -> dict[Any, Any]:
    kept = {key: value for key, value in values.items() if keep(key, value)}
    return _without_nulls(kept)


def _without_nulls(values: dict[Any, Any]) -> dict[Any, Any]:
    # ksqlDB collects into a map that cannot hold NULL: the whole call fails.
    if any(each is None for each in values.values()):
        raise FunctionError("a map made by a lambda cannot hold NULL")
    return values


def _transform_map(
    values: dict[Any, Any],
    new_key: Callable[[Any, Any], Any],
    new_value: Callable[[Any, Any], Any],
) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for key, value in values.items():
        name = new_key(key, value)
        if name in made:
            raise FunctionError(f"Duplicate key {name}")
        made[name] = new_value(key, value)
    return _without_nulls(made)


def _reduce_array(values: list[Any] | None, state: Any, step: Callable[[Any, Any], Any]) -> Any:
    if state is None:
        return None
    for each in values or ():
        state = step(state, each)
    return state


def _reduce_map(
    values: dict[Any, Any] | None, state: Any, step: Callable[[Any, Any, Any], Any]
) -> Any:
    if state is None:
        return None
    for key, value in (values or {}).items():
        state = step(state, key, value)
    return state


def _coalesce(*values: Any) -> Any:
    for each in values:
        if each is not None:
            return each
    return None


FUNCTIONS = [
    scalar(
        "AS_MAP",
        "MAP",
        "A map of keys from one array to values from another.",
        "AS_MAP(ARRAY['a'], ARRAY[1]) -> {a=1}",
        overload("(ARRAY<STRING> keys, ARRAY<T> values) -> MAP<STRING, T>", _as_map),
    ),
    scalar(
        "map_keys",
        "MAP",
        "The keys of a map.",
        "MAP_KEYS(m)",
        overload("(MAP<STRING, T> input) -> ARRAY<STRING>", list),
    ),
    scalar(
        "map_union",
        "MAP",
        "The entries of two maps; those of the second win.",
        "MAP_UNION(m1, m2)",
        overload(
            "(MAP<STRING, T> map1, MAP<STRING, T> map2) -> MAP<STRING, T>", _map_union, nulls=True
        ),
    ),
    scalar(
        "map_values",
        "MAP",
        "The values of a map.",
        "MAP_VALUES(m)",
        overload("(MAP<STRING, T> input) -> ARRAY<T>", lambda values: list(values.values())),
    ),
    scalar(
        "filter",
        "LAMBDA",
        "The elements or entries that a lambda is true for.",
        "FILTER(ARRAY[1, 2], x => x > 1) -> [2]",
        overload(
            "(ARRAY<T> array, LAMBDA(T)=>BOOLEAN function) -> ARRAY<T>",
            lambda values, keep: [each for each in values if keep(each)],
        ),
        overload("(MAP<K, V> map, LAMBDA(K, V)=>BOOLEAN biFunction) -> MAP<K, V>", _filter_map),
    ),
    scalar(
        "reduce",
        "LAMBDA",
        "A state that a lambda changes with each element or entry.",
        "REDUCE(ARRAY[1, 2], 0, (s, x) => s + x) -> 3",
        overload(
            "(ARRAY<T> list, S initialState, LAMBDA(S, T)=>S biFunction) -> S",
            _reduce_array,
            nulls=True,
        ),
        overload(
            "(MAP<K, V> map, S initialState, LAMBDA(S, K, V)=>S triFunction) -> S",
            _reduce_map,
            nulls=True,
        ),
    ),
    scalar(
        "transform",
        "LAMBDA",
        "What lambdas make of each element or entry.",
        "TRANSFORM(ARRAY[1, 2], x => x * 2) -> [2, 4]",
        overload(
            "(ARRAY<T> array, LAMBDA(T)=>R function) -> ARRAY<R>",
            lambda values, make: [make(each) for each in values],
        ),
        overload(
            "(MAP<K, V> map, LAMBDA(K, V)=>R biFunction1, LAMBDA(K, V)=>T biFunction2) "
            "-> MAP<R, T>",
            _transform_map,
        ),
    ),
    scalar(
        "COALESCE",
        "CONDITIONAL",
        "The first argument that is not NULL.",
        "COALESCE(a, b, 0)",
        overload("(T first, T... others) -> T", _coalesce, nulls=True),
    ),
    scalar(
        "IFNULL",
        "CONDITIONAL",
        "The first argument, or the second one if that is NULL.",
        "IFNULL(a, 0)",
        overload("(T expression, T altValue) -> T", _coalesce, nulls=True),
    ),
    scalar(
        "NULLIF",
        "CONDITIONAL",
        "NULL if the arguments are equal, the first one otherwise.",
        "NULLIF(a, 0)",
        overload(
            "(T expr1, T expr2) -> T",
            lambda one, other: None if one == other else one,
            nulls=True,
        ),
    ),
    scalar(
        "AS_VALUE",
        "OTHER",
        "A copy of a key column for the value, in the projection of a query only.",
        "AS_VALUE(k)",
        overload("(T keyColumn) -> T", lambda value: value, nulls=True),
    ),
]
