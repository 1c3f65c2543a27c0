"""What is logged when the cluster, or a node of it, cannot be reached."""

from __future__ import annotations

from moldau.client.outages import Outages

ALL = frozenset({1, 2, 3})
REFUSED = "cannot connect to node 2 at h:2: connection refused"


def test_an_outage_of_the_cluster_is_logged_when_it_begins_and_when_it_ends() -> None:
    outages = Outages()
    problem = "no broker can be reached at h:1: connection refused"
    assert outages.cluster_failed(1_000, problem) == [
        "No broker can be reached at h:1: connection refused. Retrying"
    ]
    assert [outages.cluster_failed(now_ms, problem) for now_ms in range(1_100, 60_000, 900)].count(
        []
    ) == 66
    assert outages.cluster_reached(13_300, "h:1", ALL) == ["Reached h:1 again after 12.3 s"]
    assert outages.cluster_reached(14_000, "h:1", ALL) == []


def test_an_outage_of_a_node_is_logged_once_the_others_were_reached() -> None:
    outages = Outages()
    outages.node_failed(2, REFUSED)
    outages.node_failed(2, REFUSED)
    assert outages.cluster_reached(1_000, "h:1", ALL) == [
        "Cannot connect to node 2 at h:2: connection refused. Retrying"
    ]
    outages.node_failed(2, REFUSED)
    assert outages.cluster_reached(2_000, "h:1", ALL) == []
    assert outages.node_reached(3_500, 2, "node 2 at h:2") == [
        "Connected to node 2 at h:2 again after 2.5 s"
    ]
    assert outages.node_reached(4_000, 2, "node 2 at h:2") == []


def test_the_outage_of_the_cluster_says_it_for_its_nodes() -> None:
    outages = Outages()
    outages.node_failed(2, REFUSED)
    assert len(outages.cluster_failed(1_000, "no broker can be reached")) == 1
    outages.node_failed(2, REFUSED)
    assert outages.cluster_reached(2_000, "h:1", ALL) == ["Reached h:1 again after 1.0 s"]


def test_a_node_that_left_the_cluster_is_not_missed() -> None:
    outages = Outages()
    outages.node_failed(2, REFUSED)
    assert outages.cluster_reached(1_000, "h:1", ALL - {2}) == []
    assert outages.node_reached(2_000, 2, "node 2 at h:2") == []


def test_any_answer_ends_the_outage_of_the_cluster() -> None:
    outages = Outages()
    outages.cluster_failed(1_000, "no broker can be reached")
    assert outages.answered(1_500, "h:1") == ["Reached h:1 again after 0.5 s"]
    assert outages.answered(1_600, "h:1") == []
    assert outages.cluster_reached(2_000, "h:1", ALL) == []
