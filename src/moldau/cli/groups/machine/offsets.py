"""Decides which offsets a reset gives to which partitions, and reads and writes such plans as CSV.

Starts, ends, committed offsets and offsets at a time are passed in. Invariant: a planned offset is
between the start and the end of its log, except those copied from a commit (`to_current`).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from io import StringIO

from moldau.client.topics import TopicPartition
from moldau.config.durations import parse_duration_ms

__all__ = [
    "OffsetPlanError",
    "Planned",
    "clamp",
    "export_csv",
    "parse_csv_plan",
    "parse_datetime_ms",
    "parse_duration_argument_ms",
    "parse_topic_argument",
    "partitions_of",
    "shift",
    "to_current",
    "to_time",
]

Offsets = dict[TopicPartition, int]

_DATETIME = re.compile(
    r"(\d+)-(\d+)-(\d+)T(\d+):(\d+):(\d+)\.(\d+)(Z|[+-]\d\d(?::?\d\d)?)", re.ASCII
)
_NUMBER = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)


class OffsetPlanError(ValueError):
    """The requested offsets cannot be planned: the message names the part and the reason."""


@dataclass(frozen=True, slots=True)
class Planned:
    """New offsets, and notes for the user."""

    offsets: Offsets
    warnings: tuple[str, ...] = ()


def parse_topic_argument(text: str) -> tuple[str, tuple[int, ...] | None]:
    """`topic`, or `topic:0,1,2` with its partitions."""
    if ":" not in text:
        return text, None
    parts = text.split(":")
    if len(parts) != 2 or not parts[1]:
        raise OffsetPlanError(f"Invalid topic arg '{text}', expected topic name and partitions")
    partitions = []
    for part in parts[1].split(","):
        if not part.isascii() or not part.isdigit():
            raise OffsetPlanError(f"Invalid partition '{part}' specified in topic arg '{text}''")
        partitions.append(int(part))
    return parts[0], tuple(partitions)


def partitions_of(
    arguments: Iterable[str], partitions_by_topic: Mapping[str, Iterable[int]]
) -> list[TopicPartition]:
    """The partitions that `--topic` arguments name; whole topics have those of the mapping."""
    found: dict[TopicPartition, None] = {}
    for argument in arguments:
        topic, partitions = parse_topic_argument(argument)
        for partition in partitions_by_topic[topic] if partitions is None else partitions:
            found[TopicPartition(topic, partition)] = None
    return list(found)


def parse_datetime_ms(text: str) -> int:
    """`2026-01-31T12:00:00.000`, in UTC unless it ends in a zone (`Z`, `+02`, `+02:00`)."""
    _, found, time = text.partition("T")
    if not found:
        raise OffsetPlanError(
            "Error parsing timestamp. It does not contain a 'T' according to ISO8601 format"
        )
    if not any(sign in time for sign in "+-Z"):
        text += "Z"
    match = _DATETIME.fullmatch(text)
    problem = f'Unparseable date: "{text}". The form is YYYY-MM-DDThh:mm:ss.sss'
    if match is None:
        raise OffsetPlanError(problem)
    year, month, day, hour, minute, second, millis = map(int, match.groups()[:7])
    if millis > 999:
        raise OffsetPlanError(problem)
    try:
        moment = datetime(year, month, day, hour, minute, second, millis * 1000, _zone(match[8]))
    except ValueError:
        raise OffsetPlanError(problem) from None
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _zone(text: str) -> timezone:
    if text == "Z":
        return UTC
    digits = text[1:].replace(":", "")
    minutes = int(digits[:2]) * 60 + int(digits[2:] or 0)
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))


def parse_duration_argument_ms(text: str) -> int:
    """`P1DT2H3M4.5S` as milliseconds; a leading minus looks into the future, as in Java."""
    sign, plain = (-1, text[1:]) if text.startswith("-") else (1, text)
    duration = parse_duration_ms(plain.upper())
    if duration is None:
        raise OffsetPlanError(
            f"Text cannot be parsed to a Duration: {text}. The form is PnDTnHnMnS"
        )
    return sign * duration


def clamp(wanted: Mapping[TopicPartition, int], starts: Offsets, ends: Offsets) -> Planned:
    """The wanted offsets, moved to the nearest one that the log has."""
    offsets: Offsets = {}
    warnings = []
    for partition, offset in wanted.items():
        start, end = starts[partition], ends[partition]
        offsets[partition] = min(max(offset, start), end)
        if offset > end:
            warnings.append(
                f"New offset ({offset}) is higher than latest offset for topic partition "
                f"{partition}. Value will be set to {end}"
            )
        elif offset < start:
            warnings.append(
                f"New offset ({offset}) is lower than earliest offset for topic partition "
                f"{partition}. Value will be set to {start}"
            )
    return Planned(offsets, tuple(warnings))


def shift(
    partitions: Iterable[TopicPartition],
    by: int,
    committed: Mapping[TopicPartition, int],
    starts: Offsets,
    ends: Offsets,
) -> Planned:
    """The committed offsets moved by a number."""
    wanted = {}
    for partition in partitions:
        if partition not in committed:
            raise OffsetPlanError(
                f"Cannot shift offset for partition {partition} since there is no current "
                "committed offset"
            )
        wanted[partition] = committed[partition] + by
    return clamp(wanted, starts, ends)


def to_current(
    partitions: Iterable[TopicPartition], committed: Mapping[TopicPartition, int], ends: Offsets
) -> Planned:
    """The committed offsets; the end if there is none."""
    return Planned({p: committed[p] if p in committed else ends[p] for p in partitions})


def to_time(
    partitions: Iterable[TopicPartition], found: Mapping[TopicPartition, int], ends: Offsets
) -> Planned:
    """The offsets found for a time; the end if all records are older (found is -1)."""
    offsets: Offsets = {}
    warnings = []
    for partition in partitions:
        offset = found[partition]
        if offset < 0:
            offset = ends[partition]
            warnings.append(
                f"Partition {partition.partition} from topic {partition.topic} is empty. "
                "Falling back to latest known offset."
            )
        offsets[partition] = offset
    return Planned(offsets, tuple(warnings))


def export_csv(plan: Mapping[str, Mapping[TopicPartition, int]], *, with_group: bool) -> str:
    """Lines `topic,partition,offset`, led by the group where there may be several."""
    out = StringIO()
    # Quotes only where needed, and Kafka's line ends.
    writer = csv.writer(out, lineterminator="\n")
    for group, offsets in plan.items():
        for (topic, partition), offset in offsets.items():
            row: list[object] = [topic, partition, offset]
            writer.writerow([group, *row] if with_group else row)
    return out.getvalue()


def parse_csv_plan(text: str, groups: Sequence[str]) -> dict[str, dict[TopicPartition, int]]:
    """A plan by group. Without a group in the lines it is that of the only one in `groups`."""
    rows = [(number, row) for number, row in enumerate(csv.reader(StringIO(text)), 1) if row]
    if not rows:
        raise OffsetPlanError("The file with the offsets is empty")
    single = len(groups) == 1 and len(rows[0][1]) == 3
    width = 3 if single else 4
    plan: dict[str, dict[TopicPartition, int]] = {}
    for number, row in rows:
        if len(row) != width or not all(_NUMBER.fullmatch(cell) for cell in row[-2:]):
            form = "topic,partition,offset" if single else "group,topic,partition,offset"
            raise OffsetPlanError(
                f"Line {number} of the file with the offsets is '{','.join(row)}', not {form}"
            )
        group = groups[0] if single else row[0]
        partition = TopicPartition(row[-3], int(row[-2]))
        plan.setdefault(group, {})[partition] = int(row[-1])
    return plan
