"""Records of topics as rows: their formats, both ways, and what is wrong with bad ones.

Reading never fails because of a record. A value that is not of its format gives a row whose
`__error` says why; what becomes of such rows is decided elsewhere. A record without a value (a
tombstone) is not bad: its row has nulls only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from moldau.pipelines.build.machine.names import METADATA
from moldau.pipelines.build.machine.sql_text import ERROR
from moldau.pipelines.definition import Topic
from moldau.pipelines.errors import PipelineError

_CORRUPT = "__corrupt"
_MARKED = "__marked"
_SHOWN_SIZE_MAX = 100
VALUE_CONVERTER = "VALUE_CONVERTER"
TRANSFORMATION = "TRANSFORMATION"
"""Stages as Kafka Connect names them."""


def no_error() -> Any:
    from pyspark.sql import functions as F

    return F.lit(None).cast(
        "struct<stage: string, class: string, exception: string, message: string, "
        "stacktrace: string>"
    )


def error(stage: str, executing: str, exception: str, message: Any) -> Any:
    """The column value that marks a row as bad; `message` is a column."""
    from pyspark.sql import functions as F

    return F.struct(
        F.lit(stage).alias("stage"),
        F.lit(executing).alias("class"),
        F.lit(exception).alias("exception"),
        message.alias("message"),
        F.lit(None).cast("string").alias("stacktrace"),
    )


def marked(frame: Any, message: Any, executing: str, exception: str, *, tagged: bool) -> Any:
    """The frame with `__error` for good rows that have a message; bad ones stay as they are."""
    from pyspark.sql import functions as F

    known = F.col(ERROR) if tagged else no_error()
    reason = error(TRANSFORMATION, executing, exception, message)
    verdict = F.when(known.isNull() & message.isNotNull(), reason).otherwise(known)
    return frame.withColumn(_MARKED, verdict).drop(ERROR).withColumnRenamed(_MARKED, ERROR)


def parsed(spark: Any, frame: Any, source: Topic, *, keep_value: bool, base: str) -> Any:
    """The topic's records as rows of its schema, with metadata and `__error`."""
    from pyspark.sql import functions as F

    metadata = [
        F.col(name.removeprefix("_")).alias(name)
        for name in METADATA
        if name.removeprefix("_") in frame.columns and (name != "_value" or keep_value)
    ]
    if source.format == "binary":
        return frame.select("value", *metadata, no_error().alias(ERROR))
    if source.format == "string":
        text = F.try_validate_utf8(F.col("value").cast("string"))
        bad = F.col("value").isNotNull() & F.col("__text").isNull()
        reason = error(VALUE_CONVERTER, "string", "UnicodeDecodeError", _value_is("not UTF-8"))
        rows = frame.select(text.alias("__text"), *metadata, "value")
        return rows.select(
            F.col("__text").alias("value"),
            *[name for name in METADATA if name in rows.columns],
            F.when(bad, reason).otherwise(no_error()).alias(ERROR),
        )
    if source.format in ("avro", "protobuf", "json-schema"):
        return _from_binary_format(frame, source, metadata, base)
    return _from_text_format(spark, frame, source, metadata)


def _value_is(text: str) -> Any:
    from pyspark.sql import functions as F

    return F.lit(f"the value is {text}")


def _schema(spark: Any, source: Topic) -> Any:
    """The schema's columns; Spark itself reads the DDL."""
    from moldau.pipelines.machine.explaining import short

    try:
        schema = spark.createDataFrame([], str(source.schema)).schema
    except Exception as failure:
        found = short(failure)
        raise PipelineError(
            f"source: schema: {found}",
            where=str(source.place) if source.place else None,
            hint='columns as in CREATE TABLE, e.g. "id STRING, amount DOUBLE"',
            detail=str(failure),
        ) from None
    own = [field.name for field in schema.fields if field.name in METADATA]
    if own or not schema.fields:
        raise PipelineError(
            f"source: schema: {own[0]!r} is the name of a column that every record has"
            if own
            else "source: schema: has no columns",
            where=str(source.place) if source.place else None,
        )
    return schema


