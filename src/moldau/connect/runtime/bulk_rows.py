"""The step of a bulk sink's pipeline: records become rows by the connector's converters and
transforms. Runs in Spark's Python workers, once per record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from moldau.client.consumer_record import ConsumerRecord
from moldau.config.providers import resolve
from moldau.connect.chain import chain_of
from moldau.connect.machine.columns import row_of
from moldau.connect.plugins import Plugins
from moldau.connect.runtime.conversion import SinkConversion, converters_of
from moldau.connect.runtime.failures import StepFailed

__all__ = ["QUERY", "record_to_row"]

#: Gives `record_to_row` what it needs of a record, with headers.
QUERY: Final = (
    "SELECT value AS connect_value, _key AS connect_key, _topic AS connect_topic, "
    "_partition AS connect_partition, _offset AS connect_offset, "
    "unix_millis(_timestamp) AS connect_timestamp, _headers AS connect_headers FROM input"
)


def record_to_row(row: Mapping[str, Any], *, settings: str) -> dict[str, Any] | None:
    """`settings` are those of converters and transforms, as JSON. None for a record that a
    transform drops, and for one without a value: a table has nothing to store for it."""
    record: Any = ConsumerRecord(
        topic=row["connect_topic"],
        partition=row["connect_partition"],
        offset=row["connect_offset"],
        timestamp=-1 if row["connect_timestamp"] is None else row["connect_timestamp"],
        timestamp_type=0,
        key=_bytes(row["connect_key"]),
        value=_bytes(row["connect_value"]),
        headers=tuple((each["key"], each["value"]) for each in row["connect_headers"] or ()),
    )
    try:
        made = _conversion(settings).convert(record)
    except StepFailed as failed:
        raise failed.error from None
    return None if made is None or made.value is None else row_of(made.value)


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


@lru_cache(maxsize=16)
def _conversion(settings: str) -> SinkConversion:
    """One per worker process and connector."""
    found = {key: str(each) for key, each in resolve(json.loads(settings)).items()}
    paths = [each.strip() for each in found.get("plugin.path", "").split(",") if each.strip()]
    plugins = Plugins(paths=paths)
    return SinkConversion(chain_of(found, plugins), converters_of({}, found, plugins))
