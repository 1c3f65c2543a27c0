"""Windows, joins of streams and lookups, with late rows, against recomputations in plain Python.

Each run of a query reads what has come since the run before, and knows the watermark that the run
before has left.
"""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from moldau.client import Producer
from moldau.pipelines import Pipeline, build
from moldau.testing import Broker
from spark.running import at_work, committed, finished
from support.processes import ROOT
from support.waiting import eventually

EXAMPLES = ROOT / "examples" / "pipelines"
MINUTE = 60
#: The beginning of an hour.
T0 = int(time.time()) // 3600 * 3600
Row = dict[str, Any]


def text_of(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def example(name: str, **changes: Any) -> Pipeline:
    """An example that ends when it has read what there is."""
    fields = Pipeline.load(EXAMPLES / f"{name}.yaml").to_json()
    return Pipeline.from_json({**fields, "trigger": "available now", **changes})


def run(spark: Any, broker: Broker, checkpoint: str, *pipelines: Pipeline) -> None:
    """All at once."""
    bootstrap = broker.bootstrap_servers
    finished(
        lambda: [
            query
            for each in pipelines
            for query in build.start(
                spark, each, bootstrap=bootstrap, checkpoint=f"{checkpoint}/{each.name}"
            )
        ]
    )


def send(broker: Broker, topic: str, rows: Iterable[Row]) -> None:
    """`at` and the like are seconds."""
    if topic not in broker.topics:
        broker.create_topic(topic)
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for row in rows:
            producer.send(topic, value=json.dumps(written(row)).encode())


def written(row: Row) -> Row:
    """As it is in JSON: times as text, and no nulls."""
    return {
        name: text_of(value) if name.endswith(("at", "_start", "_end")) else value
        for name, value in row.items()
        if value is not None
    }


def values(broker: Broker, topic: str) -> list[str]:
    found = committed(broker.bootstrap_servers, topic)
    return sorted(json.dumps(json.loads(one.value or b"null"), sort_keys=True) for one in found)


def expected(rows: Iterable[Row]) -> list[str]:
    return sorted(json.dumps(written(row), sort_keys=True) for row in rows)


# Windows


def hops(at: float) -> Iterator[tuple[int, int]]:
    """The windows of ten minutes that a time is in; one begins every five."""
    first = int(at) // (5 * MINUTE) * 5 * MINUTE
    for start in (first - 5 * MINUTE, first):
        yield start, start + 10 * MINUTE


def revenue(rows: Iterable[Row], closed_until: float) -> list[Row]:
    groups: dict[tuple[int, int, str], list[float]] = defaultdict(list)
    for row in rows:
        for start, end in hops(row["at"]):
            if end <= closed_until and end > row.get("watermark", 0):
                groups[start, end, row["shop"]].append(row["amount"])
    return [
        {
            "window_start": start,
            "window_end": end,
            "shop": shop,
            "orders": len(amounts),
            "revenue": sum(amounts),
        }
        for (start, end, shop), amounts in groups.items()
    ]


def sessions(rows: Iterable[Row], closed_until: float) -> list[Row]:
    by_user: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["at"]):
        by_user[row["user"]].append(row)
    found = []
    for user, clicks in by_user.items():
        visits: list[list[Row]] = []
        for click in clicks:
            if visits and click["at"] < visits[-1][-1]["at"] + 5 * MINUTE:
                visits[-1].append(click)
            else:
                visits.append([click])
        found += [
            {
                "window_start": visit[0]["at"],
                "window_end": visit[-1]["at"] + 5 * MINUTE,
                "user": user,
                "clicks": len(visit),
                "pages": sorted({click["page"] for click in visit}),
            }
            for visit in visits
        ]
    return [one for one in found if one["window_end"] <= closed_until]


@pytest.mark.slow("two queries with state, each started again")
def test_hopping_and_session_windows_with_late_rows(
    spark: Any, broker: Broker, checkpoint: str
) -> None:
    chance = random.Random(11)
    pipelines = [example("revenue-of-shops"), example("visits")]
    times = [T0 + chance.randrange(20 * MINUTE) for _ in range(59)] + [T0 + 20 * MINUTE]
    watermark = T0 + 18 * MINUTE
    far = T0 + 180 * MINUTE
    orders = [
        {"id": f"o{n}", "shop": chance.choice("ab"), "amount": float(chance.randrange(9)), "at": at}
        for n, at in enumerate(times)
    ]
    clicks = [
        {"user": chance.choice("xyz"), "page": chance.choice("pq"), "at": at}
        for at in chance.sample(times, 25)
    ] + [{"user": "z", "page": "p", "at": T0 + 20 * MINUTE}]
    send(broker, "orders-of-shops", orders)
    send(broker, "clicks", clicks)
    run(spark, broker, checkpoint, *pipelines)
    # Windows that have ended are written, and only those.
    assert values(broker, "revenue-of-shops") == expected(revenue(orders, watermark))
    assert values(broker, "visits") == expected(sessions(clicks, watermark))

    # Some are too late for all of their windows, some for one of two, some for none.
    late = [
        {"id": f"l{minute}", "shop": "a", "amount": 1.0, "at": T0 + minute * MINUTE}
        for minute in (1, 12, 17, 19)
    ]
    seen = {click["at"] for click in clicks}
    late_clicks = [
        {"user": "z", "page": "late", "at": T0 + 19 * MINUTE + 1},
        {"user": "new", "page": "too-late", "at": T0 + 1 * MINUTE},
    ]
    assert T0 + 19 * MINUTE + 1 not in seen
    send(broker, "orders-of-shops", [*late, {**orders[0], "id": "far", "at": far}])
    send(broker, "clicks", [*late_clicks, {"user": "far", "page": "p", "at": far}])
    run(spark, broker, checkpoint, *pipelines)
    counted = [*orders, *({**row, "watermark": watermark} for row in late)]
    closed = far - 2 * MINUTE
    assert values(broker, "revenue-of-shops") == expected(revenue(counted, closed))
    in_time = [*clicks, late_clicks[0]]
    assert values(broker, "visits") == expected(sessions(in_time, closed))


