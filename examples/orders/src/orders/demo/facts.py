"""Reads topics, tables and folders from their beginning, when everything is over."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from moldau.client import Admin, Consumer, ConsumerRecord, OffsetSpec, TopicPartition
from moldau.client.errors import KafkaTimeoutError
from orders import topics
from orders.demo.checks import Facts, Revenue
from orders.load import get_order
from orders.model import Order, decoded

__all__ = ["collect", "newest_revenue", "read_topic"]

_READ_S_MAX: Final = 60.0
_GOT_MAX: Final = 20


def read_topic(bootstrap_servers: str, topic: str) -> Iterator[ConsumerRecord]:
    """All that is committed, to the end of what is there now."""
    config = {"bootstrap.servers": bootstrap_servers, "client.id": "orders-facts"}
    with (
        Admin(config) as admin,
        Consumer(
            config, auto_offset_reset="earliest", isolation_level="read_committed"
        ) as consumer,
    ):
        places = [TopicPartition(topic, each.partition) for each in consumer.partitions_for(topic)]
        ends = admin.list_offsets(dict.fromkeys(places, OffsetSpec.latest()))
        consumer.assign(places)
        deadline = time.monotonic() + _READ_S_MAX
        while any(consumer.position(each) < ends[each].offset for each in places):
            if time.monotonic() > deadline:
                raise KafkaTimeoutError(f"topic {topic} was not read in {_READ_S_MAX:.0f} s")
            yield from consumer.poll(1.0)


def _values(bootstrap_servers: str, topic: str) -> list[dict[str, Any]]:
    found = (decoded(record.value) for record in read_topic(bootstrap_servers, topic))
    return [each for each in found if each is not None]


def _table(bootstrap_servers: str, topic: str) -> dict[str, dict[str, Any]]:
    """The newest row of each key."""
    rows: dict[str, dict[str, Any]] = {}
    for record in read_topic(bootstrap_servers, topic):
        value = decoded(record.value)
        if value is None:
            rows.pop(record.key.decode(), None)
        else:
            rows[record.key.decode()] = value
    return rows


def newest_revenue(bootstrap_servers: str) -> Revenue:
    rows = _table(bootstrap_servers, topics.REVENUE)
    return {key: (row["orders"], row["revenue_cents"]) for key, row in rows.items()}


def collect(
    bootstrap_servers: str,
    *,
    posted: Mapping[str, object],
    url: str,
    mailbox: Path,
    tables: Mapping[str, Callable[[], Sequence[tuple[str, str]]]],
    with_revenue: bool,
) -> Facts:
    orders = [Order.from_json(each) for each in _values(bootstrap_servers, topics.ORDERS)]
    changes = _table(bootstrap_servers, topics.INVENTORY_CHANGELOG)
    reserved: Counter[str] = Counter()
    for key, row in changes.items():
        if key.startswith("order:"):
            reserved[row["product"]] += row["reserved"]
    stock = _table(bootstrap_servers, topics.WAREHOUSE_INVENTORY)
    step = max(1, len(posted) // _GOT_MAX)
    return Facts(
        posted=frozenset(posted),
        orders=orders,
        validations=_values(bootstrap_servers, topics.ORDER_VALIDATIONS),
        payments=_values(bootstrap_servers, topics.PAYMENTS),
        emails=_values(bootstrap_servers, topics.EMAILS),
        dead_letters=sum(1 for _ in read_topic(bootstrap_servers, topics.DEAD_LETTER)),
        sold={
            key.removeprefix("sold:"): row["quantity"]
            for key, row in changes.items()
            if key.startswith("sold:")
        },
        reserved={product: count for product, count in reserved.items() if count},
        stock={key: row["stock"] for key, row in stock.items()},
        mailbox=frozenset(path.stem for path in mailbox.glob("*.eml")),
        got=[Order.from_json(get_order(url, each, wait="final")) for each in list(posted)[::step]],
        revenue=newest_revenue(bootstrap_servers) if with_revenue else None,
        tables={name: read() for name, read in tables.items()},
    )
