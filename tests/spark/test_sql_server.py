"""A SQL server whose queries with ENGINE='spark-sql' run on Spark."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from spark.running import committed
from support.sql_server import sql_server
from support.waiting import eventually

EARLIEST = {"auto.offset.reset": "earliest"}


@pytest.mark.slow("a SQL server starts, and its query on Spark twice")
def test_a_query_runs_on_spark_and_goes_on_after_a_pause(
    spark: Any, spark_url: str, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    name = topic.replace("-", "_")
    with sql_server(
        bootstrap,
        ksql_service_id=f"{name}_",
        ksql_streams_state_dir=str(tmp_path / "state"),
        ksql_spark_remote=spark_url,
        ksql_spark_checkpoint_dir=str(tmp_path / "checkpoints"),
    ) as server:
        server.execute(
            f"CREATE STREAM s (id STRING KEY, n INT) WITH (kafka_topic='{topic}', "
            "value_format='JSON', partitions=1);"
            "INSERT INTO s VALUES ('a', 1); INSERT INTO s VALUES ('b', -1);"
            "INSERT INTO s VALUES ('c', 3);"
        )
        server.execute(
            f"CREATE STREAM o WITH (kafka_topic='{topic}-out', engine='spark-sql') AS "
            "SELECT id, n + 1 AS m FROM s WHERE n > 0;",
            EARLIEST,
        )
        (query,) = server.execute("SHOW QUERIES;")[0]["queries"]
        assert (query["id"].startswith("CSAS_O_"), query["state"]) == (True, "RUNNING")
        found = server.query("SELECT id, m FROM o EMIT CHANGES LIMIT 2;", EARLIEST)
        assert [each["row"]["columns"] for each in found[1:3]] == [["a", 2], ["c", 4]]

        def written() -> list[tuple[str, int]]:
            """Spark writes in transactions, and one that a pause interrupts is written again."""
            return [
                ((each.key or b"").decode(), json.loads(each.value or b"")["M"])
                for each in committed(bootstrap, f"{topic}-out")
            ]

        # It is Spark that runs it.
        assert (tmp_path / "checkpoints").is_dir()

        server.execute(f"PAUSE {query['id']};")
        assert server.execute("SHOW QUERIES;")[0]["queries"][0]["state"] == "PAUSED"
        server.execute("INSERT INTO s VALUES ('d', 5);")
        server.execute(f"RESUME {query['id']};")
        eventually(lambda: len(written()) > 2, what="the row after the pause", seconds_max=120)
        assert written() == [("a", 2), ("c", 4), ("d", 6)]
        server.execute(f"TERMINATE {query['id']};")
        eventually(
            lambda: server.execute("SHOW QUERIES;")[0]["queries"] == [], what="the query's end"
        )


def test_tables_of_spark_are_copied_to_topics(
    spark: Any, spark_url: str, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    name = topic.replace("-", "_")
    place = tmp_path / "tables"
    customers = spark.sql(
        "SELECT id, concat('name ', id) AS name, CAST(id AS decimal(8, 2)) AS credit, "
        "timestamp_millis(id * 1000) AS since, array(id, NULL) AS numbers, "
        "named_struct('city', 'B') AS address FROM range(5)"
    )
    customers.write.parquet(str(place / "customers"))
    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.execute("CREATE TABLE items (sku TEXT PRIMARY KEY, price REAL)")
        database.executemany("INSERT INTO items VALUES (?, ?)", [("a", 1.5), ("b", 2.5)])
    database.close()
    with sql_server(
        bootstrap,
        ksql_service_id=f"{name}_",
        ksql_streams_state_dir=str(tmp_path / "state"),
        ksql_spark_remote=spark_url,
        ksql_spark_tables=f"{place},jdbc:sqlite:{tmp_path}",
    ) as server:
        (created,) = server.execute(
            f"CREATE TABLE customers WITH (kafka_topic='{topic}-c', value_format='JSON', "
            "partitions=2, key='id') AS SELECT id, UCASE(name) AS name, credit, since, numbers, "
            f"address->city AS city FROM parquet.`{place}/customers` c WHERE c.id > 0;"
        )
        message = created["commandStatus"]["message"]
        assert message == f"Table created with 4 rows of parquet.`{place}/customers`"
        # It is a table like any other: kept, joined and asked.
        server.execute(
            f"CREATE TABLE kept WITH (kafka_topic='{topic}-k') AS SELECT * FROM customers;",
            EARLIEST,
        )

        def rows(sql: str) -> list[Any]:
            return [each["row"]["columns"] for each in server.query(sql) if "row" in each]

        eventually(lambda: len(rows("SELECT id FROM kept;")) == 4, what="all rows are kept")
        assert rows("SELECT * FROM kept WHERE id = 3;") == [
            [3, "NAME 3", 3.00, "1970-01-01T00:00:03.000", [3, None], "B"]
        ]
        (copied,) = server.execute(
            f"CREATE STREAM items WITH (kafka_topic='{topic}-i', value_format='JSON', key='sku') "
            f"AS SELECT sku, price FROM jdbc.`jdbc:sqlite:{tmp_path}/shop.db#table=items`;"
        )
        assert copied["commandStatus"]["status"] == "SUCCESS"
        assert sorted(rows("SELECT * FROM items;")) == [["a", 1.5], ["b", 2.5]]

        def refused(sql: str) -> str:
            answer = server.post("/ksql", {"ksql": sql})
            assert answer.status_code == 400, answer.text
            return str(answer.json()["message"])

        again = f"AS SELECT * FROM parquet.`{place}/customers`;"
        with_topic = f"CREATE STREAM more WITH (kafka_topic='{topic}-c', value_format='JSON') "
        assert f"The topic {topic}-c exists" in refused(with_topic + again)
        elsewhere = "AS SELECT * FROM text.`/etc/hostname`;"
        start = f"CREATE STREAM more WITH (kafka_topic='{topic}-m', value_format='JSON') "
        assert "may not be read" in refused(start + elsewhere)
        assert "cannot be read" in refused(start + f"AS SELECT * FROM parquet.`{place}/none`;")
        # A row without a key ends the copy, and nothing is left of it.
        nulls = (
            "SELECT CASE WHEN id = 2 THEN CAST(NULL AS BIGINT) ELSE id END AS id, name FROM parquet"
        )
        assert "no value for the primary key" in refused(
            f"CREATE TABLE more WITH (kafka_topic='{topic}-m', value_format='JSON', key='id') "
            f"AS {nulls}.`{place}/customers`;"
        )
        names = [each["name"] for each in server.execute("SHOW STREAMS;")[0]["streams"]]
        tables = [each["name"] for each in server.execute("SHOW TABLES;")[0]["tables"]]
        assert "MORE" not in names + tables
        topics = [each["name"] for each in server.execute("SHOW TOPICS;")[0]["topics"]]
        assert f"{topic}-m" not in topics
        server.execute("DROP TABLE kept; DROP TABLE customers; DROP STREAM items;")
