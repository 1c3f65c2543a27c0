"""The SQL server against a broker, over HTTP."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from moldau.cli.services.sql_shell.shell import Shell
from moldau.client import Consumer
from moldau.client.admin import Admin, RecordsToDelete
from moldau.client.topics import TopicPartition
from moldau.sql.client.http import SqlClient
from support.processes import BrokerProcess
from support.sql_server import V1, SqlServer, sql_server
from support.waiting import eventually

EARLIEST = {"auto.offset.reset": "earliest"}


def test_statements_queries_and_rows(server: SqlServer) -> None:
    created = server.execute(
        "CREATE STREAM orders (id STRING KEY, amount INT) "
        "WITH (kafka_topic='orders', value_format='JSON', partitions=2);"
    )
    assert created[0]["@type"] == "currentStatus"
    assert created[0]["commandId"] == "stream/`ORDERS`/create"
    assert created[0]["commandStatus"]["status"] == "SUCCESS"
    server.execute("INSERT INTO orders VALUES ('a', 3);INSERT INTO orders VALUES ('b', 5);")
    made = server.execute(
        "CREATE TABLE totals AS SELECT id, SUM(amount) AS total FROM orders GROUP BY id;", EARLIEST
    )
    assert made[0]["commandStatus"]["queryId"].startswith("CTAS_TOTALS_")
    found = server.query("SELECT * FROM totals EMIT CHANGES LIMIT 2;", EARLIEST)
    assert found[0]["header"]["schema"] == "`ID` STRING, `TOTAL` INTEGER"
    assert sorted(each["row"]["columns"] for each in found[1:3]) == [["a", 3], ["b", 5]]
    assert found[3] == {"finalMessage": "Limit Reached"}


def test_rows_come_while_they_are_made(server: SqlServer) -> None:
    server.execute(
        "CREATE STREAM live (id STRING KEY, made TIMESTAMP, price DECIMAL(5, 2), "
        "tags ARRAY<STRING>) "
        "WITH (kafka_topic='live', value_format='JSON', partitions=1);"
    )
    later = server.rows_later("SELECT * FROM live EMIT CHANGES;", 1, EARLIEST)
    assert later.header["columnNames"] == ["ID", "MADE", "PRICE", "TAGS"]
    assert later.header["columnTypes"][2] == "DECIMAL(5, 2)"
    row = b'{"id":"x","made":"1970-01-01T00:00:00.001","price":1.5,"tags":["a",null]}'
    sent = b'{"target":"live"}\n' + row + b"\n"
    answer = server.post("/inserts-stream", sent, Accept="*/*")
    assert answer.json() == {"status": "ok", "seq": 0}
    assert later.wait() == [["x", "1970-01-01T00:00:00.001", 1.5, ["a", None]]]


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("/query-stream", "application/vnd.ksqlapi.delimited.v1"),
        ("/query-stream", "application/json"),
        ("/query-stream", V1),
        ("/query", V1),
    ],
)
@pytest.mark.parametrize("by", ["the query", "a row"])
def test_a_push_query_that_fails_says_so_in_its_last_row(
    server: SqlServer, path: str, accept: str, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.execute(
        "CREATE STREAM IF NOT EXISTS failing (id STRING KEY, n INT) "
        "WITH (kafka_topic='failing', value_format='JSON', partitions=1);"
        "INSERT INTO failing VALUES ('a', 1);"
    )
    if by == "a row":

        def broken(types: Any) -> Any:
            def write(columns: Any) -> str:
                raise ValueError("boom")

            return write

        monkeypatch.setattr("moldau.services.sql.queries.json_rows", broken)
    sql = "SELECT * FROM failing EMIT CHANGES;"
    body = {"sql": sql, "ksql": sql, "properties": EARLIEST, "streamsProperties": EARLIEST}
    with httpx.stream(
        "POST", server.url + path, json=body, headers={"Accept": accept}, timeout=60
    ) as answer:
        lines = answer.iter_lines()
        read = [next(lines)]
        if by == "the query":
            service: Any = server.service.service
            (query_id,) = service._queries.pushes.ids
            instance = service.core.host.streams(query_id).instance
            instance.on_thread_error(instance.threads[0], RuntimeError("boom"))
        read += list(lines)
    last = read[-1].removesuffix("]")
    error = json.loads(last)
    error = error.get("errorMessage", error)
    assert error["error_code"] == 50000
    assert "boom" in error["message"]


def test_a_push_query_ends_when_its_topic_is_deleted(
    server: SqlServer, broker: BrokerProcess
) -> None:
    server.execute(
        "CREATE STREAM fleeting (id STRING KEY, n INT) "
        "WITH (kafka_topic='fleeting', value_format='JSON', partitions=1);"
    )
    body = {"sql": "SELECT * FROM fleeting EMIT CHANGES;"}
    with httpx.stream("POST", f"{server.url}/query-stream", json=body, timeout=60) as answer:
        lines = answer.iter_lines()
        next(lines)
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.delete_topics(["fleeting"])
        error = json.loads(list(lines)[-1])
    assert error["error_code"] == 50000
    assert "Missing source topics: fleeting" in error["message"]


def test_a_stream_whose_records_were_deleted_is_empty(
    server: SqlServer, broker: BrokerProcess
) -> None:
    server.execute(
        "CREATE STREAM gone (id STRING KEY, n INT) "
        "WITH (kafka_topic='gone', value_format='JSON', partitions=2);"
        "INSERT INTO gone VALUES ('a', 1);"
    )
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        # -1: up to the high watermark, as retention does with records that are too old.
        everything = {TopicPartition("gone", index): RecordsToDelete(-1) for index in range(2)}
        admin.delete_records(everything)
    rows = server.query("SELECT * FROM gone;", EARLIEST)
    assert [each for each in rows if "row" in each] == []


def test_all_windows_of_a_key_are_in_its_partition(server: SqlServer) -> None:
    server.execute(
        "CREATE STREAM spread (id STRING KEY, n INT) "
        "WITH (kafka_topic='spread', value_format='JSON', partitions=4);"
        "CREATE TABLE spread_counts AS SELECT id, COUNT(*) AS n FROM spread "
        "WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY id;",
        EARLIEST,
    )
    rows = "".join(
        f"INSERT INTO spread (ROWTIME, id, n) VALUES ({1_700_000_000_000 + index * 1000}, 'k', 1);"
        for index in range(6)
    )
    server.execute(rows)
    sql = "SELECT ROWPARTITION FROM spread_counts EMIT CHANGES LIMIT 6;"
    found = server.query(sql, EARLIEST)
    assert len({each["row"]["columns"][0] for each in found if "row" in each}) == 1


def test_a_wrong_row_ends_the_inserts(server: SqlServer) -> None:
    server.execute(
        "CREATE STREAM exact (id STRING KEY, n INT) "
        "WITH (kafka_topic='exact', value_format='JSON', partitions=1);"
    )
    body = b'{"target":"exact"}\n{"id":"a","n":[]}\n{"id":"b","n":1}\n'
    answer = server.post("/inserts-stream", body, Accept="*/*").json()
    assert (answer["status"], answer["seq"]) == ("error", 0)
    keyless = server.post("/inserts-stream", b'{"target":"exact"}\n{"n":1}\n', Accept="*/*")
    assert keyless.json()["message"] == "Key field must be specified: ID"


def test_errors_have_ksqldbs_bodies(server: SqlServer) -> None:
    wrong = server.post("/ksql", {"ksql": "CREATE STREM x;"})
    assert wrong.status_code == 400
    assert wrong.json()["@type"] == "statement_error"
    assert wrong.json()["error_code"] == 40001
    half = server.post(
        "/ksql",
        {
            "ksql": "CREATE STREAM half (id STRING KEY) WITH (kafka_topic='half', partitions=1, "
            "value_format='JSON');DROP STREAM nothing_of_the_kind;"
        },
    ).json()
    assert half["statementText"] == "DROP STREAM nothing_of_the_kind;"
    assert half["entities"] == []
    select = server.post("/ksql", {"ksql": "SELECT * FROM half EMIT CHANGES;"}).json()
    assert select["error_code"] == 40002
    missing = server.post("/query", {"ksql": "SELECT * FROM missing EMIT CHANGES;"})
    assert (missing.status_code, missing.json()["@type"]) == (400, "statement_error")
    assert server.post("/ksql", {"sql": "x"}).json()["@type"] == "generic_error"
    assert server.post("/query", {"ksql": "SHOW STREAMS;"}).status_code == 400
    assert server.post("/close-query", {"queryId": "none"}).status_code == 400


def test_the_content_type_of_a_request_does_not_matter(server: SqlServer) -> None:
    """ksqlDB's tutorials use `curl -d`, which sends that of a form."""
    for given in ("application/x-www-form-urlencoded", "text/plain", "application/json"):
        answer = server.post("/ksql", b'{"ksql": "SHOW STREAMS;"}', **{"Content-Type": given})
        assert answer.status_code == 200, given


