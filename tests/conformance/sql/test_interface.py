"""What ksqlDB's interface has beside statements and queries: PRINT, websockets, connectors,
assertions, listings, the forms of streamed answers."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import websocket

from moldau.client import Producer
from support.connect_workers import WorkerUnderTest, standalone_worker
from support.processes import BrokerProcess
from support.sql_server import SqlServer, sql_server
from support.waiting import eventually

EARLIEST = {"auto.offset.reset": "earliest"}


@pytest.fixture(scope="module")
def connect(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("connect")
    with standalone_worker(broker.bootstrap, folder) as worker:
        yield worker


@pytest.fixture(scope="module")
def server(
    broker: BrokerProcess, connect: WorkerUnderTest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SqlServer]:
    state = tmp_path_factory.mktemp("state")
    with sql_server(
        broker.bootstrap,
        ksql_streams_state_dir=str(state),
        ksql_streams_commit_interval_ms="100",
        ksql_connect_url=connect.url,
    ) as found:
        yield found


def printed(server: SqlServer, sql: str) -> list[str]:
    answer = server.post("/query", {"ksql": sql})
    assert answer.status_code == 200, answer.text
    return answer.text.splitlines()


def produce(broker: BrokerProcess, topic: str, *records: tuple[Any, Any]) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for key, value in records:
            producer.send(topic, value, key=key, timestamp=1_584_794_241_123).result(30)


def test_print_names_the_formats(server: SqlServer, broker: BrokerProcess) -> None:
    server.execute(
        "CREATE STREAM printed (id BIGINT KEY, name STRING) "
        "WITH (kafka_topic='printed', value_format='JSON', partitions=1);"
    )
    key = (2**40 + 7).to_bytes(8)
    produce(broker, "printed", (key, b'{"name":"a"}'), (key, None), (None, b'{"name":"b"}'))
    lines = printed(server, "PRINT 'printed' FROM BEGINNING LIMIT 3;")
    assert lines == [
        "Key format: KAFKA_BIGINT or KAFKA_DOUBLE",
        "Value format: JSON or KAFKA_STRING",
        f'rowtime: 2020/03/21 12:37:21.123 Z, key: {2**40 + 7}, value: {{"name":"a"}}, '
        "partition: 0",
        f"rowtime: 2020/03/21 12:37:21.123 Z, key: {2**40 + 7}, value: <null>, partition: 0",
        'rowtime: 2020/03/21 12:37:21.123 Z, key: <null>, value: {"name":"b"}, partition: 0',
    ]
    every = printed(server, "PRINT printed FROM BEGINNING INTERVAL 2 LIMIT 2;")
    assert [line[-26:] for line in every if line.startswith("rowtime")] == [
        lines[2][-26:], lines[4][-26:]
    ]  # fmt: skip
    missing = server.post("/query", {"ksql": "PRINT 'Printed' FROM BEGINNING;"})
    assert missing.status_code == 400
    assert "Did you mean:\n\tprint printed;" in missing.json()["message"]


def opened(server: SqlServer, sql: str, properties: dict[str, str]) -> websocket.WebSocket:
    request = quote(json.dumps({"ksql": sql, "streamsProperties": properties}))
    address = server.url.replace("http", "ws")
    return websocket.create_connection(f"{address}/ws/query?request={request}", timeout=60)


def closing(opening: websocket.WebSocket) -> tuple[int, str]:
    opcode, data = opening.recv_data()
    assert opcode == websocket.ABNF.OPCODE_CLOSE
    return int.from_bytes(data[:2]), data[2:].decode()


def test_a_websocket_has_columns_and_rows(server: SqlServer, broker: BrokerProcess) -> None:
    server.execute(
        "CREATE STREAM socketed (id STRING KEY, n INT) "
        "WITH (kafka_topic='socketed', value_format='JSON', partitions=1);"
        "INSERT INTO socketed VALUES ('a', 1);INSERT INTO socketed VALUES ('b', 2);"
    )
    opening = opened(server, "SELECT * FROM socketed EMIT CHANGES LIMIT 2;", EARLIEST)
    columns = json.loads(opening.recv())
    assert [(each["name"], each["schema"]["type"]) for each in columns] == [
        ("ID", "STRING"),
        ("N", "INTEGER"),
    ]
    assert json.loads(opening.recv()) == {"row": {"columns": ["a", 1]}}
    assert json.loads(opening.recv()) == {"row": {"columns": ["b", 2]}}
    assert closing(opening) == (1000, "done")
    pulled = opened(server, "SELECT * FROM socketed;", {})
    assert len([json.loads(pulled.recv()) for _ in range(3)]) == 3
    lines = opened(server, "PRINT socketed FROM BEGINNING LIMIT 1;", {})
    assert "Key format: KAFKA_STRING" in lines.recv()
    wrong = opened(server, "SELECT * FROM nothing EMIT CHANGES;", {})
    code, reason = closing(wrong)
    assert (code, "NOTHING does not exist" in reason) == (1011, True)
    assert closing(opened(server, "SELECT FROM;", {}))[0] == 1003


def test_what_a_client_leaves_ends(server: SqlServer) -> None:
    """Over HTTP and over a websocket, also where no further row comes."""
    server.execute(
        "CREATE STREAM left_alone (id STRING KEY) "
        "WITH (kafka_topic='left_alone', value_format='JSON', partitions=1);"
    )
    pushes = server.service.service._queries.pushes
    sql = "SELECT * FROM left_alone EMIT CHANGES;"
    opening = opened(server, sql, {})
    opening.recv()
    with server.stream(sql) as lines:
        next(lines)
        assert len(pushes.ids) == 2
    opening.close()
    eventually(lambda: not pushes.ids, what="both queries ended")


def test_streamed_answers_follow_accept(server: SqlServer) -> None:
    server.execute(
        "CREATE STREAM forms (id STRING KEY) "
        "WITH (kafka_topic='forms', value_format='JSON', partitions=1);"
        "INSERT INTO forms VALUES ('a');"
    )
    body = {"sql": "SELECT * FROM forms EMIT CHANGES LIMIT 1;", "properties": EARLIEST}
    header = {"columnNames": ["ID"], "columnTypes": ["STRING"]}
    lines = server.post("/query-stream", body, Accept="*/*")
    first, second = lines.text.splitlines()
    assert lines.headers["content-type"] == "application/vnd.ksqlapi.delimited.v1"
    assert header.items() <= json.loads(first).items()
    assert json.loads(second) == ["a"]
    array = server.post("/query-stream", body, Accept="application/json").json()
    assert (header.items() <= array[0].items(), array[1:]) == (True, [["a"]])
    messages = server.post("/query-stream", body, Accept="application/vnd.ksql.v1+json").json()
    assert messages[1:] == [{"row": {"columns": ["a"]}}, {"finalMessage": "Limit Reached"}]
    rows = b'{"target":"forms"}\n{"id":"b"}\n{"id":"c"}\n'
    acknowledged = server.post("/inserts-stream", rows, Accept="application/json").json()
    assert acknowledged == [{"status": "ok", "seq": 0}, {"status": "ok", "seq": 1}]


def test_rows_are_acknowledged_while_more_are_sent(server: SqlServer) -> None:
    server.execute(
        "CREATE STREAM endless (id STRING KEY) "
        "WITH (kafka_topic='endless', value_format='JSON', partitions=1);"
    )
    host, _, port = server.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:

        def send(*pieces: bytes) -> None:
            connection.sendall(b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in pieces))

        def wait_for(text: bytes) -> None:
            found = b""
            while text not in found:
                received = connection.recv(65536)
                assert received, found
                found += received

        connection.sendall(
            b"POST /inserts-stream HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        send(b'{"target":"endless"}\n', b'{"id":"a"}\n')
        wait_for(b'"seq": 0')
        send(b'{"id":"b"}\n')
        wait_for(b'"seq": 1')
        send(b"")
        wait_for(b"0\r\n\r\n")


def test_connectors_through_connect(server: SqlServer, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("one\ntwo\n")
    server.execute(
        "CREATE STREAM lines (line STRING) "
        "WITH (kafka_topic='read_lines', value_format='KAFKA', partitions=1);"
    )
    created = server.execute(
        "CREATE SOURCE CONNECTOR IF NOT EXISTS reader WITH ("
        "'connector.class'='org.apache.kafka.connect.file.FileStreamSourceConnector', "
        f"'file'='{lines}', 'topic'='read_lines', 'tasks.max'=1);"
    )[0]
    assert (created["@type"], created["info"]["name"]) == ("connector_info", "READER")
    again = server.execute(
        "CREATE SOURCE CONNECTOR IF NOT EXISTS reader WITH ('connector.class'='x');"
    )
    assert again[0]["@type"] == "warning_entity"

    def state() -> str:
        listed = server.execute("SHOW CONNECTORS;")[0]["connectors"]
        return next(each["state"] for each in listed if each["name"] == "READER")

    eventually(lambda: state() == "RUNNING (1/1 tasks RUNNING)", what="the connector runs")
    assert server.execute("LIST SINK CONNECTORS;")[0]["connectors"] == []
    described = server.execute("DESCRIBE CONNECTOR reader;")[0]
    assert described["@type"] == "connector_description"
    assert described["status"]["tasks"][0]["state"] == "RUNNING"
    assert described["connectorClass"].endswith("FileStreamSourceConnector")
    plugins = server.execute("SHOW CONNECTOR PLUGINS;")[0]["connectorsPlugins"]
    assert any(each["className"].endswith("FileStreamSinkConnector") for each in plugins)
    lines_of = "PRINT read_lines FROM BEGINNING LIMIT 2;"
    assert "value: two" in printed(server, lines_of)[-1]
    dropped = server.execute("DROP CONNECTOR reader;")[0]
    assert (dropped["@type"], dropped["connectorName"]) == ("drop_connector", "READER")
    assert server.execute("DROP CONNECTOR IF EXISTS reader;")[0]["@type"] == "warning_entity"
    refused = server.post("/ksql", {"ksql": "DROP CONNECTOR reader;"}).json()
    assert "Failed to drop connector" in refused["message"]


def test_assertions(server: SqlServer) -> None:
    server.execute(
        "CREATE STREAM asserted (id STRING KEY) "
        "WITH (kafka_topic='asserted', value_format='JSON', partitions=2);"
    )
    found = server.execute("ASSERT TOPIC asserted WITH (partitions=2, replicas=1);")[0]
    assert (found["@type"], found["topicName"], found["exists"]) == (
        "assert_topic",
        "asserted",
        True,
    )
    assert server.execute("ASSERT NOT EXISTS TOPIC nothing;")[0]["exists"] is False
    wrong = server.post("/ksql", {"ksql": "ASSERT TOPIC asserted WITH (partitions=3);"})
    assert (wrong.status_code, wrong.json()["error_code"]) == (417, 41700)
    assert "expected 3 got 2" in wrong.json()["message"]
    late = server.post("/ksql", {"ksql": "ASSERT TOPIC nothing TIMEOUT 0 SECONDS;"})
    assert late.json()["message"] == "Topic nothing does not exist"
    no_registry = server.post("/ksql", {"ksql": "ASSERT SCHEMA SUBJECT x;"}).json()
    assert "ksql.schema.registry.url" in no_registry["message"]


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("SHOW TOPICS;", "kafka_topics"),
        ("SHOW ALL TOPICS;", "kafka_topics"),
        ("SHOW TOPICS EXTENDED;", "kafka_topics_extended"),
        ("LIST STREAMS;", "streams"),
        ("LIST STREAMS EXTENDED;", "source_descriptions"),
        ("LIST TABLES;", "tables"),
        ("LIST TYPES;", "type_list"),
        ("LIST FUNCTIONS;", "function_names"),
        ("DESCRIBE FUNCTION abs;", "describe_function"),
        ("LIST PROPERTIES;", "properties"),
        ("LIST QUERIES;", "queries"),
        ("LIST QUERIES EXTENDED;", "query_descriptions"),
        ("LIST VARIABLES;", "variables"),
        ("LIST CONNECTORS;", "connector_list"),
        ("LIST CONNECTOR PLUGINS;", "connector_plugins_list"),
        ("DESCRIBE STREAMS;", "source_descriptions"),
    ],
)
def test_everything_is_listed(server: SqlServer, statement: str, kind: str) -> None:
    assert server.execute(statement)[0]["@type"] == kind


def test_where_the_server_stands(server: SqlServer) -> None:
    server.execute(
        "CREATE STREAM placed (id STRING KEY) "
        "WITH (kafka_topic='placed', value_format='JSON', partitions=1);"
        "CREATE TABLE placed_counts AS SELECT id, COUNT(*) AS n FROM placed GROUP BY id;"
    )
    own = server.url.removeprefix("http://")

    def shown() -> dict[str, Any]:
        found: dict[str, Any] = server.get("/clusterStatus")["clusterStatus"][own]
        return found

    query_id = next(
        each["id"]
        for each in server.execute("SHOW QUERIES;")[0]["queries"]
        if each["sinks"] == ["PLACED_COUNTS"]
    )
    eventually(
        lambda: shown()["activeStandbyPerQuery"].get(query_id, {}).get("activePartitions"),
        what="the server has its partition",
    )
    assert shown()["hostAlive"] is True
    beat = {"hostInfo": {"host": "127.0.0.1", "port": 1}, "timestamp": 1}
    assert server.post("/heartbeat", beat, Accept="*/*").json() == {"isOk": True}
    lag = {"ksqlHost": {"host": "127.0.0.1", "port": 1}, "hostStoreLags": {}}
    assert server.post("/lag", lag, Accept="*/*").json() == {"isOk": True}
    assert server.post("/lag", {"x": 1}, Accept="*/*").status_code == 400
    statuses = server.get("/status")["commandStatuses"]
    assert statuses["stream/`PLACED`/create"] == "SUCCESS"
    assert server.get("/status/stream/`PLACED`/create")["status"] == "SUCCESS"
    details = server.get("/healthcheck")["details"]
    assert {name: each["isHealthy"] for name, each in details.items()} == {
        "metastore": True,
        "kafka": True,
        "commandRunner": True,
    }


def test_a_script_with_a_wrong_statement_does_nothing(server: SqlServer) -> None:
    answer = server.post(
        "/ksql",
        {
            "ksql": "CREATE STREAM whole (id STRING KEY, n INT) "
            "WITH (kafka_topic='whole', value_format='JSON', partitions=1);"
            "INSERT INTO whole VALUES ('a', 1);"
            "CREATE STREAM half AS SELECT unknown FROM whole;"
        },
    )
    assert answer.status_code == 400
    assert "column 'UNKNOWN' cannot be resolved" in answer.json()["message"]
    assert answer.json()["entities"] == []
    names = [each["name"] for each in server.execute("SHOW STREAMS;")[0]["streams"]]
    topics = [each["name"] for each in server.execute("SHOW TOPICS;")[0]["topics"]]
    assert "WHOLE" not in names
    assert "whole" not in topics


def test_variables_are_defined_within_a_script(server: SqlServer) -> None:
    server.execute(
        "DEFINE name = 'defined'; DEFINE topic = '${name}_topic';"
        "CREATE STREAM ${name} (id STRING KEY) "
        "WITH (kafka_topic='${topic}', value_format='JSON', partitions=1);"
    )
    described = server.execute("DESCRIBE defined;")[0]["sourceDescription"]
    assert described["topic"] == "defined_topic"
    bad = server.post(
        "/ksql", {"ksql": "DROP STREAM ${x};", "sessionVariables": {"x": "a; DROP STREAM defined"}}
    )
    assert "Illegal argument at line: 1, col: 13." in bad.json()["message"]


def test_descriptions_say_what_the_cluster_knows(server: SqlServer) -> None:
    server.execute(
        "CREATE STREAM read (id STRING KEY, n INT) "
        "WITH (kafka_topic='read', value_format='JSON', partitions=1);"
        "INSERT INTO read VALUES ('a', 1); INSERT INTO read VALUES ('b', 2);"
    )
    server.execute(
        "CREATE TABLE read_sums AS SELECT id, SUM(n) AS total FROM read "
        "WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY id;",
        EARLIEST,
    )

    def described() -> dict[str, Any]:
        found: dict[str, Any] = server.execute("DESCRIBE read_sums EXTENDED;")[0]
        return found["sourceDescription"]  # type: ignore[no-any-return]

    def offsets() -> list[Any]:
        return [
            (topic["kafkaTopic"], each["logEndOffset"], each["consumerOffset"])
            for summary in described()["queryOffsetSummaries"]
            for topic in summary["topicSummaries"]
            for each in topic["offsets"]
        ]

    eventually(lambda: ("read", 2, 2) in offsets(), what="both rows are committed")
    found = described()
    assert (found["partitions"], found["replication"], found["windowType"]) == (1, 1, "TUMBLING")
    assert "total-messages:" in found["statistics"]
    assert "last-message: 2" in found["statistics"]
    assert {each["name"] for each in found["clusterStatistics"]} == {
        "messages-per-sec",
        "total-messages",
    }
    assert {each["host"] for each in found["clusterStatistics"]} == {
        server.url.removeprefix("http://")
    }
    assert (found["errorStats"], found["clusterErrorStats"]) == ("", [])
    writer = found["writeQueries"][0]
    assert writer["statusCount"] == {"RUNNING": 1}
    query = server.execute(f"EXPLAIN {writer['id']};")[0]["queryDescription"]
    assert query["ksqlHostQueryStatus"] == {server.url.removeprefix("http://"): "RUNNING"}
    assert query["overriddenProperties"] == EARLIEST
    assert query["consumerGroupId"] == f"_confluent-ksql-default_query_{writer['id']}"
    assert query["windowType"] == "TUMBLING"
    read = [
        (each["topicPartitionEntity"]["topic"], each["endOffset"])
        for task in query["tasksMetadata"]
        for each in task["topicOffsets"]
    ]
    assert ("read", 2) in read
    topics = server.execute("SHOW TOPICS EXTENDED;")[0]["topics"]
    topic = next(each for each in topics if each["name"] == "read")
    assert (topic["replicaInfo"], topic["consumerCount"], topic["consumerGroupCount"]) == (
        [1],
        1,
        1,
    )


def test_windows_over_partitions_in_a_streams_group(server: SqlServer) -> None:
    """The default of KafkaStreams, where the default here is a consumer group."""
    server.execute(
        "CREATE STREAM spread (id STRING KEY, n INT) "
        "WITH (kafka_topic='spread', value_format='JSON', partitions=4);"
        + "".join(
            f"INSERT INTO spread (ROWTIME, id, n) VALUES ({each * 1000}, 'k{each % 7}', {each});"
            for each in range(20)
        )
    )
    server.execute(
        "CREATE TABLE tumbled AS SELECT id, COUNT(*) AS c FROM spread "
        "WINDOW TUMBLING (SIZE 5 SECONDS) GROUP BY id;"
        "CREATE TABLE hopped AS SELECT n, COUNT(*) AS c FROM spread "
        "WINDOW HOPPING (SIZE 10 SECONDS, ADVANCE BY 5 SECONDS) GROUP BY n;",
        {**EARLIEST, "ksql.streams.group.protocol": "streams"},
    )

    def read(table: str) -> int:
        (found,) = server.execute(f"DESCRIBE {table} EXTENDED;")
        return sum(
            each["consumerOffset"]
            for summary in found["sourceDescription"]["queryOffsetSummaries"]
            for topic in summary["topicSummaries"]
            if topic["kafkaTopic"] == "spread"
            for each in topic["offsets"]
        )

    for table in ("tumbled", "hopped"):
        eventually(lambda table=table: read(table) == 20, what=f"{table} has committed all rows")
    rows = [each for each in server.query("SELECT * FROM tumbled;") if "row" in each]
    assert sum(each["row"]["columns"][-1] for each in rows) == 20


def test_a_push_query_is_listed_and_can_be_terminated(server: SqlServer) -> None:
    server.execute(
        "CREATE STREAM pushed (id STRING KEY) "
        "WITH (kafka_topic='pushed', value_format='JSON', partitions=1);"
    )
    address = server.url.replace("http://", "ws://")
    request = json.dumps({"ksql": "SELECT * FROM pushed EMIT CHANGES;"})
    client = websocket.create_connection(f"{address}/ws/query?request={quote(request)}", timeout=30)
    try:
        client.recv()
        (running,) = [
            each
            for each in server.execute("SHOW QUERIES;")[0]["queries"]
            if each["queryType"] == "PUSH" and "pushed" in each["queryString"]
        ]
        assert running["statusCount"] == {"RUNNING": 1}
        (ended,) = server.execute(f"TERMINATE {running['id']};")
        assert (ended["@type"], ended["wasTerminated"]) == ("terminate_query", True)
        while client.recv():
            pass
    finally:
        client.close()


def test_keys_of_arrays_are_looked_up(server: SqlServer) -> None:
    server.execute(
        "CREATE STREAM listed (id ARRAY<INT> KEY, n INT) "
        "WITH (kafka_topic='listed', format='JSON', partitions=1);"
        "INSERT INTO listed VALUES (ARRAY[1, 2], 3); INSERT INTO listed VALUES (ARRAY[2], 4);"
    )
    server.execute("CREATE TABLE sums AS SELECT id, SUM(n) AS n FROM listed GROUP BY id;", EARLIEST)
    wanted = "SELECT n FROM sums WHERE id = ARRAY[1, 2];"
    eventually(
        lambda: [each["row"]["columns"] for each in server.query(wanted) if "row" in each] == [[3]],
        what="the key is found",
    )