def _from_text_format(spark: Any, frame: Any, source: Topic, metadata: list[Any]) -> Any:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructType

    schema = _schema(spark, source)
    with_corrupt = StructType([*schema.fields]).add(_CORRUPT, StringType())
    options = {
        **{name: str(value) for name, value in source.options.items()},
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": _CORRUPT,
    }
    text = frame.select(
        "value",
        F.try_validate_utf8(F.col("value").cast("string")).alias("__text"),
        *metadata,
    )
    ddl = ", ".join(f"`{one.name}` {one.dataType.simpleString()}" for one in with_corrupt.fields)
    parse = F.from_json if source.format == "json" else F.from_csv
    rows = text.select("*", parse(F.col("__text"), ddl, options).alias("__row"))
    fields = {one.name: F.col("__row")[one.name] for one in schema.fields}
    missing = [fields[one.name].isNull() for one in schema.fields if not one.nullable]
    bad = F.col("value").isNotNull() & (
        F.col("__row").isNull() | F.col("__row")[_CORRUPT].isNotNull()
    )
    for one in missing:
        bad = bad | (F.col("value").isNotNull() & one)
    reason = error(
        VALUE_CONVERTER,
        f"from_{source.format}",
        "MalformedRecord",
        _reason(source, schema),
    )
    return rows.select(
        # A bad record's fields are not to be trusted, also those that could be read.
        *[F.when(~bad, fields[one.name]).alias(one.name) for one in schema.fields],
        *[name for name in METADATA if name in rows.columns],
        F.when(bad, reason).otherwise(no_error()).alias(ERROR),
    )


def _reason(source: Topic, schema: Any) -> Any:
    """Why the value is bad, as precise as possible: by field, if it is JSON at all."""
    from pyspark.sql import functions as F

    text = F.col("__text")
    shown = F.substring(text, 1, _SHOWN_SIZE_MAX)
    reason = F.when(text.isNull(), _value_is("not UTF-8")).when(text == "", _value_is("empty"))
    nulls = [
        F.when(
            F.col("__row")[one.name].isNull(),
            F.lit(f"{one.name!r} is null, but NOT NULL in the schema"),
        )
        for one in schema.fields
        if not one.nullable
    ]
    if source.format == "csv":
        columns = ", ".join(
            f"{one.name} {one.dataType.simpleString().upper()}" for one in schema.fields
        )
        misfit = F.concat(F.lit("the value is not CSV of "), F.lit(columns), F.lit(": "), shown)
        return reason.when(F.col("__row")[_CORRUPT].isNotNull(), misfit).otherwise(
            F.concat_ws("; ", *nulls) if nulls else misfit
        )
    raw = F.from_json(text, "map<string, string>")
    wrong = [
        F.when(
            raw[one.name].isNotNull() & F.col("__row")[one.name].isNull(),
            F.concat(
                F.lit(f"field {one.name!r} is no {one.dataType.simpleString().upper()}: "),
                F.substring(raw[one.name], 1, _SHOWN_SIZE_MAX),
            ),
        )
        for one in schema.fields
    ]
    by_field = F.concat_ws("; ", *wrong, *nulls)
    return reason.when(
        raw.isNull(), F.concat(F.lit("the value is not a JSON object: "), shown)
    ).otherwise(
        F.when(by_field != "", by_field).otherwise(
            F.concat(F.lit("a nested field is not of the schema's type: "), shown)
        )
    )


def _from_binary_format(frame: Any, source: Topic, metadata: list[Any], base: str) -> Any:
    from pyspark.sql import functions as F

    options = {name: str(value) for name, value in source.options.items() if name != "descriptor"}
    options["mode"] = "PERMISSIVE"
    registry = _registry(source)
    if registry is not None:
        from moldau.spark.schemas.functions import from_registry

        url, subject, config = registry
        headers = F.col("headers") if "headers" in frame.columns else None
        row = from_registry(
            F.col("value"), url, subject, config=config, mode="PERMISSIVE", headers=headers
        )
    elif source.format == "avro":
        from pyspark.sql.avro.functions import from_avro

        row = from_avro(F.col("value"), str(source.schema), options)
    else:
        from pyspark.sql.protobuf.functions import from_protobuf

        row = from_protobuf(F.col("value"), str(source.schema), _descriptor(source, base), options)
    rows = frame.select("*", row.alias("__row"))
    bad = F.col("value").isNotNull() & F.col("__row").isNull()
    reason = error(
        VALUE_CONVERTER,
        f"from_{source.format}",
        "MalformedRecord",
        _value_is(f"no {source.format.capitalize()} of the schema"),
    )
    return rows.select("__row.*", *metadata, F.when(bad, reason).otherwise(no_error()).alias(ERROR))


