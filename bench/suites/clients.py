"""Python's clients side by side, and where a record's time goes in ours."""

from __future__ import annotations

from bench import clients as client_work
from bench.run import Row, Run


def clients(run: Run) -> None:
    """Python's clients side by side against the same broker, and what ours spend where."""
    records = {
        100: max(60_000, int(200_000 * run.scale)),
        1000: max(40_000, int(100_000 * run.scale)),
    }
    # The first round also warms the broker up, Java's above all.
    rounds = 3 if run.scale >= 1 else 2
    found: dict[str, dict[int, dict[tuple[str, str], client_work.Figures]]] = {}
    for broker in run.brokers():
        with broker() as server:
            found[server.name] = {
                size: client_work.measure(server, size, count, rounds)
                for size, count in records.items()
            }
    for size in records:
        for way in ("produce", "consume"):
            for client in client_work.CLIENTS:
                _client_rows(run, found, size, way, client)
    for size in records:
        _client_parts(run, found["moldau"][size], size)


def _client_rows(
    run: Run,
    found: dict[str, dict[int, dict[tuple[str, str], client_work.Figures]]],
    size: int,
    way: str,
    client: str,
) -> None:
    ours = found["moldau"][size][client, way]
    theirs = found["kafka"][size][client, way] if "kafka" in found else None
    what = f"{way} {size} B, {client}"
    run.rows.append(
        Row(
            what,
            "1,000 records/s",
            ours.per_second / 1e3,
            None if theirs is None else theirs.per_second / 1e3,
        )
    )
    run.rows.append(
        Row(
            f"{what}: the client's CPU",
            "us/record",
            ours.cpu_us,
            None if theirs is None else theirs.cpu_us,
        )
    )
    if client in client_work.OURS:
        for other, aim in client_work.AIMS.items():
            ratios = [
                each[size][client, way].per_second / each[size][other, way].per_second
                for each in found.values()
            ]
            run.rows.append(
                Row(
                    f"{what} / {other}",
                    "x",
                    ratios[0],
                    ratios[1] if len(ratios) > 1 else None,
                    None,
                    f">= {aim}",
                )
            )


def _client_parts(run: Run, figures: dict[tuple[str, str], client_work.Figures], size: int) -> None:
    """Where a record's time goes in our blocking clients."""
    parts = client_work.parts_of(size)
    produce, consume = figures["moldau", "produce"], figures["moldau", "consume"]
    for what, microseconds in (
        ("send, all that its caller pays", produce.caller_us),
        ("of it: append to the batch", parts.append_us),
        ("build the batch", parts.build_us),
        (
            "the rest of the sender's thread, network",
            max(0.0, produce.cpu_us - produce.caller_us - parts.build_us),
        ),
        ("fetch, the network's thread", max(0.0, consume.cpu_us - consume.caller_us)),
        ("poll, all that its caller pays", consume.caller_us),
        ("of it: decode", parts.decode_us),
        ("of it: hand over and read the value", max(0.0, consume.caller_us - parts.decode_us)),
    ):
        run.rows.append(Row(f"{size} B: {what}", "us/record", microseconds))
