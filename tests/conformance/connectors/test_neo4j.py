"""The Neo4j sink against a real Neo4j."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moldau.connect.api import Header, RetriableError
from moldau.data import builders
from moldau.data.struct import Struct
from moldau.testing.connect import SinkDriver, config_errors
from support.java_servers import java_server_missing, running_neo4j

SINK = "org.neo4j.connectors.kafka.sink.Neo4jConnector"
pytestmark = pytest.mark.long("starts a server of `make parts`; `make connectors` runs it")
USER = builders.struct({"id": builders.INT32, "name": builders.STRING})


class Graph:
    def __init__(self, uri: str, driver: Any) -> None:
        self.uri = uri
        self._driver = driver

    def query(self, text: str) -> list[list[Any]]:
        return sorted(list(each.values()) for each in self._driver.execute_query(text).records)

    def sink(self, **config: str) -> SinkDriver:
        return SinkDriver(SINK, {"neo4j.uri": self.uri, "topics": "t", **config})


@pytest.fixture(scope="module")
def server() -> Iterator[Graph]:
    if missing := java_server_missing("neo4j"):
        pytest.skip(missing)
    import neo4j

    with running_neo4j() as uri, neo4j.GraphDatabase.driver(uri) as driver:
        yield Graph(uri, driver)


@pytest.fixture
def graph(server: Graph) -> Graph:
    server.query("MATCH (n) DETACH DELETE n")
    return server


def test_a_query_for_a_topic(graph: Graph) -> None:
    cypher = "MERGE (u:User {id: event.id}) SET u.name = event.name, u.from = __header.from"
    with graph.sink(**{"neo4j.cypher.topic.t": cypher}) as sink:
        for _ in range(2):
            sink.put(
                [
                    sink.record(
                        "t", Struct(USER, {"id": 1, "name": name}), value_schema=USER,
                        headers=[Header("from", "here", builders.STRING)],
                    )
                    for name in ("a", "b")
                ]
            )  # fmt: skip
    assert graph.query("MATCH (u:User) RETURN u.id, u.name, u.from") == [[1, "b", "here"]]


def test_nodes_and_relationships_by_patterns(graph: Graph) -> None:
    with graph.sink(**{"neo4j.pattern.topic.t": "(:User{!id, name, home.city})"}) as sink:
        sink.send("t", {"id": 1, "name": "x", "secret": 2, "home": {"city": "Praha"}})
        sink.send("t", {"id": 2, "name": "y"})
        sink.send("t", None, key={"id": 2})
    assert graph.query("MATCH (n:User) RETURN properties(n)") == [
        [{"id": 1, "name": "x", "home.city": "Praha"}]
    ]
    pattern = "(:User{!id: user})-[:BOUGHT]->(:Product{!sku, title})"
    with graph.sink(**{"neo4j.topic.pattern.relationship.t": pattern}) as sink:
        for _ in range(2):
            sink.send("t", {"user": 1, "sku": "s", "title": "tea", "price": 3})
    assert graph.query(
        "MATCH (u:User)-[r:BOUGHT]->(p:Product) RETURN u.id, properties(r), properties(p)"
    ) == [[1, {"price": 3}, {"sku": "s", "title": "tea"}]]


def test_what_is_refused_is_reported_and_the_rest_written(graph: Graph) -> None:
    with graph.sink(**{"neo4j.topic.cypher.t": "CREATE (n:N {x: 1 / event.x})"}) as sink:
        sink.put([sink.record("t", {"x": x}) for x in (1, 0, 2)])
        assert [record.value for record, _ in sink.errant] == [{"x": 0}]
    assert graph.query("MATCH (n:N) RETURN count(n)") == [[2]]


def test_wrong_settings_and_a_server_that_is_away() -> None:
    errors = config_errors(SINK, {"topics": "t"})
    assert set(errors) == {"neo4j.uri", "neo4j.cypher.topic.TOPIC"}
    config = {"neo4j.uri": "bolt://127.0.0.1:1", "topics": "t"}
    wrong = {**config, "neo4j.pattern.topic.t": "(:User{name})"}
    assert "has no key" in str(config_errors(SINK, wrong))
    good = {**config, "neo4j.pattern.topic.t": "(:User{!name})"}
    with SinkDriver(SINK, good) as sink, pytest.raises(RetriableError):
        sink.send("t", {"name": "x"})
