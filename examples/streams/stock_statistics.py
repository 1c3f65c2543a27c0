"""Trades per stock in windows of 5 s that advance by 1 s: count, lowest and average price.

Topics: `trades` by stock, JSON with `price` in cents; `stock-statistics` gets the result.
"""

from __future__ import annotations

from typing import Any

from moldau.streams import Materialized, StreamsBuilder, TimeWindows, Topology


def add(stock: str, trade: dict[str, Any], total: dict[str, Any]) -> dict[str, Any]:
    price = trade["price"]
    return {
        "trades": total["trades"] + 1,
        "sum": total["sum"] + price,
        "lowest": price if total["lowest"] is None else min(price, total["lowest"]),
    }


def build() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("trades", key_serde="string", value_serde="json")
        .group_by_key()
        .windowed_by(TimeWindows(size=5_000, advance=1_000, grace=1_000))
        .aggregate(
            lambda: {"trades": 0, "sum": 0, "lowest": None},
            add,
            store=Materialized(name="statistics", value_serde="json"),
        )
        .to_stream()
        .map(
            lambda window, total: (
                window.key,
                {
                    "start": window.window.start,
                    "trades": total["trades"],
                    "lowest": total["lowest"],
                    "average": total["sum"] // total["trades"],
                },
            )
        )
        .to("stock-statistics", key_serde="string", value_serde="json")
    )
    return builder.build()
