"""Computes the new offsets of a reset, with the queries that the chosen option needs."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from moldau.cli.groups.group_queries import GroupCluster
from moldau.cli.groups.machine.offsets import (
    Planned,
    clamp,
    parse_csv_plan,
    parse_datetime_ms,
    parse_duration_argument_ms,
    shift,
    to_current,
    to_time,
)
from moldau.cli.groups.options import has
from moldau.cli.support.failures import ToolError
from moldau.cli.support.java_errors import print_error
from moldau.client.topics import TopicPartition

__all__ = ["new_offsets"]

Committed = Callable[[], Mapping[TopicPartition, int]]


def new_offsets(
    cluster: GroupCluster,
    arguments: argparse.Namespace,
    group: str,
    partitions: Collection[TopicPartition],
    committed: Committed,
) -> dict[TopicPartition, int]:
    """The offsets of the given scenario; `committed` is called only if it is needed."""
    planned = _planned(cluster, arguments, group, partitions, committed)
    by_time = has(arguments, "--to-datetime") or has(arguments, "--by-duration")
    for warning in planned.warnings:
        # As Kafka's tools: one is a line of the output, the other goes to the log.
        if by_time:
            print(f"\nWarn: {warning}")
        else:
            print(f"WARN {warning}", file=sys.stderr)
    return planned.offsets


def _planned(
    cluster: GroupCluster,
    arguments: argparse.Namespace,
    group: str,
    partitions: Collection[TopicPartition],
    committed: Committed,
) -> Planned:
    if has(arguments, "--to-offset"):
        wanted = dict.fromkeys(partitions, arguments.to_offset)
        return clamp(wanted, cluster.starts(partitions), cluster.ends(partitions))
    if has(arguments, "--to-earliest"):
        return Planned(cluster.starts(partitions))
    if has(arguments, "--to-latest"):
        return Planned(cluster.ends(partitions))
    if has(arguments, "--shift-by"):
        return shift(
            partitions,
            arguments.shift_by,
            committed(),
            cluster.starts(partitions),
            cluster.ends(partitions),
        )
    if has(arguments, "--to-datetime"):
        return _at(cluster, partitions, parse_datetime_ms(arguments.to_datetime))
    if has(arguments, "--by-duration"):
        ago_ms = parse_duration_argument_ms(arguments.by_duration)
        return _at(cluster, partitions, time.time_ns() // 1_000_000 - ago_ms)
    if has(arguments, "--from-file"):
        return _from_file(cluster, arguments, group)
    offsets = committed()
    return to_current(
        partitions,
        offsets,
        cluster.ends(partition for partition in partitions if partition not in offsets),
    )


def _at(cluster: GroupCluster, partitions: Collection[TopicPartition], timestamp: int) -> Planned:
    found = cluster.at_time(partitions, timestamp)
    return to_time(partitions, found, cluster.ends(p for p in partitions if found[p] < 0))


def _from_file(cluster: GroupCluster, arguments: argparse.Namespace, group: str) -> Planned:
    try:
        text = Path(arguments.from_file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ToolError(f"cannot read {arguments.from_file}: {reason}") from None
    wanted = parse_csv_plan(text, arguments.group).get(group)
    if wanted is None:
        print_error(f"No reset plan for group {group} found")
        return Planned({})
    return clamp(wanted, cluster.starts(wanted), cluster.ends(wanted))
