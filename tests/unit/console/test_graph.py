"""Graphs: where boxes and lines are drawn, what a topology's text shows, what feeds what."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.services.console.instances import Reported
from moldau.services.console.machine.graph import Edge, Node, picture
from moldau.services.console.machine.lineage import Flow, Known, lineage
from moldau.services.console.machine.topology_text import parse_topology

TOPOLOGY = """\
Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [orders])
      --> KSTREAM-FILTER-0000000001
    Processor: KSTREAM-FILTER-0000000001 (stores: [])
      --> sums-repartition-sink
      <-- KSTREAM-SOURCE-0000000000
    Sink: sums-repartition-sink (topic: sums-repartition)
      <-- KSTREAM-FILTER-0000000001

  Sub-topology: 1
    Source: sums-repartition-source (topics: [sums-repartition])
      --> KSTREAM-AGGREGATE-0000000003
    Processor: KSTREAM-AGGREGATE-0000000003 (stores: [sums])
      --> none
      <-- sums-repartition-source
"""


def drawn(edges: list[tuple[str, str]], *more: str) -> dict[str, Any]:
    names = dict.fromkeys([*(name for edge in edges for name in edge), *more])
    return picture([Node(name, "topic", name) for name in names], [Edge(*edge) for edge in edges])


def columns(found: dict[str, Any]) -> dict[str, float]:
    return {node["id"]: node["x"] for node in found["nodes"]}


def lines(found: dict[str, Any]) -> set[tuple[str, str]]:
    return {(edge["source"], edge["target"]) for edge in found["edges"]}


def test_data_goes_from_left_to_right() -> None:
    x = columns(drawn([("a", "b"), ("b", "c"), ("a", "c")]))
    assert x["a"] < x["b"] < x["c"]


def test_a_cycle_is_drawn_too() -> None:
    found = drawn([("start", "a"), ("a", "b"), ("b", "a")])
    x = columns(found)
    assert x["start"] < x["a"] < x["b"]
    assert ("b", "a") in lines(found)


def test_lines_to_what_is_not_there_are_left_out() -> None:
    found = picture([Node("a", "topic", "a")], [Edge("a", "gone"), Edge("gone", "a")])
    assert found["edges"] == []
    assert drawn([])["nodes"] == []


@given(
    st.lists(
        st.tuples(st.integers(0, 14), st.integers(0, 14)).map(
            lambda pair: (str(pair[0]), str(pair[1]))
        ),
        max_size=40,
    )
)
def test_every_node_is_placed_once_and_no_two_overlap(edges: list[tuple[str, str]]) -> None:
    found = drawn(edges)
    boxes = found["nodes"]
    assert sorted(box["id"] for box in boxes) == sorted({name for edge in edges for name in edge})
    assert lines(found) == set(edges)
    for index, one in enumerate(boxes):
        assert one["x"] + one["width"] <= found["width"]
        assert one["y"] + one["height"] <= found["height"]
        for other in boxes[index + 1 :]:
            apart_x = (
                one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
            )
            apart_y = (
                one["y"] + one["height"] <= other["y"] or other["y"] + other["height"] <= one["y"]
            )
            assert apart_x or apart_y
    assert drawn(edges) == found


def test_a_topology_is_read_from_its_text() -> None:
    found = parse_topology(TOPOLOGY)
    nodes = {node["id"]: node for node in found["nodes"]}
    assert nodes["KSTREAM-SOURCE-0000000000"]["note"] == "from orders"
    assert nodes["KSTREAM-AGGREGATE-0000000003"]["label"] == "KSTREAM-AGGREGATE-3"
    assert nodes["KSTREAM-AGGREGATE-0000000003"]["note"] == "store sums"
    assert ("KSTREAM-FILTER-0000000001", "sums-repartition-sink") in lines(found)
    # The sub-topologies are connected by their topic.
    assert ("sums-repartition-sink", "sums-repartition-source") in lines(found)
    assert len(found["edges"]) == 4


def test_a_text_of_another_kind_gives_no_picture() -> None:
    assert parse_topology("nothing of the kind")["nodes"] == []


def test_groups_and_producers_of_a_service_are_that_service() -> None:
    known = Known(
        {"orders": 1.5, "big": None},
        [Flow("query", "Q1", ("orders",), ("big",), ids=("_ksql_query_Q1",))],
        groups={"_ksql_query_Q1": {"orders"}, "kitchen": {"big"}},
        producers={"_ksql_query_Q1-0_1": {"big"}, "shop": {"orders"}},
        nameless={"big": 3, "orders": 1},
    )
    assert lines(lineage(known)) == {
        ("producer:shop", "topic:orders"),
        ("topic:orders", "query:Q1"),
        ("query:Q1", "topic:big"),
        ("topic:big", "group:kitchen"),
    }


def test_producers_without_a_name_are_counted() -> None:
    found = lineage(Known({"orders": None}, nameless={"orders": 2}))
    assert lines(found) == {("producer:2 producers of orders", "topic:orders")}


def test_topics_that_the_user_may_not_see_are_left_out() -> None:
    known = Known({"seen": None}, groups={"readers": {"seen", "hidden"}, "others": {"hidden"}})
    assert lines(lineage(known)) == {("topic:seen", "group:readers")}


def test_only_what_is_connected_with_one_thing() -> None:
    known = Known(
        dict.fromkeys(("a", "b", "c"), None),
        [
            Flow("connector", "in", (), ("a",)),
            Flow("query", "ab", ("a",), ("b",)),
            Flow("query", "c", ("c",), ()),
            Flow("connector", "aside", ("a",), ()),
        ],
    )
    found = lineage(known, around="query:ab")
    assert {node["id"] for node in found["nodes"]} == {
        "connector:in", "topic:a", "query:ab", "topic:b",
    }  # fmt: skip


def test_nodes_have_what_instances_report() -> None:
    measured = {"KSTREAM-FILTER-0000000001": {"rate": 2.5, "records": 70.0}}
    nodes = {node["id"]: node for node in parse_topology(TOPOLOGY, measured)["nodes"]}
    found, other = nodes["KSTREAM-FILTER-0000000001"], nodes["sums-repartition-sink"]
    assert (found["rate"], found["records"]) == (2.5, 70)
    assert other["rate"] is None
    # There is room for the line.
    assert found["height"] > other["height"]


def test_reports_of_instances_are_added_up() -> None:
    reported = Reported()
    for records in (10, 30):
        reported.add(
            {"topology": TOPOLOGY, "nodes": {"a": {"rate": records / 10, "records": records}}}
        )
    assert reported.nodes == {"a": {"rate": 4.0, "records": 40.0}}
    assert reported.answered == 2


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(None, id="none"),
        pytest.param([], id="a list"),
        pytest.param({"topology": 1, "nodes": {}}, id="a number"),
        pytest.param({"topology": "", "nodes": {"a": {"rate": "fast"}}}, id="a word"),
        pytest.param({"topology": "", "nodes": []}, id="no names"),
    ],
)
def test_what_is_no_report_is_left_out(answer: Any) -> None:
    reported = Reported()
    with pytest.raises((TypeError, ValueError, KeyError, AttributeError)):
        reported.add(answer)
    assert reported == Reported()