def test_what_there_is(server: SqlServer) -> None:
    server.execute(
        "CREATE STREAM shown (id STRING KEY, s STRUCT<a INT>, d DECIMAL(3, 1)) "
        "WITH (kafka_topic='shown', value_format='JSON', partitions=3);"
        "CREATE STREAM copied AS SELECT * FROM shown;"
    )
    streams = server.execute("SHOW STREAMS;")[0]["streams"]
    assert {
        "type": "STREAM",
        "name": "SHOWN",
        "topic": "shown",
        "keyFormat": "KAFKA",
        "valueFormat": "JSON",
        "isWindowed": False,
    } in streams
    described = server.execute("DESCRIBE shown;")[0]["sourceDescription"]
    assert described["partitions"] == 3
    assert described["fields"][0] == {
        "name": "ID",
        "schema": {"type": "STRING", "fields": None, "memberSchema": None},
        "type": "KEY",
    }
    assert described["readQueries"][0]["id"].startswith("CSAS_COPIED_")
    queries = server.execute("SHOW QUERIES;")[0]["queries"]
    copied = next(each for each in queries if each["id"].startswith("CSAS_COPIED_"))
    assert (copied["sinks"], copied["state"]) == (["COPIED"], "RUNNING")
    assert len(server.execute("SHOW FUNCTIONS;")[0]["functions"]) == 149
    function = server.execute("DESCRIBE FUNCTION concat;")[0]
    assert (function["name"], function["type"]) == ("CONCAT", "SCALAR")
    assert "topology" in server.execute(f"EXPLAIN {copied['id']};")[0]["queryDescription"]
    assert any(each["name"] == "shown" for each in server.execute("SHOW TOPICS;")[0]["topics"])
    terminated = server.execute(f"TERMINATE {copied['id']};")[0]
    assert terminated["commandStatus"]["message"] == "Query terminated."
    assert copied["id"] not in str(server.execute("SHOW QUERIES;"))


