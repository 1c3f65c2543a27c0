"""Each batch is in the table once, whatever fails and however often Spark runs it again."""

from __future__ import annotations

import datetime
import decimal
import json
import pickle
from typing import Any

import pyarrow as pa
import pytest

from moldau.spark.tables import SchemaMismatchError, TableError
from moldau.spark.tables.datasource import StagedMessage, StreamWriter

FIRST = [(1, "a"), (2, "b")]
SECOND = [(3, "c")]


def test_batches_are_added_in_full_and_nothing_else_is_left(table: Any) -> None:
    assert table.write(0, FIRST, SECOND)
    assert table.write(1, [(4, "d")])
    assert table.ids() == [1, 2, 3, 4]
    assert table.staged_things() == []


def test_a_batch_that_runs_again_after_its_commit_changes_nothing(table: Any) -> None:
    table.write(0, FIRST)
    table.write(1, SECOND)
    assert table.write(1, SECOND) is False
    assert table.write(0, FIRST) is False
    assert table.ids() == [1, 2, 3]
    assert table.staged_things() == []


def test_rows_are_invisible_until_the_commit_and_a_crashed_attempt_is_cleared(table: Any) -> None:
    table.write(0, FIRST)
    sink = table.sink()
    table.stage(sink, 1, SECOND, [(9, "never committed")])
    assert table.ids() == [1, 2]
    # The query starts again: the same batch, other attempts.
    assert table.write(1, SECOND)
    assert table.ids() == [1, 2, 3]
    assert table.staged_things() == []


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_crash_right_after_the_commit_is_cleared_by_the_rerun(
    of_kind: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from moldau.spark.tables.storage import Storage

    table = of_kind(kind)
    table.stage(table.sink(), 0, [(9, "crashed before the commit")])
    with monkeypatch.context() as crash:
        crash.setattr(Storage, "settle", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            table.write(0, FIRST)
    assert table.write(0, FIRST) is False
    assert table.ids() == [1, 2]
    assert table.staged_things() == []


def test_abort_removes_what_the_tasks_staged(table: Any) -> None:
    sink = table.sink()
    sink.abort(table.stage(sink, 0, FIRST, SECOND), 0)
    assert table.ids() == []
    assert table.staged_things() == []


def test_a_commit_that_died_after_it_got_through_is_not_undone(table: Any) -> None:
    """Its process is killed before it says so, and Spark has the batch aborted."""
    staged = table.stage(table.sink(), 0, FIRST, SECOND)
    messages = [StagedMessage(each) for each in staged]
    StreamWriter(table.sink()).commit(messages, 0)
    StreamWriter(table.sink()).abort(messages, 0)
    assert table.ids() == [1, 2, 3]
    assert table.write(0, FIRST, SECOND) is False
    assert table.ids() == [1, 2, 3]
    assert table.staged_things() == []


def test_a_commit_that_died_before_it_got_through_is_cleared_by_the_rerun(table: Any) -> None:
    staged = table.stage(table.sink(), 0, FIRST, SECOND)
    StreamWriter(table.sink()).abort([StagedMessage(each) for each in staged], 0)
    assert table.write(0, FIRST, SECOND)
    assert table.ids() == [1, 2, 3]
    assert table.staged_things() == []


def test_a_batch_of_which_a_task_failed_is_removed(table: Any) -> None:
    messages = [StagedMessage(each) for each in table.stage(table.sink(), 0, FIRST)]
    StreamWriter(table.sink()).abort([*messages, None], 0)
    assert table.ids() == []
    assert table.staged_things() == []


def test_a_commit_that_the_catalog_calls_failed_may_have_got_through(
    of_kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = of_kind("iceberg")
    sink = table.sink()
    commit = sink._try_commit
    monkeypatch.setattr(sink, "_try_commit", lambda *given: commit(*given) and False)
    sink.commit(table.stage(sink, 0, FIRST), 0)
    assert table.ids() == [1, 2]


def test_a_task_that_fails_midway_leaves_nothing(table: Any) -> None:
    sink = table.sink()

    def rows() -> Any:
        yield table._batch(sink, FIRST)
        raise RuntimeError("the input broke")

    with pytest.raises(RuntimeError, match="the input broke"):
        sink.write(rows(), table.attempt(0, 0))
    assert table.staged_things() == []


def test_another_query_has_its_own_batch_numbers(table: Any) -> None:
    table.write(0, FIRST)
    table.query_id = "another"
    assert table.write(0, SECOND)
    assert table.ids() == [1, 2, 3]


def test_two_drivers_that_race_with_one_batch_add_it_once(table: Any) -> None:
    one, other = table.sink(), table.sink()
    staged = [(sink, table.stage(sink, 0, FIRST)) for sink in (one, other)]
    assert [sink.commit(parts, 0) for sink, parts in staged] == [True, False]
    assert table.ids() == [1, 2]


def test_an_empty_batch_is_committed_too(table: Any) -> None:
    assert table.write(0, [])
    assert table.write(0, FIRST) is False
    assert table.ids() == []


def test_the_writer_and_what_tasks_report_travel_by_pickle(table: Any) -> None:
    sink = pickle.loads(pickle.dumps(table.sink()))
    staged = pickle.loads(pickle.dumps(table.stage(sink, 0, FIRST)))
    assert table.sink().commit(staged, 0)
    assert table.ids() == [1, 2]


def test_upsert_replaces_by_key_and_the_last_of_a_batch_wins(table: Any) -> None:
    table.write(0, FIRST, upsert=["id"])
    table.write(1, [(2, "older"), (3, "c")], [(2, "newer")], upsert=["id"])
    assert table.write(1, [(2, "again")], upsert=["id"]) is False
    rows = [(row["id"], row["name"]) for row in table.rows()]
    assert rows == [(1, "a"), (2, "newer"), (3, "c")]
    assert table.staged_things() == []


def test_upsert_by_two_keys(table: Any) -> None:
    schema = pa.schema([("id", pa.int64()), ("region", pa.string()), ("amount", pa.int64())])
    options = {"schema": schema, "upsert": ["id", "region"]}
    table.write(0, [(1, "north", 1), (1, "south", 2)], **options)
    table.write(1, [(1, "south", 20), (2, "south", 3)], **options)
    amounts = {(row["id"], row["region"]): row["amount"] for row in table.rows()}
    assert amounts == {(1, "north"): 1, (1, "south"): 20, (2, "south"): 3}


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_null_is_a_key_like_any_other(of_kind: Any, kind: str) -> None:
    table = of_kind(kind)
    table.write(0, [(None, "a"), (1, "b")], upsert=["id"])
    table.write(1, [(None, "c")], upsert=["id"])
    assert sorted(row["name"] for row in table.rows()) == ["b", "c"]


def test_sequence_by_keeps_the_latest_even_if_it_came_first(table: Any) -> None:
    schema = pa.schema([("id", pa.int64()), ("version", pa.int64())])
    options = {"schema": schema, "upsert": ["id"], "sequenceBy": "version"}
    table.write(0, [(1, 5), (1, 3), (2, 1)], **options)
    table.write(1, [(1, 4), (2, 2)], **options)
    assert [(row["id"], row["version"]) for row in table.rows()] == [(1, 5), (2, 2)]


def test_complete_mode_replaces_the_rows(table: Any) -> None:
    table.write(0, FIRST, overwrite=True)
    table.write(1, SECOND, overwrite=True)
    assert table.ids() == [3]


def test_every_type_comes_back_as_it_was_written(table: Any) -> None:
    inner = pa.struct([("a", pa.int32()), ("b", pa.string())])
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("small", pa.int32()),
            ("ratio", pa.float64()),
            ("price", pa.decimal128(20, 3)),
            ("day", pa.date32()),
            ("at", pa.timestamp("us", "UTC")),
            ("ok", pa.bool_()),
            ("raw", pa.binary()),
            ("tags", pa.list_(pa.string())),
            ("inner", inner),
        ]
    )
    row = (
        7,
        -3,
        0.5,
        decimal.Decimal("12345678901234567.125"),
        datetime.date(2026, 2, 28),
        datetime.datetime(2026, 2, 28, 23, 59, 59, 123456, tzinfo=datetime.UTC),
        True,
        b"\x00\xff",
        ["x", 'it\'s "quoted"'],
        {"a": 1, "b": None},
    )
    empty = (8,) + (None,) * (len(row) - 1)
    table.write(0, [row, empty], schema=schema)
    back, nothing = table.rows()
    if table.kind == "sqlite":
        # SQLite has no such types: what is stored is what every tool shows.
        assert list(back.values()) == [
            7,
            -3,
            0.5,
            "12345678901234567.125",
            "2026-02-28",
            "2026-02-28 23:59:59.123456",
            1,
            b"\x00\xff",
            '["x", "it\'s \\"quoted\\""]',
            '{"a": 1, "b": null}',
        ]
    elif table.kind == "mariadb":
        # Its times have no zone, and JSON is text.
        *simple, at, ok, raw, tags, inside = back.values()
        assert (*simple, at.replace(tzinfo=datetime.UTC), ok, raw) == row[:8]
        assert [json.loads(tags), json.loads(inside)] == list(row[8:])
    else:
        assert tuple(back.values()) == row
    assert tuple(nothing.values()) == empty


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_merge_schema_adds_columns_and_without_it_they_are_an_error(
    of_kind: Any, kind: str
) -> None:
    table = of_kind(kind)
    table.write(0, FIRST)
    wider = pa.schema([*table.schema, ("city", pa.string())])
    with pytest.raises(SchemaMismatchError, match=r"no column for city .*mergeSchema"):
        table.sink(wider)
    table.write(1, [(3, "c", "Prague")], schema=wider, mergeSchema=True)
    table.write(2, [(4, "d")])
    cities = [row["city"] for row in table.rows()]
    assert cities == [None, None, "Prague", None]


def test_a_column_that_the_table_lacks_is_an_error_that_names_it(table: Any) -> None:
    table.write(0, FIRST)
    with pytest.raises(SchemaMismatchError, match="no column for city"):
        table.sink(pa.schema([*table.schema, ("city", pa.string())]))


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_types_may_widen_but_never_narrow(of_kind: Any, kind: str) -> None:
    table = of_kind(kind)
    table.write(0, FIRST)
    narrow = pa.schema([("id", pa.int32()), ("name", pa.string())])
    table.write(1, SECOND, schema=narrow)
    assert table.ids() == [1, 2, 3]
    with pytest.raises(SchemaMismatchError, match="'id' is int64, and double does not fit"):
        table.sink(pa.schema([("id", pa.float64()), ("name", pa.string())]))


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_partitions_are_kept_and_cannot_be_changed(of_kind: Any, kind: str) -> None:
    table = of_kind(kind)
    names = [(1, "a/b c"), (2, "ü=%"), (3, None), (4, "a/b c")]
    table.write(0, names, partitionBy=["name"])
    table.write(1, [(5, "ü=%")])
    found = [(row["id"], row["name"]) for row in table.rows()]
    assert found == [*names, (5, "ü=%")]
    with pytest.raises(SchemaMismatchError, match="partitioned by"):
        table.sink(partitionBy=["id"])


def test_a_key_that_the_rows_lack_is_an_error(table: Any) -> None:
    with pytest.raises(SchemaMismatchError, match="upsert names 'key'"):
        table.sink(upsert=["key"])


def test_statistics_let_delta_skip_files(of_kind: Any) -> None:
    from deltalake import DeltaTable

    table = of_kind("delta")
    table.write(0, [(1, "a"), (5, "b")], [(7, "c")])
    actions = pa.table(DeltaTable(table.address["delta"]).get_add_actions(flatten=True))
    bounds = sorted(
        zip(
            *(actions.column(n).to_pylist() for n in ("min.id", "max.id", "num_records")),
            strict=True,
        )
    )
    assert bounds == [(1, 5, 2), (7, 7, 1)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param({"delta.constraints.positive": "id > 0"}, "delta.constraints", id="checks"),
        pytest.param({"delta.columnMapping.mode": "name"}, "column mapping", id="mapped columns"),
    ],
)
def test_delta_tables_whose_rules_would_be_broken_are_refused(
    of_kind: Any, settings: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deltalake.table import Metadata

    table = of_kind("delta")
    table.write(0, FIRST)
    monkeypatch.setattr(Metadata, "configuration", settings)
    with pytest.raises(TableError, match=message):
        table.sink()


def test_the_folder_of_an_object_store_is_written_the_same_way(
    of_kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.fs as arrow_fs
    from deltalake.fs import DeltaStorageHandler

    from moldau.spark.tables import delta_table
    from moldau.spark.tables.storage import Storage

    def through_deltalake(folder: str, options: Any) -> Storage:
        return Storage(arrow_fs.PyFileSystem(DeltaStorageHandler(folder, dict(options))), "")

    monkeypatch.setattr(delta_table, "table_storage", through_deltalake)
    table = of_kind("delta")
    table.stage(table.sink(), 0, [(9, "never committed")])
    assert table.write(0, FIRST, SECOND)
    assert table.write(0, FIRST) is False
    assert table.ids() == [1, 2, 3]
    assert table.staged_things() == []
