"""Values read with another version of their schema, as Connect's SchemaProjector does."""

from __future__ import annotations

from typing import Any

from moldau.data.errors import SchemaProjectorError
from moldau.data.schema import Schema, Type
from moldau.data.struct import Struct

#: A number may become one of a type to the right.
_WIDENING = [Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64]
_FLOATS = (Type.FLOAT32, Type.FLOAT64)


def project(source: Schema, value: Any, target: Schema) -> Any:
    """A value of schema `source` as one of `target`.

    Versions are not compared: a caller that wants only the newer one decides so itself.
    """
    _check_maybe_compatible(source, target)
    if source.optional and not target.optional:
        if target.default is None:
            raise SchemaProjectorError(
                "Writer schema is optional, however, target schema does not provide a default "
                "value."
            )
        if value is None:
            return target.default
    return None if value is None else _project_present(source, value, target)


def _project_present(source: Schema, value: Any, target: Schema) -> Any:
    match target.type:
        case Type.STRUCT:
            return _project_struct(source, value, target)
        case Type.ARRAY:
            return [project(source.items, item, target.items) for item in value]
        case Type.MAP:
            return {
                project(source.keys, key, target.keys): project(source.items, item, target.items)
                for key, item in value.items()
            }
        case Type.FLOAT32 | Type.FLOAT64 if source.type not in _FLOATS:
            return float(value)
        case _:
            return value


def _project_struct(source: Schema, value: Struct, target: Schema) -> Struct:
    projected = Struct(target)
    for field in target.fields:
        before = source.field(field.name)
        if before is not None:
            try:
                item = project(before.schema, value.get(field.name), field.schema)
            except SchemaProjectorError as error:
                raise SchemaProjectorError(f"Error projecting {field.name}: {error}") from error
            projected.put(field.name, item)
        elif field.schema.optional:
            continue
        elif field.schema.default is not None:
            projected.put(field.name, field.schema.default)
        else:
            raise SchemaProjectorError(
                f"Required field `{field.name}` is missing from source schema: {source}"
            )
    return projected


def _check_maybe_compatible(source: Schema, target: Schema) -> None:
    if source.type is not target.type and not _is_promotable(source.type, target.type):
        raise SchemaProjectorError(
            f"Schema type mismatch. source type: {source.type.name} and "
            f"target type: {target.type.name}"
        )
    if source.name != target.name:
        raise SchemaProjectorError(
            f"Schema name mismatch. source name: {source.name} and target name: {target.name}"
        )
    if source.parameters != target.parameters:
        raise SchemaProjectorError(
            f"Schema parameters not equal. source parameters: {dict(source.parameters)} and "
            f"target parameters: {dict(target.parameters)}"
        )


def _is_promotable(source: Type, target: Type) -> bool:
    return (
        source in _WIDENING
        and target in _WIDENING
        and _WIDENING.index(source) <= _WIDENING.index(target)
    )