def test_the_server_says_what_it_is(server: SqlServer) -> None:
    assert server.get("/info")["KsqlServerInfo"]["ksqlServiceId"] == "default_"
    assert server.get("/healthcheck")["isHealthy"] is True
    assert server.get("/v1/metadata/id")["scope"]["clusters"]["ksql-cluster"] == "default_"
    assert server.get("/is_valid_property/auto.offset.reset") is True
    assert "clusterStatus" in server.get("/clusterStatus")
    assert "commandStatuses" in server.get("/status")


def test_a_server_goes_on_where_another_stopped(broker: BrokerProcess, tmp_path: Path) -> None:
    settings = {
        "ksql_service_id": "again_",
        "ksql_streams_state_dir": str(tmp_path),
        "ksql_streams_commit_interval_ms": "100",
    }
    with sql_server(broker.bootstrap, **settings) as first:
        first.execute(
            "CREATE STREAM s (id STRING KEY, v INT) "
            "WITH (kafka_topic='again', value_format='JSON', partitions=1);"
            "CREATE STREAM doubled AS SELECT id, v * 2 AS v FROM s;",
            EARLIEST,
        )
        ids = [each["id"] for each in first.execute("SHOW QUERIES;")[0]["queries"]]
        first.execute("INSERT INTO s VALUES ('a', 1);")
        first.query("SELECT * FROM doubled EMIT CHANGES LIMIT 1;", EARLIEST)
    with sql_server(broker.bootstrap, **settings) as second:
        assert [each["id"] for each in second.execute("SHOW QUERIES;")[0]["queries"]] == ids
        second.execute("INSERT INTO s VALUES ('b', 2);")
        found = second.query("SELECT * FROM doubled EMIT CHANGES LIMIT 2;", EARLIEST)
        assert [each["row"]["columns"] for each in found[1:3]] == [["a", 2], ["b", 4]]


