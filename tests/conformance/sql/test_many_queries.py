"""Many queries on one server, and queries that fail beside others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client import Admin, Consumer, Producer
from moldau.client.topics import TopicPartition
from support.processes import BrokerProcess
from support.sql_server import SqlServer, sql_server
from support.waiting import eventually

COUNT = 100


@pytest.fixture(scope="module")
def server(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServer]:
    with sql_server(
        broker.bootstrap,
        ksql_streams_state_dir=str(tmp_path_factory.mktemp("state")),
        ksql_streams_commit_interval_ms="200",
        ksql_streams_auto_offset_reset="earliest",
        ksql_query_retry_backoff_initial_ms="100",
        ksql_query_retry_backoff_max_ms="400",
        ksql_query_persistent_active_limit=str(COUNT + 10),
    ) as found:
        yield found


def states(server: SqlServer) -> dict[str, str]:
    listed = server.execute("SHOW QUERIES;")[0]["queries"]
    return {each["id"]: each["state"] for each in listed}


def produce(broker: BrokerProcess, topic: str, *values: bytes) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for value in values:
            producer.send(topic, value, key=b"k").result(30)


def described(server: SqlServer, query_id: str) -> Any:
    return server.execute(f"EXPLAIN {query_id};")[0]["queryDescription"]


def test_a_query_that_fails_says_why_and_disturbs_no_other(
    server: SqlServer, broker: BrokerProcess
) -> None:
    server.execute(
        "CREATE STREAM times (id STRING KEY, day STRING) "
        "WITH (kafka_topic='times', value_format='JSON', partitions=1);"
        "CREATE STREAM dated (id STRING KEY, day STRING) WITH (kafka_topic='times', "
        "value_format='JSON', timestamp='day', timestamp_format='yyyy-MM-dd');"
        "CREATE STREAM calm AS SELECT * FROM times;"
    )
    made = server.execute(
        "CREATE STREAM strict AS SELECT * FROM dated;",
        {"ksql.timestamp.throw.on.invalid": "true"},
    )
    failing = made[0]["commandStatus"]["queryId"]
    produce(broker, "times", b'{"day":"2024-01-01"}', b'{"day":"never"}')
    eventually(lambda: states(server)[failing] == "ERROR", what="the query is in error")

    def errors() -> list[Any]:
        found: list[Any] = described(server, failing)["queryErrors"]
        return found

    # It is started again after a wait, and fails again: the record is still there.
    eventually(lambda: len(errors()) >= 3, what="it was started again")
    first = errors()[0]
    assert first["errorMessage"]
    assert first["type"] in ("USER", "SYSTEM", "UNKNOWN")
    rows = server.query("SELECT * FROM calm EMIT CHANGES LIMIT 2;")
    assert [each["row"]["columns"][1] for each in rows if "row" in each] == ["2024-01-01", "never"]
    others = {key: state for key, state in states(server).items() if key != failing}
    assert set(others.values()) == {"RUNNING"}
    server.execute(f"TERMINATE {failing};")
    assert failing not in states(server)


def test_records_that_cannot_be_read_are_passed_over_and_counted(
    server: SqlServer, broker: BrokerProcess
) -> None:
    server.execute(
        "CREATE STREAM readings (id STRING KEY, n INT) "
        "WITH (kafka_topic='readings', value_format='JSON', partitions=1);"
        "CREATE STREAM good AS SELECT id, n FROM readings;"
    )
    made = server.execute(
        "CREATE STREAM exact AS SELECT id, n FROM readings;",
        {"ksql.fail.on.deserialization.error": "true"},
    )
    exact = made[0]["commandStatus"]["queryId"]
    produce(broker, "readings", b'{"n":1}', b"{no json", b'{"n":"x"}', b'{"n":4}')
    rows = server.query("SELECT n FROM good EMIT CHANGES LIMIT 2;")
    assert [each["row"]["columns"] for each in rows if "row" in each] == [[1], [4]]

    def stats(key: str) -> dict[str, float]:
        (found,) = server.execute("DESCRIBE readings EXTENDED;")
        return {each["name"]: each["value"] for each in found["sourceDescription"][key]}

    eventually(lambda: states(server)[exact] == "ERROR", what="the strict query has failed")
    server.execute(f"TERMINATE {exact};")
    assert stats("clusterErrorStats")["consumer-failed-messages"] >= 3
    assert stats("clusterStatistics")["consumer-total-messages"] >= 4
    assert stats("clusterStatistics")["consumer-total-bytes"] > 30
    (found,) = server.execute("DESCRIBE readings EXTENDED;")
    assert "last-failed: 2" in found["sourceDescription"]["errorStats"]


@pytest.mark.long("a hundred queries take a minute to create")
def test_a_hundred_queries(server: SqlServer, broker: BrokerProcess) -> None:
    server.execute(
        "CREATE STREAM many (id STRING KEY, n INT) "
        "WITH (kafka_topic='many', value_format='JSON', partitions=1);"
    )
    script = "".join(
        f"CREATE STREAM many_{number} AS SELECT id, n + {number} AS n FROM many;"
        for number in range(COUNT)
    )
    before = len(states(server))
    server._client.timeout = 300
    server.execute(script)
    assert len(states(server)) == before + COUNT
    produce(broker, "many", b'{"n":1000}')
    with Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(f"MANY_{number}", 0) for number in range(COUNT)])
        found: dict[str, bytes] = {}

        def all_have_it() -> bool:
            for record in consumer.poll(0.5):
                found[record.topic] = record.value
            return len(found) == COUNT

        eventually(all_have_it, what=f"a row of each of {COUNT} queries", seconds_max=120)
    assert found["MANY_42"] == b'{"N":1042}'
    assert set(states(server).values()) == {"RUNNING"}
    room = COUNT + 10 - len(states(server))
    one_too_many = "".join(
        f"CREATE STREAM more_{number} AS SELECT * FROM many;" for number in range(room + 1)
    )
    refused = server.post("/ksql", {"ksql": one_too_many})
    assert "ksql.query.persistent.active.limit" in refused.json()["message"]
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        assert len([name for name in admin.list_topics() if name.startswith("MANY_")]) == COUNT
