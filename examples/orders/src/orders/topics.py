"""The topics and what each is for. They are made once, by `python -m orders.topics`.

All have the same number of partitions: topics with the same key can then be joined partition by
partition, and a table's or a changelog's partition belongs to the input's partition of that number.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Final

from moldau.client import Admin, NewTopic
from moldau.client.errors import TopicExistsError

PARTITIONS: Final = 4

#: Every state an order has been in, by order id.
ORDERS: Final = "orders"
#: What each validator says about each order, by order id.
ORDER_VALIDATIONS: Final = "order-validations"
#: How much of each product the warehouse has received, by product.
WAREHOUSE_INVENTORY: Final = "warehouse-inventory"
#: Who the customers are, by customer id.
CUSTOMERS: Final = "customers"
#: One for every validated order, by order id.
PAYMENTS: Final = "payments"
#: One notice for every order that reached a final state, by order id.
EMAILS: Final = "emails"
#: Written by the Spark pipeline `revenue-per-minute`, by minute; the newest value counts.
REVENUE: Final = "revenue-per-minute"
#: What no service and no pipeline could read, with the reason in its headers.
DEAD_LETTER: Final = "orders-dead-letter"

#: `orders` once more, by what the service that owns it has to count by.
ORDERS_BY_CUSTOMER: Final = "fraud-orders-by-customer"
ORDERS_BY_PRODUCT: Final = "inventory-orders-by-product"

FRAUD_CHANGELOG: Final = "fraud-changelog"
INVENTORY_CHANGELOG: Final = "inventory-changelog"
AGGREGATOR_CHANGELOG: Final = "aggregator-changelog"
EMAILS_CHANGELOG: Final = "emails-changelog"

_COMPACTED: Final[Mapping[str, str]] = {"cleanup.policy": "compact"}

ALL: Final[Mapping[str, Mapping[str, str]]] = {
    ORDERS: {},
    ORDER_VALIDATIONS: {},
    WAREHOUSE_INVENTORY: _COMPACTED,
    CUSTOMERS: _COMPACTED,
    PAYMENTS: {},
    EMAILS: {},
    REVENUE: _COMPACTED,
    DEAD_LETTER: {},
    ORDERS_BY_CUSTOMER: {},
    ORDERS_BY_PRODUCT: {},
    FRAUD_CHANGELOG: _COMPACTED,
    INVENTORY_CHANGELOG: _COMPACTED,
    AGGREGATOR_CHANGELOG: _COMPACTED,
    EMAILS_CHANGELOG: _COMPACTED,
}


def create(bootstrap_servers: str) -> list[str]:
    """Those that were missing."""
    wanted = [
        NewTopic(name, num_partitions=PARTITIONS, configs=configs) for name, configs in ALL.items()
    ]
    with Admin(bootstrap_servers=bootstrap_servers) as admin:
        results = admin.create_topics(wanted, check=False)
        for error in results.errors.values():
            if not isinstance(error, TopicExistsError):
                raise error
        _check_partitions(admin)
        return sorted(set(ALL) - set(results.errors))


def _check_partitions(admin: Admin) -> None:
    for name, topic in admin.describe_topics(list(ALL)).items():
        if len(topic.partitions) != PARTITIONS:
            raise SystemExit(
                f"topic {name} has {len(topic.partitions)} partitions, {PARTITIONS} are needed: "
                "delete it, or take another cluster"
            )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m orders.topics", description="make the topics")
    parser.add_argument("--bootstrap-server", default="127.0.0.1:9092")
    made = create(parser.parse_args().bootstrap_server)
    print("made:", ", ".join(made) or "nothing, all were there")


if __name__ == "__main__":
    main()
