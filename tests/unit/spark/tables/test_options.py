"""What a declaration may say, and what is said about one that it may not."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from moldau.spark.tables import (
    FILE_KINDS,
    FORMATS,
    KINDS,
    OptionError,
    check_options,
    check_output_mode,
)

POSTGRES = "jdbc:postgresql://localhost/shop"


def test_a_declaration_as_written_in_yaml() -> None:
    options = check_options(
        "parquet", "sink", {"parquet": "orders", "partitionby": ["day", "hour"]}
    )
    assert options.address == "orders"
    assert options.names("partitionBy") == ("day", "hour")


def test_texts_as_spark_carries_them_mean_the_same_as_yaml() -> None:
    written = {"delta": "orders", "partitionBy": ["a", "b"], "mergeSchema": True, "upsert": "id"}
    options = check_options("delta", "sink", written)
    assert check_options("delta", "sink", options.as_spark()) == options
    assert options.flag("mergeSchema")


@pytest.mark.parametrize(
    ("kind", "role", "options", "message"),
    [
        pytest.param("orc", "sink", {}, "unknown kind of table 'orc'", id="kind"),
        pytest.param("csv", "middle", {}, "unknown role", id="role"),
        pytest.param("json", "sink", {}, "'path' is missing.*{json: folder}", id="no folder"),
        pytest.param(
            "json",
            "sink",
            {"json": "x", "partionBy": ["a"]},
            "Did you mean 'partitionBy'",
            id="typo",
        ),
        pytest.param(
            "json", "sink", {"json": "x", "path": "y"}, "'path' is given twice", id="two folders"
        ),
        pytest.param(
            "delta", "sink", {"delta": "x", "partitionBy": [1]}, "expected column names", id="names"
        ),
        pytest.param(
            "delta", "sink", {"delta": "x", "upsert": ["a", "a"]}, "each once", id="key twice"
        ),
        pytest.param(
            "delta", "sink", {"delta": "x", "mergeSchema": "yes"}, "true or false", id="truth value"
        ),
        pytest.param(
            "delta", "sink", {"delta": "x", "sequenceBy": "at"}, "Add upsert", id="no key"
        ),
        pytest.param(
            "delta", "sink", {"delta": "x", "txnAppId": "a"}, "only together", id="half a batch"
        ),
        pytest.param(
            "delta", "source", {"delta": "x", "startingVersion": "first"}, "a version", id="version"
        ),
        pytest.param(
            "parquet", "source", {"parquet": "x", "maxFilesPerTrigger": 0}, "above zero", id="zero"
        ),
        pytest.param(
            "parquet", "sink", {"parquet": "x", "mode": "overwrite"}, "expected append", id="mode"
        ),
        pytest.param(
            "csv",
            "source",
            {"csv": "x", "cleanSource": "archive"},
            "sourceArchiveDir",
            id="archive",
        ),
        pytest.param("iceberg", "sink", {"iceberg": "x"}, "'table' is missing", id="no table"),
        pytest.param(
            "jdbc", "sink", {"jdbc": "postgresql://h/d", "table": "t"}, "no JDBC address", id="url"
        ),
        pytest.param("jdbc", "source", {"jdbc": POSTGRES}, "either 'table' or 'query'", id="what"),
        pytest.param(
            "jdbc",
            "source",
            {"jdbc": POSTGRES, "table": "t", "numPartitions": 3},
            "without lowerBound, partitionColumn, upperBound",
            id="half a cut",
        ),
        pytest.param(
            "jdbc",
            "source",
            {"jdbc": POSTGRES, "table": "t", "mode": "timestamp"},
            "also needs 'timestamp.column.name'",
            id="mode without column",
        ),
        pytest.param(
            "jdbc",
            "source",
            {"jdbc": POSTGRES, "table": "t", "incrementing.column.name": "id"},
            "no meaning with mode",
            id="column without mode",
        ),
        pytest.param(
            "jdbc",
            "sink",
            {"jdbc": POSTGRES, "table": "t", "onError": "dead_letter"},
            "also needs 'deadLetterTopic'",
            id="dead letters where to",
        ),
    ],
)
def test_what_is_wrong_is_named(
    kind: str, role: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        check_options(kind, role, options)


def test_a_password_is_not_in_the_error_about_its_address() -> None:
    with pytest.raises(OptionError) as told:
        check_options("jdbc", "sink", {"jdbc": "postgresql://h/d?password=secret", "table": "t"})
    assert "secret" not in str(told.value)


def test_a_password_is_not_in_what_is_printed() -> None:
    written = {"jdbc": POSTGRES + "?password=secret", "password": "secret", "table": "t"}
    assert "secret" not in repr(check_options("jdbc", "sink", written))


def test_properties_of_other_libraries_are_passed_on() -> None:
    written = {"iceberg": "w", "table": "a.b", "catalog.type": "rest", "catalog.uri": "x"}
    assert check_options("iceberg", "sink", written).prefixed("catalog.") == {
        "type": "rest",
        "uri": "x",
    }


@pytest.mark.parametrize("kind", FILE_KINDS)
@pytest.mark.parametrize("mode", ["update", "complete"])
def test_files_take_append_only_and_the_error_says_what_to_do(kind: str, mode: str) -> None:
    required = dict.fromkeys(FORMATS[kind].required.get("sink", ()), "y")
    options = check_options(kind, "sink", {kind: "x", **required})
    with pytest.raises(OptionError, match="append with a watermark"):
        check_output_mode(options, mode)


@pytest.mark.parametrize(
    ("more", "mode", "message"),
    [
        pytest.param({}, "update", "upsert: .key", id="update without key"),
        pytest.param({"upsert": ["id"]}, "complete", "replaces the whole table", id="complete"),
        pytest.param({}, "now and then", "unknown output mode", id="unknown"),
    ],
)
def test_output_modes_that_a_table_cannot_take(
    more: dict[str, Any], mode: str, message: str
) -> None:
    options = check_options("delta", "sink", {"delta": "x", **more})
    with pytest.raises(OptionError, match=message):
        check_output_mode(options, mode)


def test_options_are_checked_without_spark_or_any_table_library() -> None:
    probe = (
        "import sys; from moldau.spark import tables; "
        "tables.check_options('delta', 'sink', {'delta': 'x'}); "
        "print([m for m in ('pyspark', 'pyarrow', 'deltalake', 'psycopg') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_kind_is_a_source_and_a_sink() -> None:
    more = {"iceberg": {"table": "a.b"}, "jdbc": {"table": "t"}, "xml": {"rowTag": "r"}}
    for kind in KINDS:
        address = POSTGRES if kind == "jdbc" else "folder"
        for role in ("source", "sink"):
            assert check_options(kind, role, {kind: address, **more.get(kind, {})}).kind == kind
