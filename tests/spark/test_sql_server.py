"""A SQL server whose queries with ENGINE='spark-sql' run on Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from spark.running import committed
from support.sql_server import sql_server
from support.waiting import eventually

EARLIEST = {"auto.offset.reset": "earliest"}


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