def test_commands_have_ksqldbs_form(server: SqlServer, broker: BrokerProcess) -> None:
    made = server.execute(
        "CREATE STREAM told (id STRING KEY, v INT) "
        "WITH (kafka_topic='told', value_format='JSON', partitions=1);",
        EARLIEST,
    )
    partition = TopicPartition("_confluent-ksql-default__command_topic", 0)
    with Consumer(bootstrap_servers=broker.bootstrap, group_id=None) as consumer:
        consumer.assign([partition])
        consumer.seek(partition, made[0]["commandSequenceNumber"])
        (record, *_) = eventually(lambda: list(consumer.poll(1.0)), what="the command")
    assert json.loads(record.key) == "stream/`TOLD`/create" == made[0]["commandId"]
    command = json.loads(record.value)
    assert command["statement"].startswith("CREATE STREAM told (id STRING KEY, v INT)")
    assert command["streamsProperties"] == EARLIEST
    assert set(command) >= {"originalProperties", "plan", "version"}


def test_queries_of_a_file_run_without_commands(broker: BrokerProcess, tmp_path: Path) -> None:
    file = tmp_path / "queries.sql"
    file.write_text(
        "CREATE STREAM f (id STRING KEY, v INT) "
        "WITH (kafka_topic='headless', value_format='JSON', partitions=1);\n"
        "CREATE STREAM g AS SELECT * FROM f;\n"
    )
    with sql_server(
        broker.bootstrap, ksql_service_id="headless_", ksql_queries_file=str(file)
    ) as found:
        assert len(found.execute("SHOW QUERIES;")[0]["queries"]) == 1


def test_the_shell_shows_answers_and_rows(
    server: SqlServer, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = io.StringIO()
    shell = Shell(SqlClient(server.url), shown)
    script = """
        CREATE STREAM typed (id STRING KEY, v INT)
            WITH (kafka_topic='typed', value_format='JSON', partitions=1);
        INSERT INTO typed VALUES ('a', 1);
        SET 'auto.offset.reset' = 'earliest';
        SELECT id, v + 1 AS more FROM typed EMIT CHANGES LIMIT 1;
        DESCRIBE typed;
    """
    assert shell.execute(script) == 0
    lines = shown.getvalue().splitlines()
    assert lines[0] == "Stream created"
    assert lines[2:4] == ["ID\tMORE", "a\t2"]
    assert "ID\tVARCHAR(STRING) (key)" in lines
    assert shell.execute("DROP STREAM nowhere;") == 1
    assert "NOWHERE" in capsys.readouterr().err
    assert shell.run(io.StringIO("SHOW\nSTREAMS;\nexit\n")) == 0
    assert "TYPED\ttyped\tKAFKA\tJSON\tfalse" in shown.getvalue()


def test_pull_queries_show_tables_and_streams_as_they_are(server: SqlServer) -> None:
    server.execute(
        "CREATE STREAM clicks (id STRING KEY, n INT) "
        "WITH (kafka_topic='clicks', value_format='JSON', partitions=2);"
        "INSERT INTO clicks VALUES ('a', 1);INSERT INTO clicks VALUES ('b', 2);"
        "INSERT INTO clicks VALUES ('a', 3);"
    )
    rows = server.query("SELECT id, n FROM clicks WHERE n > 1;")
    assert sorted(each["row"]["columns"] for each in rows[1:-1]) == [["a", 3], ["b", 2]]
    assert rows[-1] == {"finalMessage": "Query Completed"}
    server.execute(
        "CREATE TABLE sums AS SELECT id, SUM(n) AS n FROM clicks GROUP BY id;"
        "CREATE TABLE hourly AS SELECT id, COUNT(*) AS n FROM clicks "
        "WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY id;",
        EARLIEST,
    )
    wanted = [{"row": {"columns": ["a", 4]}}]
    eventually(
        lambda: server.query("SELECT * FROM sums WHERE id = 'a';")[1:] == wanted, what="the sum"
    )
    header = server.query("SELECT * FROM sums WHERE id = 'a';")[0]["header"]
    assert header["schema"] == "`ID` STRING KEY, `N` INTEGER"
    assert len(server.query("SELECT * FROM sums;")) == 3
    eventually(
        lambda: len(server.query("SELECT * FROM hourly WHERE id = 'a';")) == 2, what="a window"
    )
    with server.stream("SELECT * FROM sums WHERE id = 'b';") as lines:
        assert next(lines)["columnNames"] == ["ID", "N"]
        assert list(lines) == [["b", 2]]
    wrong = server.post("/query", {"ksql": "SELECT * FROM sums GROUP BY id;"}).json()
    assert "Pull queries don't support GROUP BY clauses" in wrong["message"]
