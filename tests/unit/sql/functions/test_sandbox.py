"""Functions of users: declared by decorators, run in processes that may die."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from moldau.sql.engine.engine import KsqlEngine
from moldau.sql.engine.ports import MemoryTopics
from moldau.sql.errors import KsqlException, QueryFailed
from moldau.sql.formats import format_for
from moldau.sql.functions import udaf, udf, udtf
from moldau.sql.functions.registry import FunctionRegistry, built_in
from moldau.sql.functions.sandbox.loading import EXTENSION_DIR, MODULES, add_extensions, load
from moldau.sql.functions.sandbox.process import Limits
from moldau.sql.testing.script import ScriptTester
from moldau.streams import TopologyTestDriver
from moldau.streams.errors import StreamsError
from support.descriptors import many_descriptors

MINE = '''
import os, time
from datetime import date, datetime, timedelta
from decimal import Decimal
from moldau.sql.functions import udaf, udf, udtf

@udf(author="me", description="A text, repeated.")
def again(text: str, times: int) -> str:
    print("this is not an answer")
    return text * times

@udf
def later(when: datetime, days: int) -> date:
    return (when + timedelta(days=days)).date()

@udf(parameters=["DECIMAL(6, 2)", "STRUCT<a INT, b ARRAY<DOUBLE>>"], returns="DECIMAL(10, 3)")
def priced(price, more):
    return price * more["A"] + Decimal(len(more["B"]))

@udf
def told(value: str | None) -> str:
    return "nothing" if value is None else value

@udf
def biggest(*values: int) -> int | None:
    return max(values) if values else None

@udf(name="of_map")
def values_of(map: dict[str, int]) -> list[int]:
    return sorted(map.values())

@udf(parameters=["STRING"], returns="BYTES")
def raw(text):
    return text.encode()

@udtf
def words(text: str) -> list[str]:
    yield from text.split()

@udaf
class product:
    """All values, multiplied."""
    def __init__(self, start: int):
        self.start = start
    def initialize(self) -> int:
        return self.start
    def add(self, value: int, state: int) -> int:
        if value == 13:
            raise ValueError("bad luck")
        return state * value
    def merge(self, one: int, other: int) -> int:
        return one * other
    def result(self, state: int) -> str:
        return f"={state}"

@udf
def misbehave(how: str) -> str:
    if how == "raise":
        raise ValueError("as asked")
    if how == "exit":
        os._exit(3)
    if how == "hang":
        time.sleep(1000)
    if how == "eat":
        return str(len(bytearray(10 ** 10)))
    if how == "wrong":
        return 7
    if how == "environment":
        return str(sorted(os.environ))
    return how
'''


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> FunctionRegistry:
    folder = tmp_path_factory.mktemp("ext")
    (folder / "mine.py").write_text(MINE)
    (folder / "broken.py").write_text("import nothing_of_the_kind")
    settings = {EXTENSION_DIR: str(folder), "ksql.functions.python.timeout.ms": "700"}
    return add_extensions(built_in(), settings)


def value(functions: FunctionRegistry, expression: str, **columns: Any) -> Any:
    """An expression over one row, as a query computes it."""
    types = {"s": "STRING", "n": "BIGINT", "ts": "TIMESTAMP", "d": "DECIMAL(6, 2)",
             "st": "STRUCT<a INT, b ARRAY<DOUBLE>>", "m": "MAP<STRING, BIGINT>"}  # fmt: skip
    engine = KsqlEngine(functions=functions, formats=format_for, topics=MemoryTopics())
    declared = ", ".join(f"{name} {kind}" for name, kind in types.items())
    engine.execute_script(
        f"CREATE STREAM x (id STRING KEY, {declared}) WITH (kafka_topic='x', value_format='JSON');"
    )
    rows: list[Any] = []
    sql = f"SELECT {expression} AS v FROM x EMIT CHANGES;"
    statement = engine.prepare(engine.parse(sql)[0])
    query = engine.push_query(statement, lambda key, row, time: rows.append(row), sql)  # type: ignore[arg-type]
    with TopologyTestDriver(query.built.topology) as driver:
        given = tuple(columns.get(name) for name in types)
        driver.input_topic("x").pipe_input(("k",), given)
    return [row[0] for row in rows]


@pytest.mark.parametrize(
    ("expression", "columns", "expected"),
    [
        ("AGAIN(s, 2)", {"s": "ab"}, "abab"),
        ("again(s, n)", {"s": None, "n": 3}, None),
        ("LATER(ts, 1)", {"ts": 86_400_000}, 2),
        ("TOLD(s)", {}, "nothing"),
        ("BIGGEST(n, 5, 2)", {"n": 4}, 5),
        ("OF_MAP(m)", {"m": {"a": 3, "b": 1}}, [1, 3]),
        ("RAW(s)", {"s": "é"}, "é".encode()),
        ("MISBEHAVE(s)", {"s": "raise"}, None),
        ("MISBEHAVE(s)", {"s": "wrong"}, None),
    ],
)
def test_values_go_in_and_out(
    functions: FunctionRegistry, expression: str, columns: dict[str, Any], expected: Any
) -> None:
    assert value(functions, expression, **columns) == [expected]


def test_decimals_and_structs(functions: FunctionRegistry) -> None:
    from decimal import Decimal

    found = value(functions, "PRICED(d, st)", d=Decimal("1.50"), st=(3, [1.0, None]))
    assert [str(each) for each in found] == ["6.500"]


def test_table_and_aggregate_functions(functions: FunctionRegistry) -> None:
    tester = ScriptTester(functions=functions, formats=format_for)
    try:
        tester.run("""
            CREATE STREAM s (id STRING KEY, t STRING, n BIGINT)
                WITH (kafka_topic='s', value_format='JSON');
            CREATE STREAM each_word AS SELECT id, WORDS(t) AS word FROM s;
            CREATE TABLE products AS SELECT id, PRODUCT(n, 10) AS p FROM s GROUP BY id;
            INSERT INTO s VALUES ('a', 'one two', 2);
            INSERT INTO s VALUES ('a', '', 13);
            INSERT INTO s VALUES ('a', 'three', 3);
            ASSERT VALUES each_word (id, word) VALUES ('a', 'one');
            ASSERT VALUES each_word (id, word) VALUES ('a', 'two');
            ASSERT VALUES each_word (id, word) VALUES ('a', 'three');
            ASSERT VALUES products (id, p) VALUES ('a', '=20');
            ASSERT VALUES products (id, p) VALUES ('a', '=20');
            ASSERT VALUES products (id, p) VALUES ('a', '=60');
        """)
    finally:
        tester.close()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("exit", "has ended its process, with code 3"),
        ("hang", "took longer than 700 ms"),
        ("eat", "needs more memory"),
    ],
)
def test_a_function_that_misbehaves_fails_its_query_only(
    functions: FunctionRegistry, how: str, message: str
) -> None:
    with pytest.raises(StreamsError) as caught:
        value(functions, "MISBEHAVE(s)", s=how)
    assert message in str(_cause(caught.value))
    assert value(functions, "MISBEHAVE(s)", s="fine") == ["fine"]


def _cause(error: BaseException | None) -> BaseException | None:
    while error is not None and not isinstance(error, QueryFailed):
        error = error.__cause__ or error.__context__
    return error


def test_secrets_of_the_server_are_not_passed_on(
    functions: FunctionRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KSQL_PASSWORD", "secret")
    (found,) = value(functions, "MISBEHAVE(s)", s="environment")
    assert "KSQL_PASSWORD" not in found
    assert "PATH" in found


def test_they_are_listed_and_described(functions: FunctionRegistry) -> None:
    engine = KsqlEngine(functions=functions, formats=format_for, topics=MemoryTopics())
    shown, described, aggregate = engine.execute_script(
        "SHOW FUNCTIONS; DESCRIBE FUNCTION again; DESCRIBE FUNCTION product;"
    )
    names = {each["name"]: each["type"] for each in shown.rows}  # type: ignore[union-attr]
    assert (names["AGAIN"], names["WORDS"], names["PRODUCT"]) == ("SCALAR", "TABLE", "AGGREGATE")
    (row,) = described.rows  # type: ignore[union-attr]
    assert row["author"] == "me"
    assert row["description"] == "A text, repeated."
    assert row["path"].endswith("mine.py")
    assert [each["type"] for each in row["functions"][0]["arguments"]] == ["VARCHAR", "BIGINT"]
    assert aggregate.rows[0]["description"] == "All values, multiplied."  # type: ignore[union-attr]


def test_a_module_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_functions.py").write_text(MINE)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = add_extensions(built_in(), {MODULES: "my_functions"})
    assert found.function("again").declaration.path == "module my_functions"
    assert "my_functions" not in sys.modules


def test_a_server_may_have_many_files_and_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other_functions.py").write_text(MINE)
    monkeypatch.syspath_prepend(str(tmp_path))
    with many_descriptors():
        found = add_extensions(built_in(), {MODULES: "other_functions"})
    assert found.function("again").declaration.path == "module other_functions"


@pytest.mark.parametrize(
    "text", ["while True: pass", "import os; os._exit(1)", "1 / 0", "bytearray(10 ** 12)"]
)
def test_a_file_that_cannot_be_loaded_is_left_out(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from moldau.sql.functions.sandbox import process

    monkeypatch.setattr(process, "_START_TIMEOUT_S", 2.0)
    (tmp_path / "bad.py").write_text(text)
    with pytest.raises(KsqlException):
        load(str(tmp_path / "bad.py"), Limits())
    kept = add_extensions(built_in(), {EXTENSION_DIR: str(tmp_path)})
    assert len(kept.declarations()) == len(built_in().declarations())


def test_workers_end_with_their_queries(functions: FunctionRegistry) -> None:
    import gc

    value(functions, "TOLD(s)", s="x")
    gc.collect()
    shown = subprocess.run(
        ["pgrep", "-P", str(__import__("os").getpid()), "-f", "sandbox.worker"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert shown.stdout == ""


def _no_type(x) -> str:  # type: ignore[no-untyped-def]
    return ""


def _odd(x: complex) -> str:
    return ""


def _no_result(x: int):  # type: ignore[no-untyped-def]
    return x


def _keyword(*, x: int) -> int:
    return x


@pytest.mark.parametrize(
    ("declare", "made", "message"),
    [
        (udf, _no_type, "x needs a type"),
        (udf, _odd, "has no type in SQL"),
        (udf, _no_result, "needs a type for its result"),
        (udf, _keyword, "cannot be given in SQL"),
        (udtf, lambda: None, "needs a type for its result"),
        (udf(parameters=["INT", "INT"], returns="INT"), _no_type, "1 parameters, but 2 types"),
        (udtf(parameters=["INT"], returns="INT"), _no_type, "is an ARRAY"),
        (udaf, type("Half", (), {"initialize": lambda self: 0}), "needs a method add"),
    ],
)
def test_wrong_declarations(declare: Callable[[Any], Any], made: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        declare(made)


def test_decorated_functions_stay_functions() -> None:
    @udf
    def half(value: float, when: date, at: datetime) -> float:
        return value / 2

    assert half(3.0, date(2020, 1, 1), datetime(2020, 1, 1)) == 1.5
