"""Scan: reads a topic from a place on, decodes, filters, and reports how far it is.

Memory is bounded by what one poll returns: records that do not match are dropped at once. A scan
ends at the ends that the partitions had when it began (unless it is live), at `limit` matches, at
`scan_max` records, or when the client goes away.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from moldau.client import OffsetSpec
from moldau.client.consumer_record import ConsumerRecord
from moldau.client.topics import TopicPartition
from moldau.services.console.backend import Call
from moldau.services.console.clients import Consumer
from moldau.services.console.machine.decoding import FORMATS, fitted
from moldau.services.console.machine.errors import bad_request
from moldau.services.console.machine.filters import FilterError, Test, compile_filter
from moldau.services.console.machine.masks import MaskRule, masked
from moldau.services.console.machine.places import newest_starts

__all__ = ["SHOWN_BYTES_MAX", "Found", "Progress", "Raw", "Scan", "ScanRequest", "presented"]

Raw = ConsumerRecord[bytes | None, bytes | None]
POLL_S: Final = 0.25
PROGRESS_S: Final = 0.3
SHOWN_BYTES_MAX: Final = 100_000
SILENCE_S: Final = 10.0
ASK_S: Final = 20.0
_STARTS: Final = ("beginning", "end", "newest", "offset", "time")
_FORMATS: Final = (*FORMATS, "avro", "protobuf", "json-schema")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRequest:
    """`start`: beginning, newest (the last `limit` records), end (only new ones), offset, time."""

    start: str = "newest"
    offset: int = 0
    timestamp: int = 0
    until: int | None = None
    partitions: tuple[int, ...] | None = None
    limit: int = 50
    scan_max: int = 100_000_000
    live: bool = False
    contains: str = ""
    expression: str = ""
    key_format: str = "auto"
    value_format: str = "auto"
    committed: bool = False

    def __post_init__(self) -> None:
        """Raises HttpError."""
        if self.start not in _STARTS:
            raise bad_request(f"start {self.start}: use one of {', '.join(_STARTS)}")
        for each in (self.key_format, self.value_format):
            if each not in _FORMATS:
                raise bad_request(f"format {each}: use one of {', '.join(_FORMATS)}")

    def test(self) -> Test | None:
        try:
            return compile_filter(self.expression) if self.expression.strip() else None
        except FilterError as error:
            raise bad_request(str(error)) from None


@dataclass(slots=True)
class Progress:
    scanned: int = 0
    matched: int = 0
    total: int = 0
    done: int = 0
    """Offsets of the range that are behind the scan."""
    bytes: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """A record that matched: as it is, and as JSON."""

    raw: Raw
    decoded: dict[str, Any]
    cut: int | None

    @property
    def shown(self) -> dict[str, Any]:
        return presented(self.decoded, self.cut)


def presented(decoded: dict[str, Any], cut: int | None) -> dict[str, Any]:
    """What of a record can be sent, with at most `cut` bytes of the key and of the value."""
    shown = dict(decoded)
    for name in ("key", "value"):
        part = decoded[name]
        value, note = fitted(part["value"], cut)
        shown[name] = {**part, "value": value, "note": note or part["note"]}
    return shown


@dataclass(slots=True)
class Scan:
    call: Call
    topic: str
    wanted: ScanRequest
    masks: tuple[MaskRule, ...] = ()
    cut: int | None = SHOWN_BYTES_MAX
    """How many bytes of a key or a value are shown; None for all."""
    progress: Progress = field(default_factory=Progress)
    _starts: dict[TopicPartition, int] = field(default_factory=dict)
    _finished: int = 0

    async def run(
        self, is_over: Callable[[], bool] = lambda: False
    ) -> AsyncGenerator[list[Found], None]:
        """What each poll found, also nothing, so that the caller can report progress."""
        wanted = self.wanted
        test = wanted.test()
        settings = {
            "isolation_level": "read_committed" if wanted.committed else "read_uncommitted",
            "max_poll_records": "2000",
            "auto_offset_reset": "earliest",
        }
        async with self.call.clients.consumer(**settings) as consumer:
            ends = await self._begin(consumer)
            starts = dict(self._starts)
            heard_s = time.monotonic()
            while not is_over():
                if not wanted.live and not ends:
                    self.progress.reason = "end"
                    return
                records = await consumer.poll(POLL_S)
                if records:
                    heard_s = time.monotonic()
                elif time.monotonic() - heard_s > SILENCE_S:
                    await self._ask(starts if wanted.live else ends)
                    heard_s = time.monotonic()
                batch = []
                for record in records:
                    place = TopicPartition(record.topic, record.partition)
                    end = ends.get(place)
                    if not wanted.live and (end is None or record.offset >= end):
                        continue
                    found = await self._check(record, test)
                    if found is not None:
                        batch.append(found)
                    if self._is_enough():
                        break
                yield batch
                if self._is_enough():
                    return
                if not wanted.live:
                    await self._retire(consumer, ends, starts)
            self.progress.reason = "stopped"

    def _is_enough(self) -> bool:
        if self.progress.matched >= self.wanted.limit and not self.wanted.live:
            self.progress.reason = "limit"
        elif self.progress.scanned >= self.wanted.scan_max:
            self.progress.reason = "scan limit"
        else:
            return False
        return True

    async def _ask(self, places: Iterable[TopicPartition]) -> None:
        """A consumer waits for brokers that are away as long as it takes; somebody who looks at a
        page has to know. Raises KafkaError."""
        latest = dict.fromkeys(places, OffsetSpec.latest())
        await self.call.admin.list_offsets(latest, timeout=ASK_S)

    async def _begin(self, consumer: Consumer) -> dict[TopicPartition, int]:
        """Assign and seek; returns where each partition ends."""
        wanted, admin = self.wanted, self.call.admin
        described = (await admin.describe_topics([self.topic]))[self.topic]
        places = [
            TopicPartition(self.topic, each.partition)
            for each in described.partitions
            if each.leader is not None
            and (wanted.partitions is None or each.partition in wanted.partitions)
        ]
        if not places:
            raise bad_request("None of these partitions can be read.")
        isolation = "read_committed" if wanted.committed else "read_uncommitted"

        async def offsets(spec: OffsetSpec) -> dict[TopicPartition, int]:
            found = await admin.list_offsets(dict.fromkeys(places, spec), isolation_level=isolation)
            return {place: each.offset for place, each in found.items()}

        firsts, ends = await offsets(OffsetSpec.earliest()), await offsets(OffsetSpec.latest())
        if wanted.start == "beginning":
            starts = dict(firsts)
        elif wanted.start == "end":
            starts = dict(ends)
        elif wanted.start == "newest":
            starts = newest_starts(firsts, ends, wanted.limit)
        elif wanted.start == "offset":
            starts = {
                place: min(max(wanted.offset, firsts[place]), ends[place]) for place in places
            }
        else:
            found = await offsets(OffsetSpec.for_timestamp(wanted.timestamp))
            starts = {place: ends[place] if at < 0 else at for place, at in found.items()}
        if wanted.until is not None:
            found = await offsets(OffsetSpec.for_timestamp(wanted.until))
            ends = {place: ends[place] if at < 0 else at for place, at in found.items()}
        consumer.assign(places)
        for place, start in starts.items():
            consumer.seek(place, start)
        self._starts = starts
        self.progress.total = sum(max(0, ends[place] - starts[place]) for place in places)
        return {place: end for place, end in ends.items() if starts[place] < end}

    async def _retire(
        self,
        consumer: Consumer,
        ends: dict[TopicPartition, int],
        starts: dict[TopicPartition, int],
    ) -> None:
        """Partitions that are read to their end are read no more."""
        done = 0
        for place, start in starts.items():
            end = ends.get(place)
            if end is None:
                continue
            position = await consumer.position(place)
            if position >= end:
                del ends[place]
                consumer.pause([place])
                self._finished += end - start
            else:
                done += position - start
        self.progress.done = self._finished + done

    async def _check(self, record: Raw, test: Test | None) -> Found | None:
        progress = self.progress
        progress.scanned += 1
        progress.bytes += max(0, record.serialized_value_size)
        if self.wanted.contains and not self.masks and not self._has_text(record):
            return None
        shown = await self._shown(record)
        if self.wanted.contains and self.masks:
            # A search must not find what is hidden.
            text = json.dumps([shown["key"]["value"], shown["value"]["value"]], ensure_ascii=False)
            if self.wanted.contains not in text:
                return None
        if test is not None and not test(_view(shown)):
            return None
        progress.matched += 1
        return Found(record, shown, self.cut)

    def _has_text(self, record: Raw) -> bool:
        needle = self.wanted.contains.encode()
        return (
            (record.value is not None and needle in record.value)
            or (record.key is not None and needle in record.key)
            or any(value is not None and needle in value for _, value in record.headers)
        )

    async def _shown(self, record: Raw) -> dict[str, Any]:
        key_found, value_found = await self.call.values.decode(
            self.topic,
            record.key,
            record.value,
            record.headers,
            key_format=self.wanted.key_format,
            value_format=self.wanted.value_format,
        )
        key, found = key_found._asdict(), value_found._asdict()
        if self.masks:
            key["value"] = masked(self.masks, "key", key["value"])
            found["value"] = masked(self.masks, "value", found["value"])
        return {
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "timestamp_type": "LogAppendTime" if record.timestamp_type == 1 else "CreateTime",
            "key": key,
            "value": found,
            "headers": [[name, _header(value)] for name, value in record.headers],
            "size": max(0, record.serialized_key_size) + max(0, record.serialized_value_size),
        }


def _header(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="backslashreplace")


def _view(shown: dict[str, Any]) -> dict[str, Any]:
    """As filters see a record."""
    return {
        "key": shown["key"]["value"],
        "value": shown["value"]["value"],
        "header": dict(shown["headers"]),
        "partition": shown["partition"],
        "offset": shown["offset"],
        "timestamp": shown["timestamp"],
    }


class Pace:
    """When the next line about progress is due."""

    def __init__(self) -> None:
        self._next_s = 0.0

    def is_due(self) -> bool:
        now_s = time.monotonic()
        if now_s < self._next_s:
            return False
        self._next_s = now_s + PROGRESS_S
        return True
