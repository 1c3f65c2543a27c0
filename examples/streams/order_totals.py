"""The total of each customer's orders, also when an order changes or is deleted: a table of tables.

Topics: `orders` by order, JSON with `customer` and `amount`; `customer-totals` gets the result.
"""

from __future__ import annotations

from moldau.streams import StreamsBuilder, Topology


def build() -> Topology:
    builder = StreamsBuilder()
    (
        builder.table("orders", key_serde="string", value_serde="json", store="orders")
        .group_by(
            lambda order, value: (value["customer"], value["amount"]),
            key_serde="string",
            value_serde="long",
        )
        .reduce(
            lambda total, amount: total + amount,
            lambda total, amount: total - amount,
            store="totals",
        )
        .to_stream()
        .to("customer-totals", key_serde="string", value_serde="long")
    )
    return builder.build()
