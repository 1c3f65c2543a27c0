"""What runs in Spark's Python workers for a row step, and for dead letters that cannot wait.

A row step's function is called once for each good row, and whatever it does with that row
(returns, raises, returns what the schema cannot hold) is decided by that one call: a row comes out
either good or marked as bad, never both. Rows that were bad before pass by.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from moldau.pipelines.build.machine.sql_text import ERROR
from moldau.pipelines.build.records import TRANSFORMATION
from moldau.pipelines.definition.code import Code
from moldau.pipelines.definition.model import FAIL, IGNORE
from moldau.pipelines.machine.explaining import ROW_STEP, is_not_the_users

TAG = "tag"
_TEXT_SIZE_MAX = 8 * 1024
_ROWS_PER_BATCH = 10_000


class RowStepError(Exception):
    """A row step failed and bad records have no destination: the query ends here."""


@dataclass(frozen=True)
class RowRunner:
    """Calls the user's function; an argument of `mapInArrow`, so it is sent to the workers."""

    code: Mapping[str, Any]
    args: Mapping[str, Any]
    on_error: str
    """`tag`, `fail` or `ignore`."""
    schema_json: str
    """The result's schema: the step's own columns, then those that are carried."""
    columns: tuple[str, ...]
    carried: tuple[str, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        schema = _arrow_schema(self.schema_json)
        function = Code.from_json(self.code).load()
        maker = _Batches(pa, schema, self)
        for batch in batches:
            for row in _rows(batch):
                self._one(function, row, maker)
                if maker.size >= _ROWS_PER_BATCH:
                    yield maker.take()
        yield maker.take()

    def _one(self, function: Callable[..., Any], row: dict[str, Any], maker: _Batches) -> None:
        along = {name: row[name] for name in self.carried}
        if row.get(ERROR) is not None:
            maker.add({}, along)
            return
        row.pop(ERROR, None)
        before = frozenset(row)
        try:
            results = _as_rows(function(row, **self.args))
            made = [maker.checked(result, before) for result in results]
        except Exception as error:
            self._failed(error, along, maker)
            return
        for one in made:
            maker.add(one, along)

    def _failed(self, error: Exception, along: dict[str, Any], maker: _Batches) -> None:
        if self.on_error == IGNORE:
            return
        if self.on_error == FAIL:
            at = [along.get(name) for name in ("_topic", "_partition", "_offset")]
            record = f" (record {at[0]}-{at[1]} at offset {at[2]})" if at[0] else ""
            message = f"{_raised_at(error, self.code)}: {_class_name(error)}: {error}"
            raise RowStepError(
                f"{ROW_STEP}{' '.join(message.split())[:_TEXT_SIZE_MAX]}{record}"
            ) from error
        below = error.__traceback__.tb_next if error.__traceback__ else None  # without our own call
        trace = "".join(traceback.format_exception(type(error), error, below))
        along[ERROR] = {
            "stage": TRANSFORMATION,
            "class": str(Code.from_json(self.code)),
            "exception": _class_name(error),
            "message": str(error)[:_TEXT_SIZE_MAX],
            "stacktrace": trace[-_TEXT_SIZE_MAX:],
        }
        maker.add({}, along)


class _Batches:
    """Collects rows and makes Arrow batches of them."""

    def __init__(self, pa: Any, schema: Any, runner: RowRunner) -> None:
        self._pa = pa
        self._schema = schema
        self._types = {name: schema.field(name).type for name in runner.columns}
        self._values: dict[str, list[Any]] = {name: [] for name in schema.names}
        self.size = 0

    def checked(self, row: Mapping[str, Any], before: frozenset[str]) -> dict[str, Any]:
        """The row's values, if they are of the schema; what is not raises here, for this row.

        Columns of the row before that the schema leaves out may be there; new ones may not, for
        they would be lost without a word.
        """
        unknown = [name for name in row if name not in self._types and name not in before]
        if unknown:
            raise ValueError(
                f"the row has {unknown[0]!r}, which is no column of the step's schema "
                f"({', '.join(self._types)}); declare it with schema:"
            )
        for name, kind in self._types.items():
            value = row.get(name)
            if value is None:
                continue
            try:
                self._pa.scalar(value, type=kind)
            except (self._pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                raise TypeError(
                    f"column {name!r} must be {kind}, got {value!r:.100}: {error}"
                ) from None
        return {name: row.get(name) for name in self._types}

    def add(self, row: Mapping[str, Any], along: Mapping[str, Any]) -> None:
        for name, values in self._values.items():
            values.append(along[name] if name in along and name not in row else row.get(name))
        self.size += 1

    def take(self) -> Any:
        arrays = [
            self._pa.array(self._values[field.name], type=field.type) for field in self._schema
        ]
        self._values = {name: [] for name in self._schema.names}
        self.size = 0
        return self._pa.RecordBatch.from_arrays(arrays, schema=self._schema)


@dataclass(frozen=True)
class LetterSender:
    """Sends the rows' dead letters to their topic and lets the good rows through.

    The letters are acknowledged before the task ends, so before Spark counts the batch as done: a
    task that is tried again may send one again, but none is lost.
    """

    config: Mapping[str, str]
    topic: str
    letter: str

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        from moldau.spark.columns.writing import ColumnWriter

        writer = None
        try:
            for batch in batches:
                letters = batch.column(self.letter)
                if letters.null_count < len(letters):
                    if writer is None:
                        writer = ColumnWriter(self.config, default_topic=self.topic)
                    writer.write(_as_batch(letters.filter(letters.is_valid())))
                good = batch.filter(letters.is_null())
                yield good.drop_columns([self.letter])
            if writer is not None:
                writer.flush()
        finally:
            if writer is not None:
                writer.close()


def _as_batch(structs: Any) -> Any:
    import pyarrow as pa

    names = [field.name for field in structs.type]
    return pa.RecordBatch.from_arrays(structs.flatten(), names=names)


def _rows(batch: Any) -> Iterator[dict[str, Any]]:
    """Rows as dicts; maps become dicts too, which Arrow gives as pairs."""
    names = batch.schema.names
    columns = [
        [_plain(value, field.type) for value in column.to_pylist()]
        if _has_map(field.type)
        else column.to_pylist()
        for column, field in zip(batch.columns, batch.schema, strict=True)
    ]
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def _has_map(kind: Any) -> bool:
    return str(kind).startswith("map<") or "map<" in str(kind)


def _plain(value: Any, kind: Any) -> Any:
    import pyarrow.types as types

    if value is None:
        return None
    if types.is_map(kind):
        return {key: _plain(one, kind.item_type) for key, one in value}
    if types.is_list(kind) or types.is_large_list(kind):
        return [_plain(one, kind.value_type) for one in value]
    if types.is_struct(kind):
        return {field.name: _plain(value[field.name], field.type) for field in kind}
    return value


def _as_rows(result: Any) -> Sequence[Mapping[str, Any]]:
    """A function returns a row, several or None; a row is a mapping or Spark's Row."""
    if result is None:
        return ()
    if isinstance(result, Mapping):
        return (result,)
    if hasattr(result, "asDict"):
        return (result.asDict(recursive=True),)
    if isinstance(result, list | tuple | Iterator):
        return [row for one in result for row in _as_rows(one)]
    raise TypeError(
        f"a row step returns a dict, a list of dicts or None, not {type(result).__name__}"
    )


def _class_name(error: Exception) -> str:
    kind = type(error)
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def _raised_at(error: Exception, code: Mapping[str, Any]) -> str:
    """`steps.py:34: in check`: the last line of the user's own, seen from our call."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not is_not_the_users(frame.filename)]
    if own:
        return f"{PurePath(own[-1].filename).name}:{own[-1].lineno}: in {own[-1].name}"
    place = Code.from_json(code).place
    return f"{place or 'row:0'}: in {code['function']}"


def _arrow_schema(schema_json: str) -> Any:
    import json

    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    return to_arrow_schema(StructType.fromJson(json.loads(schema_json)), timezone="UTC")
