"""Records as requests of the HTTP Event Collector: to /event with metadata in each event, to /raw
with metadata in the address, so that a request has records of the same metadata only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from moldau.connect.api.records import SinkRecord
from moldau.connect.connectors.support.documents import document, text_of
from moldau.data import json_text
from moldau.data.errors import DataError

PARTS: Final = ("index", "source", "sourcetype", "host")


@dataclass(frozen=True, slots=True)
class Meta:
    index: str = ""
    source: str = ""
    sourcetype: str = ""
    host: str = ""

    def given(self) -> dict[str, str]:
        return {part: value for part in PARTS if (value := getattr(self, part))}


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRules:
    metas: Mapping[str, Meta]
    """By topic; that of "" is for all others."""
    batch_max: int
    raw: bool = False
    line_breaker: str = "\n"
    record_time: bool = True
    formatted: bool = False
    extract_time: bool = False
    enrichment: Mapping[str, str]
    tracked_by: str | None = None
    """The host that is named if records are tracked."""
    headers: Mapping[str, str]
    """The header that names a part of the metadata, by part."""
    custom_headers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Batch:
    path: str
    body: bytes
    records: tuple[SinkRecord, ...]


def metas(topics: Sequence[str], **lists: Sequence[str]) -> dict[str, Meta]:
    """The metadata of topics. A list, named after the part it has, has one value for all or as
    many as there are topics; ValueError names one that has not."""
    found = {"": Meta()} | {topic: Meta() for topic in topics}
    for part, values in lists.items():
        if len(values) == 1:
            found = {topic: replace(meta, **{part: values[0]}) for topic, meta in found.items()}
        elif values and len(values) != len(topics):
            raise ValueError(part)
        else:
            for topic, value in zip(topics, values, strict=False):
                found[topic] = replace(found[topic], **{part: value})
    return found


def pairs(text: str) -> dict[str, str]:
    """`a=1,b=2` as names and values."""
    found = {}
    for each in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = each.partition("=")
        if not name or not equals:
            raise ValueError(f"must be NAME=VALUE,..., and {each} is not")
        found[name.strip()] = value.strip()
    return found


def batches(rules: EventRules, records: Sequence[SinkRecord]) -> Iterator[Batch]:
    run: list[tuple[SinkRecord, bytes]] = []
    current: str | None = None
    for record in records:
        meta = _meta(rules, record)
        path = _path(rules, meta)
        if run and (path != current or len(run) >= rules.batch_max):
            yield _batch(current or "", run)
            run = []
        current = path
        run.append((record, _raw(rules, record) if rules.raw else _event(rules, meta, record)))
    if run:
        yield _batch(current or "", run)


def _batch(path: str, run: Sequence[tuple[SinkRecord, bytes]]) -> Batch:
    return Batch(path, b"".join([data for _, data in run]), tuple(record for record, _ in run))


def _meta(rules: EventRules, record: SinkRecord) -> Meta:
    found = rules.metas.get(record.topic) or rules.metas[""]
    if not rules.headers:
        return found
    named = {header.key: header for header in record.headers}
    given = {
        part: text_of(named[name].value, None, f"header {name}")
        for part, name in rules.headers.items()
        if name in named
    }
    return replace(found, **given)


def _path(rules: EventRules, meta: Meta) -> str:
    if rules.raw:
        query = urlencode(meta.given())
        return "/services/collector/raw" + (f"?{query}" if query else "")
    path = "/services/collector/event"
    return f"{path}?auto_extract_timestamp=true" if rules.extract_time else path


def _raw(rules: EventRules, record: SinkRecord) -> bytes:
    value = record.value
    if isinstance(value, (bytes, bytearray)):
        data = bytes(value)
    else:
        data = (value if isinstance(value, str) else json_text.compact(document(value))).encode()
    return data + rules.line_breaker.encode()


def _event(rules: EventRules, meta: Meta, record: SinkRecord) -> bytes:
    if rules.formatted:
        event = _formatted(record)
        fields = {**(event.get("fields") or {}), **rules.enrichment}
    else:
        event = {"event": _content(record.value), **meta.given()}
        if rules.record_time and record.timestamp is not None:
            event["time"] = record.timestamp / 1000
        fields = {**rules.enrichment, **_tracked(rules, record), **_custom(rules, record)}
    if fields:
        event["fields"] = fields
    return json_text.compact(event).encode() + b"\n"


def _content(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    return document(value)


def _formatted(record: SinkRecord) -> dict[str, Any]:
    found = _content(record.value)
    if isinstance(found, str):
        try:
            found = json_text.parse(found)
        except ValueError:
            found = None
    if not isinstance(found, dict) or "event" not in found:
        raise DataError(
            f"record {record.topic}-{record.partition}@{record.offset} is no object with an event, "
            "as splunk.hec.json.event.formatted says"
        )
    return dict(found)


def _tracked(rules: EventRules, record: SinkRecord) -> dict[str, str]:
    if rules.tracked_by is None:
        return {}
    found = {
        "kafka_topic": record.original_topic,
        "kafka_partition": str(record.original_partition),
        "kafka_offset": str(record.original_offset),
        "kafka_timestamp": str(record.timestamp),
        "kafka_connect_host": rules.tracked_by,
    }
    if isinstance(record.key, (str, bytes, int)):
        found["kafka_record_key"] = text_of(record.key, record.key_schema, "a key")
    return found


def _custom(rules: EventRules, record: SinkRecord) -> dict[str, str]:
    return {
        header.key: text_of(header.value, header.schema, f"header {header.key}")
        for header in record.headers
        if header.key in rules.custom_headers
    }