# Joins


def pairs(orders: Sequence[Row], payments: Sequence[Row], kind: str) -> list[Row]:
    found, paid, used = [], set(), set()
    for number, order in enumerate(orders):
        for index, payment in enumerate(payments):
            apart = payment["paid_at"] - order["at"]
            if payment["id"] == order["id"] and -MINUTE <= apart <= 10 * MINUTE:
                found.append({**order, **payment})
                paid.add(number)
                used.add(index)
    if kind in ("left", "full"):
        found += [order for number, order in enumerate(orders) if number not in paid]
    if kind in ("right", "full"):
        found += [payment for index, payment in enumerate(payments) if index not in used]
    return found


@pytest.mark.long("queries with state, started again; test_pipelines joins two topics")
@pytest.mark.parametrize(
    "kind",
    [
        "full",
        *(
            pytest.param(kind, marks=pytest.mark.long("the full join shows the same"))
            for kind in ("inner", "left", "right")
        ),
    ],
)
def test_joins_of_streams_with_late_rows(
    spark: Any, broker: Broker, checkpoint: str, topic: str, kind: str
) -> None:
    chance = random.Random(5)
    fields = example("orders-with-payments").to_json()
    fields["sources"]["orders"]["topic"] = f"{topic}-orders"
    fields["sources"]["payments"]["topic"] = f"{topic}-payments"
    fields["sink"]["topic"] = f"{topic}-out"
    fields["steps"][0]["join"]["kind"] = kind
    pipeline = Pipeline.from_json(fields)
    orders = [
        {"id": f"o{n % 25}", "amount": float(n), "at": T0 + chance.randrange(29 * MINUTE)}
        for n in range(40)
    ] + [
        {"id": "newest", "amount": 0.0, "at": T0 + 30 * MINUTE},
        {"id": "waits", "amount": 1.0, "at": T0 + 25 * MINUTE},
        {"id": "waited", "amount": 2.0, "at": T0 + 4 * MINUTE},
    ]
    payments = [
        {
            "id": f"o{chance.randrange(30)}",
            "paid": float(n),
            "paid_at": T0 + chance.randrange(29 * MINUTE),
        }
        for n in range(40)
    ] + [{"id": "latest", "paid": 0.0, "paid_at": T0 + 30 * MINUTE}]
    send(broker, f"{topic}-orders", orders)
    send(broker, f"{topic}-payments", payments)
    run(spark, broker, checkpoint, pipeline)
    # The watermark is 28 minutes; rows before it are too late.
    in_time = {"id": "waits", "paid": 1.0, "paid_at": T0 + 29 * MINUTE}
    too_late = {"id": "waited", "paid": 2.0, "paid_at": T0 + 5 * MINUTE}
    far = T0 + 300 * MINUTE
    send(broker, f"{topic}-orders", [{"id": "far", "amount": 0.0, "at": far}])
    send(
        broker,
        f"{topic}-payments",
        [in_time, too_late, {"id": "afar", "paid": 0.0, "paid_at": far}],
    )
    run(spark, broker, checkpoint, pipeline)
    found = values(broker, f"{topic}-out")
    assert found == expected(pairs(orders, [*payments, in_time], kind))


# Lookups


def test_a_compacted_topic_is_looked_up_as_it_changes(
    spark: Any, broker: Broker, checkpoint: str
) -> None:
    broker.create_topic("customers", config={"cleanup.policy": "compact"})
    broker.create_topic("orders-of-customers")
    pipeline = example("orders-with-customers", trigger="0 seconds")
    customers: dict[str, Row] = {}
    orders: list[Row] = []

    def customer(key: str, row: Row | None) -> None:
        value = None if row is None else json.dumps(row).encode()
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            producer.send("customers", key=key.encode(), value=value)
        customers[key] = row or {}

    def order(number: int, key: str | None) -> None:
        send(broker, "orders-of-customers", [{"id": f"o{number}", "customer": key}])
        looked_up = {
            f"customer_{name}": value for name, value in customers.get(key or "", {}).items()
        }
        orders.append({"id": f"o{number}", "customer": key, **looked_up})

    def all_written() -> bool:
        return values(broker, "orders-with-customers") == expected(orders)

    customer("ann", {"name": "Ann", "city": "Brno"})
    customer("bob", {"name": "Bob"})
    order(1, "ann")
    bootstrap = broker.bootstrap_servers
    query = at_work(
        lambda: build.start(spark, pipeline, bootstrap=bootstrap, checkpoint=checkpoint)[0]
    )
    changes: list[tuple[str, Row | None]] = [
        ("ann", {"name": "Ann", "city": "Praha"}),
        ("bob", None),
        ("cyd", {"name": "Cyd", "city": "Linz"}),
    ]
    for number, (key, row) in enumerate(changes):
        customer(key, row)
        order(10 * number + 2, key)
        order(10 * number + 3, "ann")
        order(10 * number + 4, None)
        eventually(all_written, what=f"orders after {key} has changed", seconds_max=120)
    query.stop()
