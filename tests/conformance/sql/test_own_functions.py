"""Functions of users in a server: a bad one fails its query, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.processes import BrokerProcess
from support.sql_server import SqlServer, sql_server
from support.waiting import eventually

EARLIEST = {"auto.offset.reset": "earliest"}
MINE = '''
import os, subprocess, time
from moldau.sql.functions import udf

@udf
def shout(text: str) -> str:
    """In capitals."""
    return text.upper()

@udf
def crash(text: str) -> str:
    os.abort()

@udf
def hang(text: str) -> str:
    time.sleep(3600)

@udf
def spin(text: str) -> str:
    while True:
        pass

@udf
def eat(text: str) -> str:
    eaten = []
    while True:
        eaten.append(bytearray(1 << 30))

@udf
def leave(text: str) -> str:
    os._exit(0)

@udf
def ask_to_leave(text: str) -> str:
    raise SystemExit(7)

@udf
def leave_children(text: str) -> str:
    subprocess.Popen(["sleep", "3600"])
    time.sleep(3600)
'''


@pytest.fixture(scope="module")
def with_functions(
    broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SqlServer]:
    folder = tmp_path_factory.mktemp("ext")
    (folder / "mine.py").write_text(MINE)
    with sql_server(
        broker.bootstrap,
        ksql_service_id="own_",
        ksql_extension_dir=str(folder),
        ksql_functions_python_timeout_ms="1000",
        ksql_functions_python_memory_max_bytes=str(256 * 1024 * 1024),
        ksql_streams_state_dir=str(folder / "state"),
        ksql_streams_commit_interval_ms="100",
    ) as found:
        yield found


#: Functions that harm, and what their queries say.
HARMFUL = {
    "CRASH": "has ended its process, with code -6",
    "HANG": "took longer than 1000 ms",
    "SPIN": "took longer than 1000 ms",
    "EAT": "needs more memory than 268435456",
    "LEAVE": "has ended its process, with code 0",
    "ASK_TO_LEAVE": "has ended its process, with code 7",
    "LEAVE_CHILDREN": "took longer than 1000 ms",
}


def test_harmful_functions_fail_their_queries_only(with_functions: SqlServer) -> None:
    server = with_functions
    server.execute(
        "CREATE STREAM said (id STRING KEY, t STRING) "
        "WITH (kafka_topic='said', value_format='JSON', partitions=1);"
    )
    server.execute("CREATE STREAM loud AS SELECT id, SHOUT(t) AS t FROM said;", EARLIEST)
    for name in HARMFUL:
        server.execute(f"CREATE STREAM by_{name} AS SELECT id, {name}(t) AS t FROM said;", EARLIEST)
    server.execute("INSERT INTO said VALUES ('a', 'one');")

    def queries() -> dict[str, dict[str, Any]]:
        (shown,) = server.execute("SHOW QUERIES EXTENDED;")
        return {each["sinks"][0]: each for each in shown["queryDescriptions"]}

    def failed() -> set[str]:
        return {name for name, each in queries().items() if each["queryErrors"]}

    eventually(
        lambda: failed() == {f"BY_{name}" for name in HARMFUL}, what="all harmful queries failed"
    )
    said = {name: each["queryErrors"][0]["errorMessage"] for name, each in queries().items()
            if each["queryErrors"]}  # fmt: skip
    for name, why in HARMFUL.items():
        assert why in said[f"BY_{name}"]
    server.execute("INSERT INTO said VALUES ('b', 'two');")
    found = server.query("SELECT t FROM loud EMIT CHANGES LIMIT 2;", EARLIEST)
    assert [each["row"]["columns"] for each in found[1:3]] == [["ONE"], ["TWO"]]
    assert queries()["LOUD"]["state"] == "RUNNING"
    for each in queries().values():
        if each["queryErrors"]:
            server.execute(f"TERMINATE {each['id']};")
    (described,) = server.execute("DESCRIBE FUNCTION shout;")
    assert described["description"] == "In capitals."
    assert described["path"].endswith("mine.py")


def test_sorted_and_cut_over_http(with_functions: SqlServer) -> None:
    server = with_functions
    server.execute(
        "CREATE STREAM scores (id STRING KEY, n INT) "
        "WITH (kafka_topic='scores', value_format='JSON', partitions=3);"
        "CREATE TABLE best AS SELECT id, MAX(n) AS n FROM scores GROUP BY id;",
        EARLIEST,
    )
    for index, name in enumerate("abcdef"):
        server.execute(f"INSERT INTO scores VALUES ('{name}', {index * 7 % 5});")

    def shown(clauses: str, source: str = "best") -> list[list[object]]:
        found = server.query(f"SELECT id, n FROM {source} {clauses};")
        return [each["row"]["columns"] for each in found[1:] if "row" in each]

    eventually(lambda: len(shown("")) == 6, what="all rows are there")
    expected = [["c", 4], ["e", 3], ["b", 2], ["d", 1], ["a", 0], ["f", 0]]
    assert shown("ORDER BY n DESC, id") == expected
    assert shown("ORDER BY n DESC, id LIMIT 2 OFFSET 1") == expected[1:3]
    assert shown("ORDER BY n DESC, id LIMIT 2", "scores") == expected[:2]
