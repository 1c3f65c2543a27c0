"""ExtractNewRecordState, on changes as Debezium and our own sources write them."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.connect.api import ConfigError, SourceRecord
from moldau.connect.built_in import PluginKind
from moldau.connect.plugins import Plugins
from moldau.data import builders
from moldau.data.struct import Struct

ROW = builders.struct(
    [("id", builders.INT32), ("name", builders.OPTIONAL_STRING)], name="t.Value", optional=True
)
SOURCE = builders.struct([("table", builders.STRING), ("lsn", builders.OPTIONAL_INT64)], name="s")
ENVELOPE = builders.struct(
    {
        "before": ROW,
        "after": ROW,
        "source": SOURCE,
        "op": builders.STRING,
        "ts_ms": builders.OPTIONAL_INT64,
    },
    name="t.Envelope",
)
KEY = builders.struct([("id", builders.INT32)], name="t.Key")


def row(name: str | None) -> Struct:
    return Struct(ROW, {"id": 1, "name": name})


def change(op: str, before: Struct | None, after: Struct | None) -> SourceRecord:
    source = Struct(SOURCE, {"table": "people", "lsn": 7})
    values = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 5}
    return record(Struct(ENVELOPE, values), ENVELOPE)


def record(value: Any, schema: Any) -> SourceRecord:
    return SourceRecord(
        {},
        {},
        "t",
        key=Struct(KEY, {"id": 1}),
        key_schema=KEY,
        value=value,
        value_schema=schema,
    )


CREATED = change("c", None, row("a"))
DELETED = change("d", row("a"), None)
GRAVE = record(None, None)


def applied(given: SourceRecord, **settings: str) -> SourceRecord | None:
    name = "io.debezium.transforms.ExtractNewRecordState"
    transform = Plugins().find(name, [PluginKind.TRANSFORMATION])()
    transform.configure({key.replace("_", "."): value for key, value in settings.items()})
    found: SourceRecord | None = transform.apply(given)
    return found


def test_the_row_after_the_change_is_left() -> None:
    found = applied(CREATED)

    assert found is not None
    assert found.value == row("a")
    assert found.value_schema == ROW
    assert found.key == CREATED.key


@pytest.mark.parametrize(
    ("settings", "deleted", "grave"),
    [
        pytest.param({}, None, "kept", id="default: tombstone"),
        pytest.param({"delete_tombstone_handling_mode": "drop"}, None, None, id="drop"),
        pytest.param({"delete_tombstone_handling_mode": "rewrite"}, "true", None, id="rewrite"),
        pytest.param(
            {"delete_tombstone_handling_mode": "rewrite-with-tombstone"}, "true", "kept", id="both"
        ),
        pytest.param(
            {"delete_tombstone_handling_mode": "delete-to-tombstone"}, "null", None, id="to null"
        ),
        pytest.param({"drop_tombstones": "false"}, None, "kept", id="former: tombstones"),
        pytest.param({"delete_handling_mode": "rewrite"}, "true", None, id="former: rewrite"),
        pytest.param({"delete_handling_mode": "none"}, "null", None, id="former: none"),
    ],
)
def test_deleted_rows(settings: dict[str, str], deleted: str | None, grave: str | None) -> None:
    found = applied(DELETED, **settings)
    if deleted is None:
        assert found is None
    elif deleted == "null":
        assert found is not None
        assert (found.value, found.key) == (None, DELETED.key)
    else:
        assert found is not None
        assert found.value.as_dict() == {"id": 1, "name": "a", "__deleted": deleted}
    assert (applied(GRAVE, **settings) is not None) == (grave == "kept")


def test_rows_that_live_say_so_when_deleted_ones_are_rewritten() -> None:
    found = applied(CREATED, delete_tombstone_handling_mode="rewrite")

    assert found is not None
    assert found.value.get("__deleted") == "false"


def test_fields_and_headers_of_the_change_are_added() -> None:
    found = applied(
        CREATED, add_fields="op,table,source.lsn:at", add_headers="op", add_headers_prefix="h."
    )

    assert found is not None
    assert found.value.as_dict() == {
        "id": 1, "name": "a", "__op": "c", "__table": "people", "__at": 7,
    }  # fmt: skip
    assert [(each.key, each.value) for each in found.headers] == [("h.op", "c")]
    found.value.validate()


def test_a_column_names_the_topic() -> None:
    found = applied(CREATED, route_by_field="name")

    assert found is not None
    assert found.topic == "a"


def test_what_is_not_a_change_is_passed_on() -> None:
    plain = record(row("a"), ROW)
    assert applied(plain) is plain
    assert applied(change("t", None, None)) is None


def test_settings_that_cannot_be_kept_are_named() -> None:
    with pytest.raises(ConfigError, match=r"drop\.fields\.header\.name"):
        applied(CREATED, drop_fields_header_name="x")
    with pytest.raises(ConfigError, match=r"source\.nowhere"):
        applied(CREATED, add_fields="nowhere")
