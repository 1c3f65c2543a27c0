"""Consumer groups, transactions and share groups."""

from __future__ import annotations

from functools import partial

from bench import groups as group_work
from bench import sharing
from bench import transactions as transaction_work
from bench.run import Row, Run


def groups(run: Run) -> None:
    """Offset commits of 1,000 groups, and a 500-member group's way to a stable assignment."""
    members = max(50, int(500 * run.scale))
    count = max(4000, int(40_000 * run.scale))
    overrides = (
        "group.initial.rebalance.delay.ms=0",
        "group.consumer.min.heartbeat.interval.ms=500",
        "group.consumer.heartbeat.interval.ms=500",
    )
    commits: dict[str, float] = {}
    cpu: dict[str, float] = {}
    assembled: dict[tuple[str, str], float] = {}
    protocols = {"classic": group_work.classic_member, "consumer": group_work.consumer_member}
    for broker in run.brokers(*overrides):
        with broker() as server:
            server.create_topic("commits")
            server.create_topic("assembly", members)
            work = partial(group_work.offset_commits_per_second, server, "commits", groups=1000)
            work(count=4000)
            before = server.cpu_seconds()
            commits[server.name] = work(count=count)
            cpu[server.name] = 1e6 * (server.cpu_seconds() - before) / count
            for protocol, member in protocols.items():
                assembled[server.name, protocol] = group_work.seconds_to_assignment(
                    server, "assembly", members=members, member=member
                )
    run.rows.append(
        Row("offset commits, 1,000 groups", "1/s", commits["moldau"], commits.get("kafka"))
    )
    run.rows.append(Row("broker CPU, one offset commit", "us", cpu["moldau"], cpu.get("kafka")))
    for protocol in protocols:
        run.rows.append(
            Row(
                f"{members} members to an assignment, {protocol}",
                "s",
                assembled["moldau", protocol],
                assembled.get(("kafka", protocol)),
            )
        )


def transactions(run: Run) -> None:
    """1, 100 and 10,000 records in a transaction; the limit is the same without one."""
    shapes = {1: 300, 100: 200, 10_000: 30}
    with_one: dict[tuple[str, int], float] = {}
    without: dict[tuple[str, int], float] = {}
    for broker in run.brokers():
        with broker() as server:
            server.create_topic("records")
            for records, rounds in shapes.items():
                shape = {"records": records, "rounds": max(10, int(rounds * run.scale))}
                without[server.name, records] = transaction_work.plain_ms(
                    server, "records", **shape
                )
                with_one[server.name, records] = transaction_work.transaction_ms(
                    server, "records", **shape
                )
    for records in shapes:
        run.rows.append(
            Row(
                f"no transaction, {records:,} records",
                "ms",
                without["moldau", records],
                without.get(("kafka", records)),
            )
        )
        run.rows.append(
            Row(
                f"transaction of {records:,} records",
                "ms",
                with_one["moldau", records],
                with_one.get(("kafka", records)),
                without["moldau", records],
            )
        )


def share(run: Run) -> None:
    """Records that a share group's members accept, one at a time and a hundred at a time."""
    figures: dict[tuple[str, int], float] = {}
    shapes = {1: max(1000, int(10_000 * run.scale)), 100: max(20_000, int(300_000 * run.scale))}
    for broker in run.brokers():
        with broker() as server:
            for batch, count in shapes.items():
                topic = f"share-{batch}"
                server.create_topic(topic)
                sharing.fill(server, topic, count=count, batch_records=batch)
                figures[server.name, batch] = sharing.acknowledgements_per_second(
                    server, topic, count=count, batch_records=batch
                )
    for batch in shapes:
        run.rows.append(
            Row(
                f"share acknowledgements, {batch} at a time",
                "records/s",
                figures["moldau", batch],
                figures.get(("kafka", batch)),
            )
        )
