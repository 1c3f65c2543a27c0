"""Random requests to a SQL server: statements of ksqlDB's cases that are changed, statements made
from a grammar, and bodies that are none. Each is answered with one clear error, or carried out.

    PYTHONPATH=tests python -m support.ksql.server_fuzz --count 20000 --seed 1
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from moldau.services.sql.hosting import QueryHost
from moldau.sql.syntax.lexer import tokens
from support.ksql.cases import FOLDER, Case, cases
from support.processes import moldau
from support.sql_server import SqlServer, sql_server

__all__ = ["Fuzzer"]

_TIMEOUT_S = 60
NAMES = ("a", "b", "orders", "`Quoted`", "t1", "\u00fcber", "x" * 300, "1x", "ROWKEY", "")
TYPES = ("INT", "STRING", "DECIMAL(4, 2)", "ARRAY<INT>", "MAP<STRING, INT>", "STRUCT<a INT>",
         "BYTES", "DECIMAL(99, 1)", "ARRAY<", "NOTHING")  # fmt: skip
FORMATS = ("JSON", "DELIMITED", "KAFKA", "AVRO", "NONE", "XML", "")
EXPRESSIONS = ("1", "'x'", "NULL", "a", "a.b", "a[1]", "COUNT(*)", "SUM(a)", "1/0",
               "CAST(a AS INT)",
               "x => x + 1", "ABS(-1)", "CASE WHEN a THEN 1 END", "a->b->c", "(((((1)))))",
               "9999999999999999999999", "1e400", "'" + "y" * 3000 + "'", "NOPE(1)")  # fmt: skip


class Fuzzer:
    """Makes requests; the same for a seed."""

    def __init__(self, seed: int, found: Sequence[Case]) -> None:
        self._chance = random.Random(seed)
        self._cases = found
        sample = self._chance.sample(found, min(80, len(found))) if found else []
        self._words = [token.text for each in sample for token in tokens(each.script)[:-1]]
        self._words += [";", "(", ")", ",", "'", "`", '"', "--", "/*", "\x00", "${x}", "\ud800"]

    def request(self) -> tuple[str, bytes]:
        """A path and a body."""
        pick = self._chance.random()
        if pick < 0.05:
            return self._chance.choice(("/ksql", "/query", "/query-stream")), self._garbage()
        sql = self._mutated() if pick < 0.55 and self._cases else self._made()
        path = self._chance.choice(("/ksql", "/ksql", "/query", "/query-stream"))
        if path == "/query-stream":
            body: Any = {"sql": sql, "properties": self._properties()}
        else:
            body = {"ksql": sql, "streamsProperties": self._properties()}
        return path, json.dumps(body).encode()

    def _properties(self) -> Any:
        chance = self._chance
        if chance.random() < 0.8:
            return {}
        keys = ("auto.offset.reset", "ksql.nothing", "x", "processing.guarantee")
        values = ("earliest", "", None, 1, [], "exactly_once_v2", {"a": 1})
        return {chance.choice(keys): chance.choice(values)}

    def _garbage(self) -> bytes:
        chance = self._chance
        return chance.choice(
            (b"", b"{", b"[]", b"null", b"1", b'{"ksql":1}', b'{"ksql":{}}', b'{"sql":[]}',
             b'{"ksql":""}', b'{"ksql":";"}', b"\xff\xfe", b'{"ksql":"SHOW STREAMS;","x":',
             b'{"ksql":"SHOW STREAMS;","streamsProperties":[]}',
             b'{"ksql":"SHOW STREAMS;","sessionVariables":1}',
             chance.randbytes(chance.randrange(200)))
        )  # fmt: skip

    def _mutated(self) -> str:
        chance = self._chance
        found = [each.text for each in tokens(chance.choice(self._cases).script)[:-1]]
        for _ in range(chance.choice((1, 1, 2, 3))):
            place = chance.randrange(len(found))
            match chance.randrange(4):
                case 0 if len(found) > 1:
                    del found[place]
                case 1:
                    found[place] = chance.choice(self._words)
                case 2:
                    found.insert(place, chance.choice(self._words))
                case _:
                    other = chance.randrange(len(found))
                    found[place], found[other] = found[other], found[place]
        return " ".join(found)

    def _made(self) -> str:
        chance = self._chance
        name, other = chance.choice(NAMES), chance.choice(NAMES)
        kind = chance.choice(("STREAM", "TABLE"))
        columns = ", ".join(
            f"{chance.choice(NAMES)} {chance.choice(TYPES)}{chance.choice((' KEY', '', ''))}"
            for _ in range(chance.randrange(4))
        )
        shown = ", ".join(chance.choice(EXPRESSIONS) for _ in range(chance.randrange(1, 4)))
        condition = f"{chance.choice(EXPRESSIONS)} {chance.choice(('=', '<', 'LIKE', 'IN'))} " + (
            chance.choice(EXPRESSIONS)
        )
        select = f"SELECT {shown} FROM {name} {chance.choice(('', f'WHERE {condition}'))} " + (
            chance.choice(
                ("", "GROUP BY a", f"PARTITION BY {other}", "WINDOW TUMBLING (SIZE 0 DAYS)")
            )
        )
        text = chance.choice(
            (
                f"CREATE {kind} {name} ({columns}) WITH (kafka_topic='fuzz', partitions="
                f"{chance.choice(('1', '0', '-1', 'x'))}, value_format='{chance.choice(FORMATS)}')",
                f"CREATE {kind} {name} AS {select}",
                f"INSERT INTO {name} VALUES ({shown})",
                f"INSERT INTO {name} {select}",
                f"{select} {chance.choice(('', 'EMIT CHANGES LIMIT 0', 'LIMIT 1'))}",
                f"DROP {kind} {chance.choice(('', 'IF EXISTS '))}{name}",
                f"DESCRIBE {name} EXTENDED",
                f"EXPLAIN {select}",
                f"TERMINATE {name}",
                f"PRINT {name} FROM BEGINNING LIMIT 1",
                f"ASSERT TOPIC {name} TIMEOUT 0 SECONDS",
                f"ALTER STREAM {name} ADD COLUMN {other} INT",
                f"CREATE TYPE {name} AS {chance.choice(TYPES)}",
                f"DESCRIBE FUNCTION {name}",
                f"DESCRIBE CONNECTOR {name}",
                f"SET '{name}'='{other}'",
                f"CREATE SOURCE CONNECTOR {name} WITH ('a'='b')",
            )
        )
        return text + chance.choice((";", ";", ";", "", ";;"))


def run(
    server: SqlServer, fuzzer: Fuzzer, count: int, seconds: float = float("inf")
) -> Counter[int]:
    """Send requests; AssertionError for the first that is not answered as it should be."""
    statuses: Counter[int] = Counter()
    until = time.monotonic() + seconds
    with httpx.Client(base_url=server.url, timeout=_TIMEOUT_S) as client:
        for number in range(count):
            if time.monotonic() > until:
                break
            path, body = fuzzer.request()
            with client.stream("POST", path, content=body) as answer:
                status = answer.status_code
                statuses[status] += 1
                if status == 200:
                    # A push query may never end.
                    next(answer.iter_bytes(), b"")
                    continue
                text = answer.read()
            error = json.loads(text)
            assert 400 <= status < 500, f"{number}: {path} {body!r}: {status} {text!r}"
            assert error["message"], f"{number}: {path} {body!r}: {text!r}"
            assert "Traceback" not in error["message"], text
            if number % 50 == 49:
                _clean(server)
        assert client.get("/healthcheck").json()["isHealthy"] is True
    return statuses


def _clean(server: SqlServer) -> None:
    core = server.service.service.core
    with core.lock:
        core.engine = core._new_engine()


def without_hosting(host: QueryHost) -> None:
    """What a statement is answered with does not depend on whether its query runs."""
    start = host.start

    def transient_only(query: Any, overrides: Any, *, transient: bool = False) -> None:
        if transient:
            start(query, overrides, transient=True)

    host.start = transient_only  # type: ignore[method-assign]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after this time")
    arguments = parser.parse_args()
    found = [each for each in cases() if len(each.script) < 1500] if FOLDER.exists() else []
    print(f"seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        settings = ["group.initial.rebalance.delay.ms=0", "auto.create.topics.enable=false"]
        with (
            moldau(Path(folder), settings) as broker,
            sql_server(broker.bootstrap, ksql_streams_state_dir=f"{folder}/state") as server,
        ):
            without_hosting(server.service.service.core.host)
            fuzzer = Fuzzer(arguments.seed, found)
            statuses = run(server, fuzzer, arguments.count, arguments.seconds)
            print(f"{statuses.total()} requests, by status: {dict(statuses)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
