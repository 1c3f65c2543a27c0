"""Servers with one service id: they share the work, and what one does not have another one does."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Producer
from support.processes import BrokerProcess
from support.sql_server import SqlProcess, SqlRequests, SqlServer, sql_process, sql_server
from support.waiting import eventually

EARLIEST = {"auto.offset.reset": "earliest"}
SETTINGS = {
    "ksql_heartbeat_enable": "true",
    "ksql_lag_reporting_enable": "true",
    "ksql_lag_reporting_send_interval_ms": "200",
    "ksql_streams_commit_interval_ms": "100",
    "ksql_streams_auto_offset_reset": "earliest",
    "ksql_streams_session_timeout_ms": "6000",
    "ksql_streams_heartbeat_interval_ms": "500",
}
PARTITIONS = 4


@pytest.fixture(scope="module")
def servers(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("state")
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                sql_server(
                    broker.bootstrap,
                    ksql_service_id="pair_",
                    ksql_streams_state_dir=str(folder / str(number)),
                    **SETTINGS,
                )
            )
            for number in range(2)
        ]


def counted(server: SqlRequests, table: str) -> dict[str, int]:
    found = server.query(f"SELECT * FROM {table};")
    rows = [each["row"]["columns"] for each in found if "row" in each]
    assert len(rows) == len({row[0] for row in rows}), "a key is in two places"
    return {str(key): int(count) for key, count in rows}


def partitions_of(server: SqlRequests, query_id: str) -> dict[str, int]:
    """How many partitions each server has of a query."""
    status = server.get("/clusterStatus")["clusterStatus"]
    return {
        address: len(each["activeStandbyPerQuery"].get(query_id, {}).get("activePartitions", []))
        for address, each in status.items()
    }


def test_they_share_queries_and_answer_as_one(
    servers: list[SqlServer], broker: BrokerProcess
) -> None:
    one, two = servers
    one.execute(
        "CREATE STREAM visits (page STRING KEY, n INT) "
        f"WITH (kafka_topic='visits', value_format='JSON', partitions={PARTITIONS});"
    )
    # The other one is given the next statement: it has read the first before it decides.
    made = two.execute(
        "CREATE TABLE pages AS SELECT page, COUNT(*) AS n FROM visits GROUP BY page;"
    )
    query_id = made[0]["commandStatus"]["queryId"]
    eventually(lambda: query_id in str(one.execute("SHOW QUERIES;")), what="both have the query")
    eventually(
        lambda: sorted(partitions_of(one, query_id).values()) == [2, 2],
        what="each has half of the partitions",
    )
    rows = b"".join(b'{"page":"p%d","n":1}\n' % (index % 20) for index in range(200))
    one.post("/inserts-stream", b'{"target":"visits"}\n' + rows, Accept="*/*")
    whole = {f"p{index}": 10 for index in range(20)}
    for server in servers:
        eventually(lambda: counted(server, "pages") == whole, what="the whole table")  # noqa: B023
        for page in ("p0", "p7", "p13"):
            found = server.query(f"SELECT n FROM pages WHERE page='{page}';")
            assert [each["row"]["columns"] for each in found if "row" in each] == [[10]]
        limited = server.query("SELECT * FROM pages LIMIT 5;")
        assert len([each for each in limited if "row" in each]) == 5
        sorted_rows = server.query("SELECT page FROM pages ORDER BY page DESC LIMIT 3 OFFSET 1;")
        found = [each["row"]["columns"][0] for each in sorted_rows if "row" in each]
        assert found == ["p8", "p7", "p6"]
    two.execute(f"TERMINATE {query_id};")
    eventually(lambda: query_id not in str(one.execute("SHOW QUERIES;")), what="both ended it")


def test_they_see_one_another(servers: list[SqlServer]) -> None:
    one, two = servers
    two.execute(
        "CREATE STREAM seen (id STRING KEY) "
        f"WITH (kafka_topic='seen', value_format='JSON', partitions={PARTITIONS});"
        "CREATE TABLE seen_counts AS SELECT id, COUNT(*) AS n FROM seen GROUP BY id;"
    )
    other = two.url.removeprefix("http://")

    def status() -> Any:
        return one.get("/clusterStatus")["clusterStatus"].get(other, {})

    eventually(
        lambda: status().get("hostAlive") and status()["lastStatusUpdateMs"] > 0,
        what="the other one is alive",
    )
    eventually(lambda: status()["hostStoreLags"]["stateStoreLags"], what="its lags")


def test_statements_at_the_same_time_have_one_order(servers: list[SqlServer]) -> None:
    def create(number: int) -> int:
        server = servers[number % 2]
        for _ in range(20):
            answer = server.post(
                "/ksql",
                {
                    "ksql": f"CREATE STREAM race_{number} (id STRING KEY) WITH (kafka_topic="
                    f"'race_{number}', value_format='JSON', partitions=1);"
                },
            )
            if answer.status_code == 200:
                return number
            # Another server wrote first: its error says so, and the statement may be repeated.
            assert "Try again" in answer.json()["message"], answer.text
        raise AssertionError("never written")

    with ThreadPoolExecutor(4) as pool:
        assert len(list(pool.map(create, range(8)))) == 8

    def names(server: SqlServer) -> set[str]:
        return {each["name"] for each in server.execute("SHOW STREAMS;")[0]["streams"]}

    for server in servers:
        eventually(
            lambda: {f"RACE_{number}" for number in range(8)} <= names(server),  # noqa: B023
            what="all streams on both",
        )


@pytest.fixture
def pair(broker: BrokerProcess, tmp_path: Path) -> Iterator[list[SqlProcess]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                sql_process(
                    broker.bootstrap,
                    tmp_path / str(number),
                    ksql_service_id="killed_",
                    ksql_streams_processing_guarantee="exactly_once_v2",
                    **SETTINGS,
                )
            )
            for number in range(2)
        ]


@pytest.mark.long("kills a server under load; streams' tests kill instances")
@pytest.mark.slow("two servers are started as processes, one is killed and its session must expire")
def test_a_server_is_killed_under_load_and_every_row_counts_once(
    pair: list[SqlProcess], broker: BrokerProcess
) -> None:
    one, two = pair
    one.execute(
        "CREATE STREAM paid (card STRING KEY, amount INT) "
        f"WITH (kafka_topic='paid', value_format='JSON', partitions={PARTITIONS});"
    )
    made = one.execute("CREATE TABLE spent AS SELECT card, COUNT(*) AS n FROM paid GROUP BY card;")
    query_id = made[0]["commandStatus"]["queryId"]
    eventually(
        lambda: sorted(partitions_of(one, query_id).values()) == [2, 2], what="work is shared"
    )
    cards, rounds = 40, 100
    with Producer(bootstrap_servers=broker.bootstrap, linger_ms=5) as producer:
        for index in range(rounds):
            for card in range(cards):
                producer.send("paid", b'{"amount":1}', key=f"c{card}".encode())
            producer.flush()
            if index == rounds // 3:
                eventually(lambda: counted(one, "spent"), what="some are counted")
            if index == rounds // 2:
                two.kill()
    wanted = {f"c{card}": rounds for card in range(cards)}
    eventually(lambda: _counted(one) == wanted, what="every row, once", seconds_max=90)
    # The topic says the same: nothing was counted twice and taken back.
    found = one.query("SELECT * FROM spent EMIT CHANGES LIMIT 1;", EARLIEST)
    assert found[1]["row"]["columns"][1] <= rounds


def _counted(server: SqlRequests) -> dict[str, int] | None:
    """None while the partitions of the server that was killed have not moved."""
    answer = server.post("/query", {"ksql": "SELECT * FROM spent;"})
    if answer.status_code != 200:
        return None
    rows = [each["row"]["columns"] for each in answer.json() if "row" in each]
    return {str(key): int(count) for key, count in rows}


def test_a_question_is_sent_on_with_the_credentials_of_its_user(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    """Servers that ask for a password still see one another, and answer for one another."""
    users = tmp_path / "users"
    users.write_text("ada: secret,sql\n")
    with ExitStack() as stack:
        pair = [
            stack.enter_context(
                sql_server(
                    broker.bootstrap,
                    ksql_service_id="locked_",
                    ksql_streams_state_dir=str(tmp_path / str(number)),
                    authentication_method="BASIC",
                    authentication_roles="sql",
                    authentication_users_file=str(users),
                    **SETTINGS,
                )
            )
            for number in range(2)
        ]
        first, second = pair
        assert first.post("/ksql", {"ksql": "SHOW QUERIES;"}).status_code == 401
        for each in pair:
            each._client.auth = ("ada", "secret")
        first.execute(
            "CREATE STREAM locked (id STRING KEY, n INT) "
            f"WITH (kafka_topic='locked', value_format='JSON', partitions={PARTITIONS});"
            "CREATE TABLE locked_counts AS SELECT id, COUNT(*) AS c FROM locked GROUP BY id;"
        )
        names = [f"k{number}" for number in range(12)]
        first.execute("".join(f"INSERT INTO locked VALUES ('{name}', 1);" for name in names))
        expected = dict.fromkeys(names, 1)

        def answers(server: SqlServer) -> bool:
            found = server.post("/query", {"ksql": "SELECT * FROM locked_counts;"})
            return found.status_code == 200 and counted(server, "locked_counts") == expected

        def is_shared() -> bool:
            (query_id,) = [each["id"] for each in first.execute("SHOW QUERIES;")[0]["queries"]]
            shares = partitions_of(first, query_id)
            return len(shares) == 2 and all(shares.values())

        eventually(is_shared, what="partitions at both servers", seconds_max=60)
        for each in (first, second):
            eventually(lambda each=each: answers(each), what="all rows", seconds_max=60)


@pytest.mark.long("two servers more; standbys of Streams have their own tests")
def test_a_standby_answers_for_a_server_that_is_gone(broker: BrokerProcess, tmp_path: Path) -> None:
    """Before its tasks are given to another: the group waits for it longer than this test."""
    settings = {
        **SETTINGS,
        "ksql_streams_num_standby_replicas": "1",
        "ksql_streams_session_timeout_ms": "45000",
        "ksql_query_pull_enable_standby_reads": "true",
        "ksql_service_id": "standby_",
    }
    with (
        sql_server(
            broker.bootstrap, ksql_streams_state_dir=str(tmp_path / "own"), **settings
        ) as own,
        sql_process(broker.bootstrap, tmp_path / "other", **settings) as other,
    ):
        own.execute(
            "CREATE STREAM doubled (id STRING KEY, n INT) "
            f"WITH (kafka_topic='doubled', value_format='JSON', partitions={PARTITIONS});"
            "CREATE TABLE doubled_counts AS SELECT id, COUNT(*) AS c FROM doubled GROUP BY id;"
        )
        (query_id,) = [each["id"] for each in own.execute("SHOW QUERIES;")[0]["queries"]]
        eventually(
            lambda: sorted(partitions_of(own, query_id).values()) == [2, 2],
            what="each has half of the partitions",
            seconds_max=60,
        )
        names = [f"k{number}" for number in range(12)]
        own.execute("".join(f"INSERT INTO doubled VALUES ('{name}', 1);" for name in names))
        expected = dict.fromkeys(names, 1)
        eventually(lambda: counted(own, "doubled_counts") == expected, what="all rows")

        def has_standbys() -> bool:
            status = own.get("/clusterStatus")["clusterStatus"]
            found = [
                each["activeStandbyPerQuery"].get(query_id, {}).get("standByPartitions", [])
                for each in status.values()
            ]
            return sorted(map(len, found)) == [2, 2]

        eventually(has_standbys, what="standbys at both servers", seconds_max=60)
        other.kill()
        eventually(lambda: counted(own, "doubled_counts") == expected, what="all rows of a standby")
