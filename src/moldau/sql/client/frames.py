"""Rows as DataFrames of pandas and Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from moldau.data.sql_types import ArrayType, BaseType, DecimalType, MapType, SqlType, StructType
from moldau.data.sql_types import parse as parse_type
from moldau.installation import pip_install
from moldau.sql.client.errors import NotSupportedError

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["pandas_frame", "spark_frame"]

Columns = Sequence[tuple[str, str]]
#: Types that may be missing: numbers stay numbers beside NULL.
_PANDAS: Final[dict[SqlType, str]] = {
    BaseType.BOOLEAN: "boolean",
    BaseType.INTEGER: "Int32",
    BaseType.BIGINT: "Int64",
    BaseType.DOUBLE: "Float64",
    BaseType.STRING: "string",
    BaseType.TIMESTAMP: "datetime64[ms, UTC]",
}


def pandas_frame(columns: Columns, rows: Sequence[tuple[Any, ...]]) -> pandas.DataFrame:
    try:
        import pandas
    except ImportError:
        raise NotSupportedError("pandas is not installed: pip install pandas") from None
    made = {}
    for index, (_, shown) in enumerate(columns):
        values = [row[index] for row in rows]
        kind = _PANDAS.get(parse_type(shown), "object")
        made[index] = pandas.Series(values, dtype=kind)
    frame = pandas.DataFrame(made)
    # Set afterwards: a query may have two columns of one name.
    frame.columns = pandas.Index([name for name, _ in columns])
    return frame


def spark_frame(
    session: SparkSession, columns: Columns, rows: Sequence[tuple[Any, ...]]
) -> DataFrame:
    try:
        from pyspark.sql import types
    except ImportError:
        raise NotSupportedError(f"pyspark is not installed: {pip_install('spark')}") from None
    fields = [
        types.StructField(name, _spark_type(parse_type(shown)), True) for name, shown in columns
    ]
    return session.createDataFrame(list(rows), types.StructType(fields))


def _spark_type(kind: SqlType) -> Any:
    from pyspark.sql import types

    match kind:
        case DecimalType():
            if kind.precision > 38:
                raise NotSupportedError(f"Spark's decimals have 38 digits at most, not {kind}")
            return types.DecimalType(kind.precision, kind.scale)
        case ArrayType():
            return types.ArrayType(_spark_type(kind.item), True)
        case MapType():
            return types.MapType(types.StringType(), _spark_type(kind.value), True)
        case StructType():
            return types.StructType(
                [types.StructField(name, _spark_type(each), True) for name, each in kind.fields]
            )
    return {
        BaseType.BOOLEAN: types.BooleanType,
        BaseType.INTEGER: types.IntegerType,
        BaseType.BIGINT: types.LongType,
        BaseType.DOUBLE: types.DoubleType,
        BaseType.STRING: types.StringType,
        BaseType.BYTES: types.BinaryType,
        BaseType.DATE: types.DateType,
        BaseType.TIME: types.TimeType,
        BaseType.TIMESTAMP: types.TimestampType,
    }[kind]()
