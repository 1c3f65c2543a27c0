"""Statements of a request, tried without effect before any of them is executed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moldau.data.errors import DataError
from moldau.data.schema_language import SchemaError
from moldau.services.sql.access import AccessValidator
from moldau.services.sql.config import SqlConfig
from moldau.services.sql.hosting import QueryHost
from moldau.services.sql.machine.errors import (
    BAD_REQUEST,
    QUERY_ENDPOINT,
    KsqlHttpError,
    statement_error,
)
from moldau.services.sql.machine.overrides import check_overrides, is_known
from moldau.sql.engine.engine import KsqlEngine, Session
from moldau.sql.errors import KsqlException
from moldau.sql.syntax.parser import ParsedStatement
from moldau.sql.syntax.statements import (
    AlterSource,
    ControlQuery,
    CreateAsSelect,
    CreateSource,
    CreateType,
    DropSource,
    DropType,
    InsertInto,
    InsertValues,
    PrintTopic,
    Query,
    SetProperty,
    Statement,
    UnsetProperty,
)

__all__ = ["Trials"]

_ELSEWHERE = (
    "The following statement types should be issued to the websocket endpoint '/query':"
    "\n\t* PRINT\n\t* SELECT"
)

#: Statements that change something, or the session that those behind them see.
_TRIED = (
    AlterSource,
    ControlQuery,
    CreateAsSelect,
    CreateSource,
    CreateType,
    DropSource,
    DropType,
    InsertInto,
    InsertValues,
    SetProperty,
    UnsetProperty,
)


class Trials:
    """Refuses what would fail, as ksqlDB's sandbox does."""

    def __init__(self, config: SqlConfig, access: AccessValidator, host: QueryHost) -> None:
        self._denied = config["ksql.properties.overrides.denylist"]
        self._access = access
        self._host = host

    def session(self, properties: Mapping[str, Any], variables: Mapping[str, str]) -> Session:
        """What a request sets; KsqlHttpError for what it must not."""
        try:
            check_overrides(properties, self._denied)
        except KsqlException as error:
            raise KsqlHttpError(400, str(error), error_code=BAD_REQUEST) from error
        return Session(dict(properties), dict(variables))

    @staticmethod
    def are_due(parsed: Sequence[ParsedStatement]) -> bool:
        """Not for a single INSERT: a row or a query is made when all about it has been checked."""
        return len(parsed) != 1 or parsed[0].text[:6].upper() != "INSERT"

    def run(self, engine: KsqlEngine, parsed: Sequence[ParsedStatement], session: Session) -> None:
        """Execute the statements without effect; KsqlHttpError for the first that fails."""
        sandbox = engine.sandbox()
        trial = Session(dict(session.properties), dict(session.variables))
        for each in parsed:
            try:
                statement = sandbox.prepare(each)
                if isinstance(statement, Query | PrintTopic):
                    raise KsqlHttpError(
                        400, _ELSEWHERE, error_code=QUERY_ENDPOINT, statement=each.text
                    )
                if isinstance(statement, _TRIED) and not self._is_push(statement):
                    self._check(statement)
                    self._access.check(statement, each.text, sandbox.metastore)
                    sandbox.execute(statement, each.text, trial)
            except (KsqlException, DataError, SchemaError) as error:
                raise statement_error(error, each.text) from error

    def _check(self, statement: Statement) -> None:
        if not isinstance(statement, SetProperty | UnsetProperty):
            return
        if not is_known(statement.name):
            raise KsqlException(f"Unknown property: {statement.name}")
        if isinstance(statement, SetProperty):
            check_overrides({statement.name: statement.value}, self._denied)

    def _is_push(self, statement: Statement) -> bool:
        """Whether it is about a push query, which the engine does not know."""
        return (
            isinstance(statement, ControlQuery)
            and statement.query_id is not None
            and self._host.push_query_id(statement.query_id) is not None
        )
