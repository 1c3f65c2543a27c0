"""`moldau mirror status`, `failover` and `failback`."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping
from dataclasses import asdict

from moldau.cli.support.failures import Failure
from moldau.cli.support.output import print_now
from moldau.cli.support.tables import Table, aligned, print_json
from moldau.client.errors import KafkaError
from moldau.config.errors import ConfigError
from moldau.mirror.machine.settings import FlowName, FlowSettings
from moldau.mirror.moving import Moved, move_groups
from moldau.mirror.status import FlowStatus, flow_status

__all__ = ["move", "status"]


def status(arguments: argparse.Namespace, flows: Mapping[FlowName, FlowSettings]) -> int:
    async def all_flows() -> list[FlowStatus]:
        return [await flow_status(settings) for settings in flows.values()]

    try:
        found = asyncio.run(all_flows())
    except KafkaError as error:
        raise Failure(str(error)) from None
    if arguments.json:
        print_json([{"name": each.name, **asdict(each)} for each in found])
        return int(any(each.error for each in found))
    for each in found:
        age = each.heartbeat_age_s
        beat = "no heartbeat" if age is None else f"heartbeat {age:.1f} s ago"
        kind = f"{each.groups} groups followed" if each.is_enabled else "heartbeats only"
        print_now(f"{each.name}: {beat}, {kind}")
        if each.error is not None:
            print_now(each.error)
        rows: list[tuple[str, ...]] = [
            (t.topic, t.remote, str(t.partitions), str(t.records_behind), f"{t.seconds_behind:.1f}")
            for t in each.topics
        ]
        if rows:
            header = ("TOPIC", "COPY", "PARTITIONS", "RECORDS BEHIND", "SECONDS BEHIND")
            _print_table(header, rows)
    return int(any(each.error for each in found))


def move(arguments: argparse.Namespace, flows: Mapping[FlowName, FlowSettings]) -> int:
    try:
        found = asyncio.run(
            move_groups(
                flows,
                left=arguments.from_,
                reached=arguments.to_,
                groups=arguments.group,
                dry_run=arguments.dry_run,
                has_source=not arguments.without_source,
                wait_s=arguments.wait,
                force=arguments.force,
            )
        )
    except (KafkaError, ConfigError) as error:
        raise Failure(str(error)) from None
    if arguments.json:
        print_json({"moves": [asdict(each) for each in found.moves], "refused": found.refused,
                    "done": found.is_done})  # fmt: skip
    else:
        _print(found, arguments)
    return 1 if found.refused else 0


def _print(found: Moved, arguments: argparse.Namespace) -> None:
    if not found.moves:
        print_now(f"No group has offsets in {arguments.from_} that the mirror follows.")
        return
    header = ("GROUP", arguments.from_, "OFFSET", arguments.to_, "OFFSET", "EXACT", "BEHIND")
    rows: list[tuple[str, ...]] = [
        (
            each.group_id,
            str(each.left),
            str(each.left_offset),
            str(each.reached),
            "-" if each.to_offset is None else str(each.to_offset),
            "yes" if each.is_exact else "no",
            str(each.behind),
        )
        for each in found.moves
    ]
    _print_table(header, rows)
    for group, reason in sorted(found.refused.items()):
        print_now(f"{group} stays: it {reason}" if reason.startswith("has ") else
                  f"{group} stays: {reason}")  # fmt: skip
    count = len({each.group_id for each in found.moves} - set(found.refused))
    if found.is_done:
        print_now(f"{count} groups moved to {arguments.to_}. Start their consumers there.")
    else:
        print_now(f"Dry run: {count} groups would move to {arguments.to_}; nothing was changed.")


def _print_table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    table = Table(*header, plain=aligned)
    for row in rows:
        table.add(*row)
    table.show()
