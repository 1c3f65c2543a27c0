"""ksqlDB's cases of pull queries, run on stores in this process instead of on a server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from moldau.sql.engine.engine import Session
from moldau.sql.errors import KsqlException, KsqlStatementException
from moldau.sql.syntax.statements import Query
from moldau.sql.testing.values import same, shown
from moldau.streams.hosts.driver import TopologyTestDriver
from support.ksql.cases import Case, Number, load
from support.ksql.runner import collect, execute, new_driver, new_world
from support.shared_vectors import FOLDER as VECTORS

FOLDER = VECTORS / "ksql" / "rest-query-validation-tests"


@dataclass(frozen=True, slots=True)
class PullCase:
    setup: Case
    queries: tuple[str, ...]
    responses: tuple[list[dict[str, Any]], ...]
    error: dict[str, Any] | None

    @property
    def id(self) -> str:
        return self.setup.id


def pull_cases() -> Iterator[PullCase]:
    """Cases over tables; those over streams need topics with offsets."""
    for path in sorted(FOLDER.glob("pull*.json")):
        if "against-streams" in path.name:
            continue
        for index, raw in enumerate(load(path)["tests"]):
            for chosen in raw.get("format") or [None]:
                yield _case(f"{path.stem}/{index}/{raw['name']}", raw, chosen)


def _case(name: str, raw: dict[str, Any], chosen: str | None) -> PullCase:
    statements = [
        each if chosen is None else each.replace("{FORMAT}", chosen) for each in raw["statements"]
    ]
    is_query = [each.upper().startswith("SELECT ") for each in statements]
    setup = Case(
        id=name if chosen is None else f"{name} - {chosen}",
        statements=tuple(s for s, q in zip(statements, is_query, strict=True) if not q),
        properties={
            key: int(value) if isinstance(value, Number) else value
            for key, value in raw.get("properties", {}).items()
        },
        topics=tuple(raw.get("topics", ())),
        inputs=tuple(raw.get("inputs", ())),
        outputs=(),
        post={},
        error=None,
    )
    return PullCase(
        setup,
        tuple(s for s, q in zip(statements, is_query, strict=True) if q),
        tuple(each["query"] for each in raw.get("responses", ()) if "query" in each),
        raw.get("expectedError"),
    )


def run_pull_case(case: PullCase) -> None:
    """Raises whatever is not as expected."""
    world = new_world(case.setup)
    execute(world, needs_query=False)
    inputs = [world.codec.encode(each) for each in case.setup.inputs]
    drivers: dict[str, TopologyTestDriver] = {}
    for query in world.queries:
        driver = drivers[query.id] = new_driver(world, query)
        read = {each.topic for each in query.sources}
        for record in inputs:
            if record.topic in read:
                driver.pipe(record)
        for topic in read - {each.topic for each in inputs}:
            for record in list(world.records.get(topic, ())):
                driver.pipe(record)
        collect(world, driver)
    try:
        answers = [_answer(world, case, each, drivers) for each in case.queries]
    except KsqlException as error:
        _check_error(case, error)
        return
    if case.error is not None:
        raise AssertionError(f"expected the error {case.error}")
    for (schema, rows), expected in zip(answers, case.responses, strict=False):
        _check(schema, rows, expected)


def _answer(
    world: Any, case: PullCase, sql: str, drivers: dict[str, TopologyTestDriver]
) -> tuple[Any, list[Any]]:
    engine = world.engine
    parsed = engine.parse(sql if sql.rstrip().endswith(";") else f"{sql};")[0]
    statement = engine.prepare(parsed)
    if not isinstance(statement, Query):
        raise AssertionError(f"not a query: {sql}")
    pull = engine.pull_query(statement, parsed.text, Session(dict(case.setup.properties)))
    store = drivers[pull.query_id].state_store(pull.store_name)
    return pull.plan.schema, list(pull.rows(store))


def _check_error(case: PullCase, error: KsqlException) -> None:
    if case.error is None:
        raise error
    texts = [str(error)]
    if isinstance(error, KsqlStatementException):
        texts.append(error.unlogged)
    message = case.error.get("message", "")
    if not any(message in each for each in texts):
        raise AssertionError(f"{texts} instead of {message!r}") from error


def _check(schema: Any, rows: list[Any], expected: list[dict[str, Any]]) -> None:
    header = next((each["header"]["schema"] for each in expected if "header" in each), None)
    if header is not None and header != str(schema):
        raise AssertionError(f"schema {schema} instead of {header}")
    wanted = [each["row"]["columns"] for each in expected if "row" in each]
    left = [
        [shown(value, column.type) for value, column in zip(row, schema.columns, strict=True)]
        for row in rows
    ]
    if len(wanted) != len(left):
        raise AssertionError(f"{left} instead of {wanted}")
    for row in wanted:
        match = next((each for each in left if same(row, each)), None)
        if match is None:
            raise AssertionError(f"no row {row} in {left}")
        left.remove(match)
