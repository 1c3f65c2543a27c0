"""A plan in words and numbers, and traffic from counters."""

from __future__ import annotations

import pytest

from moldau.balance.machine.model import Broker, Cluster, Partition
from moldau.balance.machine.planner import plan
from moldau.balance.machine.report import (
    as_document,
    bars,
    bytes_text,
    duration_text,
    load_rows,
    summary,
)
from moldau.balance.machine.traffic import Rates, shared_traffic, topic_rates

IN = "kafka_server_brokertopicmetrics_bytesin_total"
OUT = "kafka_server_brokertopicmetrics_bytesout_total"


@pytest.mark.parametrize(
    ("amount", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 KB"), (250e9, "250 GB")]
)
def test_bytes(amount: float, text: str) -> None:
    assert bytes_text(amount) == text


@pytest.mark.parametrize(("seconds", "text"), [(4, "4 s"), (600, "10 min"), (9000, "2.5 h")])
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_plan_shows_each_broker_before_and_after() -> None:
    cluster = Cluster([Broker(1), Broker(2)], [Partition("t", n, (1,), 1e9) for n in range(4)])
    planned = plan(cluster)
    headers, one, two = load_rows(planned)
    assert headers == ("BROKER", "DISK", "REPLICAS", "LEADERS")
    assert one == ("1", "4.0 GB > 2.0 GB", "4 > 2", "4 > 2")
    assert two == ("2", "0 B > 2.0 GB", "0 > 2", "0 > 2")
    assert [line.count("█") for line in bars(planned)] == [0, 45, 15]
    assert list(summary(planned, 10_000_000)) == [
        "2 partitions change, 2 replicas are copied: 2.0 GB.",
        "At 10.0 MB/s that takes at least 3 min.",
    ]
    document = as_document(planned, None)
    assert document["bytesMoved"] == 2_000_000_000
    assert [each["replicas"] for each in document["partitions"]] == [[2], [2]]


def test_empty_cluster_has_nothing_to_move() -> None:
    planned = plan(Cluster([Broker(1)], []))
    assert list(summary(planned, None)) == ["Nothing to move."]
    assert list(bars(planned)) == []


def test_rates_are_what_was_counted_in_between() -> None:
    before = [[(IN, "t", 100.0), (OUT, "t", 50.0), (IN, "", 999.0)], [(IN, "t", 1000.0)]]
    # The second broker has started again.
    after = [[(IN, "t", 300.0), (OUT, "t", 150.0), (IN, "", 9999.0)], [(IN, "t", 40.0)]]
    assert topic_rates(before, after, 2.0) == {"t": Rates(120.0, 50.0)}


def test_traffic_of_a_topic_is_divided_by_size() -> None:
    listed = [Partition("t", 0, (1,), 30.0), Partition("t", 1, (1,), 10.0), Partition("u", 0, (1,))]
    found = shared_traffic(listed, {"t": Rates(40.0, 80.0), "u": Rates(5.0, 0.0)})
    assert [(each.bytes_in, each.bytes_out) for each in found] == [(30, 60), (10, 20), (5, 0)]
