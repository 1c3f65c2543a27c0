"""Steps that change the shape of rows, as Spark's expressions.

Bad records pass all of them but `deduplicate`: no step loses one, and none becomes several.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moldau.pipelines.build.letters import HEADERS_TYPE
from moldau.pipelines.build.machine.names import HEADERS, METADATA
from moldau.pipelines.build.machine.sql_text import ERROR
from moldau.pipelines.build.records import TRANSFORMATION, error, no_error, quoted
from moldau.pipelines.definition.model import Cast
from moldau.pipelines.definition.transforms import (
    HASH,
    PARTIAL,
    ColumnsToHeaders,
    Deduplicate,
    Explode,
    Flatten,
    HeadersToColumns,
    Mask,
    MaskRule,
    redacted,
)
from moldau.pipelines.errors import PipelineError

__all__ = [
    "cast",
    "deduplicated",
    "exploded",
    "flattened",
    "masked",
    "with_columns",
    "with_headers",
]

_POSITION = "__position"
_NESTED = ("struct", "array", "map")


def flattened(step: Flatten, frame: Any) -> Any:
    """The frame with a column for each field of its structs."""
    from pyspark.sql.types import StructType

    wanted = set(step.columns)
    made: list[Any] = []
    names: list[str] = []

    def add(column: Any, name: str, kind: Any, level: int) -> None:
        deeper = step.depth is None or level < step.depth
        if level == 0 and (name in (*METADATA, ERROR) or (wanted and name not in wanted)):
            deeper = False
        if not deeper or not isinstance(kind, StructType):
            made.append(column.alias(name))
            names.append(name)
            return
        for field in kind.fields:
            inner = f"{name}{step.separator}{field.name}"
            add(column[field.name], inner, field.dataType, level + 1)

    for field in frame.schema.fields:
        if field.name in wanted and not isinstance(field.dataType, StructType):
            raise _wrong(step, f"column {field.name!r} is no struct, but {_shown(field.dataType)}")
        add(quoted(field.name), field.name, field.dataType, 0)
    _refuse_twice(step, names)
    return frame.select(*made)


def masked(step: Mask, frame: Any) -> Any:
    from pyspark.sql import functions as F

    kinds = {field.name: field.dataType for field in frame.schema.fields}
    changed: dict[str, Any] = {}
    for path, rule in step.rules().items():
        if path in kinds:
            changed[path] = _hidden(quoted(path), kinds[path], rule)
            continue
        name, *rest = path.split(".")
        column, kind = quoted(name), kinds.get(name)
        for part in rest:
            kind = _field_type(step, kind, name, part)
            column = column[part]
        inner = ".".join(f"`{part}`" for part in rest)
        whole = changed.get(name, quoted(name))
        # A struct that is null stays so.
        with_field = whole.withField(inner, _hidden(column, kind, rule))
        changed[name] = F.when(quoted(name).isNotNull(), with_field)
    return frame.withColumns(changed)


def _field_type(step: Mask, kind: Any, name: str, part: str) -> Any:
    from pyspark.sql.types import StructType

    if not isinstance(kind, StructType):
        raise _wrong(step, f"there is no struct {name!r} with a field {part!r}")
    found = next((one for one in kind.fields if one.name.lower() == part.lower()), None)
    if found is None:
        raise _wrong(step, f"{name!r} has no field {part!r}; it has {', '.join(kind.names)}")
    return found.dataType


def _hidden(column: Any, kind: Any, rule: MaskRule) -> Any:
    from pyspark.sql import functions as F

    name = kind.typeName()
    if rule.how == HASH:
        size = int(rule.algorithm.removeprefix("sha"))
        salt, value = F.lit(rule.salt), _text(column, name)
        if name == "binary":
            salt, value = salt.cast("binary"), column
        return F.sha2(F.concat(salt, value), size)
    if rule.how == PARTIAL:
        return _partly(_text(column, name), rule)
    if name == "string" or rule.replacement is not None:
        return F.when(column.isNotNull(), F.lit(redacted(rule)).cast(kind))
    return F.lit(None).cast(kind)


def _text(column: Any, kind: str) -> Any:
    from pyspark.sql import functions as F

    return F.to_json(column) if kind in _NESTED else column.cast("string")


def _partly(text: Any, rule: MaskRule) -> Any:
    """A text that is too short for what is shown of it is hidden as a whole."""
    from pyspark.sql import functions as F

    size = F.length(text)
    shown = rule.first + rule.last
    hidden = F.concat(
        F.substring(text, 1, rule.first),
        F.repeat(F.lit(rule.sign), size - shown),
        F.substring(text, -rule.last, rule.last) if rule.last else F.lit(""),
    )
    return F.when(size > shown, hidden).otherwise(F.repeat(F.lit(rule.sign), size))


def cast(step: Cast, frame: Any) -> Any:
    """The frame with columns cast to other types; `__error` names values that cannot be."""
    from pyspark.sql import functions as F

    made = {name: F.col(f"`{name}`").try_cast(kind) for name, kind in step.columns.items()}
    wrong = [
        F.when(
            F.col(f"`{name}`").isNotNull() & made[name].isNull(),
            F.concat(
                F.lit(f"column {name!r} is no {kind.upper()}: "),
                F.substring(F.col(f"`{name}`").cast("string"), 1, 100),
            ),
        )
        for name, kind in step.columns.items()
    ]
    message = F.concat_ws("; ", *wrong)
    reason = error(TRANSFORMATION, "cast", "CastError", message)
    known = F.col(ERROR) if ERROR in frame.columns else no_error()
    marked = F.when(known.isNull() & (message != ""), reason).otherwise(known)
    # The verdict is on the values before they are cast, so it is fixed first.
    rows = frame.withColumn("__marked", marked).withColumns(made)
    return rows.drop(ERROR).withColumnRenamed("__marked", ERROR)


def exploded(step: Explode, frame: Any) -> Any:
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType

    kind = next(one.dataType for one in frame.schema.fields if one.name == step.column)
    if not isinstance(kind, ArrayType | MapType):
        raise _wrong(step, f"column {step.column!r} is neither array nor map, but {_shown(kind)}")
    own = (step.column,) if isinstance(kind, ArrayType) else ("key", "value")
    if step.into and len(step.into) != len(own):
        raise _wrong(step, "as: one name for an array, two for a map")
    names = step.into or own
    items, is_tagged = quoted(step.column), ERROR in frame.columns
    if is_tagged:
        items = F.when(quoted(ERROR).isNull(), items)
    left = [name for name in frame.columns if name != step.column]
    _refuse_twice(step, [*left, *names, *([step.position] if step.position else ())])
    rows = frame.select(
        *[quoted(name) for name in left], F.posexplode_outer(items).alias(_POSITION, *names)
    )
    if not step.outer:
        # A row without items has no position; bad records go on.
        keeps = quoted(_POSITION).isNotNull()
        rows = rows.where(keeps | quoted(ERROR).isNotNull() if is_tagged else keeps)
    if step.position is None:
        return rows.drop(_POSITION)
    return rows.withColumnRenamed(_POSITION, step.position)


def with_columns(step: HeadersToColumns, frame: Any) -> Any:
    """The frame with columns for headers."""
    from pyspark.sql import functions as F

    if HEADERS not in frame.columns:
        raise _wrong(step, "rows have no headers here; it must come before SQL that leaves them")
    _refuse_twice(step, [*frame.columns, *step.columns])

    def value(header: str) -> Any:
        named = F.filter(quoted(HEADERS), lambda one: one["key"] == header)
        return F.try_element_at(named, F.lit(-1))["value"].cast("string")

    return frame.withColumns({name: value(header) for name, header in step.columns.items()})


def with_headers(step: ColumnsToHeaders, frame: Any) -> Any:
    """The frame with headers for columns; a header of the same name is replaced."""
    from pyspark.sql import functions as F

    kinds = {field.name: field.dataType.typeName() for field in frame.schema.fields}

    def value(name: str) -> Any:
        return quoted(name) if kinds[name] == "binary" else _text(quoted(name), kinds[name])

    made = F.array(
        *[
            F.struct(F.lit(header).alias("key"), value(name).cast("binary").alias("value"))
            for name, header in step.columns.items()
        ]
    ).cast(HEADERS_TYPE)
    made = F.filter(made, lambda one: one["value"].isNotNull())
    if HEADERS in frame.columns:
        names = list(step.columns.values())
        others = F.filter(quoted(HEADERS).cast(HEADERS_TYPE), lambda one: ~one["key"].isin(names))
        made = F.concat(F.coalesce(others, F.array().cast(HEADERS_TYPE)), made)
    result = frame.withColumn(HEADERS, made)
    return result if step.keep else result.drop(*step.columns)


def deduplicated(step: Deduplicate, frame: Any) -> Any:
    if step.watermark is not None:
        frame = frame.withWatermark(step.watermark.column, step.watermark.delay)
    return frame.dropDuplicatesWithinWatermark(list(step.keys))


def _refuse_twice(step: Any, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise _wrong(step, f"two columns would be named {name!r}")
        seen.add(name.lower())


def _shown(kind: Any) -> str:
    return str(kind.simpleString()).upper()


def _wrong(step: Any, message: str) -> PipelineError:
    where = str(step.place) if step.place else None
    return PipelineError(f"{step.KIND}: {message}", where=where)