_ID_SERIALIZER = "value.schema.id.serializer"
_SCHEMA_TYPES = {"avro": "AVRO", "json-schema": "JSON", "protobuf": "PROTOBUF"}


def _registry(topic: Topic) -> tuple[str, str, dict[str, str]] | None:
    """The registry's address, the subject and other settings of its client, if there is one."""
    options = {name: str(value) for name, value in topic.options.items()}
    url = options.pop("schema.registry.url", None)
    if not url or topic.format not in _SCHEMA_TYPES:
        return None
    subject = options.pop("subject", None) or f"{topic.topic}-value"
    return url, subject, options


def has_registry(topic: Topic) -> bool:
    return _registry(topic) is not None


def has_id_in_header(topic: Topic) -> bool:
    """Whether the id of the schema is written to a header. Raises PipelineError."""
    if not has_registry(topic):
        return False
    from moldau.serde.framing import FramingError, id_in_header

    given = topic.options.get(_ID_SERIALIZER)
    try:
        return id_in_header(None if given is None else str(given))
    except FramingError as error:
        raise PipelineError(
            f"sink: options: {_ID_SERIALIZER}: {error}",
            where=str(topic.place) if topic.place else None,
        ) from None


def _descriptor(topic: Topic, base: str) -> str | None:
    """The file with the message's description; None if the message is a class on the server."""
    named = topic.options.get("descriptor")
    if named is None:
        return None
    path = Path(base, str(named))
    if not path.is_file():
        raise PipelineError(
            f"options: descriptor: there is no file {path}",
            where=str(topic.place) if topic.place else None,
            hint="protoc --include_imports --descriptor_set_out=FILE makes one",
        )
    return str(path)


def value_of(topic: Topic, columns: list[str], *, base: str) -> Any:
    """The value of the record that a row becomes, as bytes; with its headers, as a struct, if they
    have the id of its schema."""
    from pyspark.sql import functions as F

    row = F.struct(*[quoted(name) for name in columns])
    registry = _registry(topic)
    if registry is not None:
        from moldau.spark.schemas.functions import to_registry

        url, subject, config = registry
        kind = _SCHEMA_TYPES[topic.format]
        return to_registry(
            row,
            url,
            subject,
            schema=topic.schema,
            schema_type=kind,
            config=config,
            id_in_header=has_id_in_header(topic),
        )
    options = {name: str(value) for name, value in topic.options.items() if name != "descriptor"}
    match topic.format:
        case "json":
            return F.to_json(row, options or None).cast("binary")
        case "csv":
            return F.to_csv(row, options or None).cast("binary")
        case "avro":
            from pyspark.sql.avro.functions import to_avro

            return to_avro(row, topic.schema) if topic.schema else to_avro(row)
        case "protobuf":
            from pyspark.sql.protobuf.functions import to_protobuf

            return to_protobuf(row, str(topic.schema), _descriptor(topic, base), options)
    only = _single(topic, columns)
    return quoted(only).cast("string" if topic.format == "string" else "binary").cast("binary")


def _single(topic: Topic, columns: list[str]) -> str:
    """Formats without columns take one: that named `value`, or the only one there is."""
    if "value" in columns:
        return "value"
    if len(columns) != 1:
        raise PipelineError(
            f"sink: format {topic.format!r} takes one column, and there are {len(columns)}: "
            f"{', '.join(columns)}",
            where=str(topic.place) if topic.place else None,
            hint="name it value: SELECT ... AS value",
        )
    return columns[0]


def quoted(name: str) -> Any:
    from pyspark.sql import functions as F

    return F.col("`" + name.replace("`", "``") + "`")
