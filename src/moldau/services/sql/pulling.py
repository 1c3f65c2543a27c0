"""Pull queries: rows of tables as they are now."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from moldau.services.sql.core import PreparedQuery, SqlCore
from moldau.services.sql.machine.errors import BAD_STATEMENT, KsqlHttpError
from moldau.services.sql.machine.rows import row_writer
from moldau.sql.types import Column

__all__ = ["PulledRows", "pull"]


@dataclass(frozen=True, slots=True)
class PulledRows:
    """The answer to a pull query."""

    query_id: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]

    def as_array(self) -> str:
        """For /query."""
        write = row_writer([each.type for each in self.columns])
        schema = ", ".join(map(str, self.columns))
        header = json.dumps({"header": {"queryId": self.query_id, "schema": schema}})
        rows = [f'{{"row":{{"columns":{write(row)}}}}}' for row in self.rows]
        return "[" + ",\n".join([header, *rows]) + "]\n"

    def as_lines(self) -> str:
        """For /query-stream."""
        write = row_writer([each.type for each in self.columns])
        header = {
            "queryId": self.query_id,
            "columnNames": [each.name for each in self.columns],
            "columnTypes": [str(each.type) for each in self.columns],
        }
        return "\n".join([json.dumps(header), *(write(row) for row in self.rows)]) + "\n"


def pull(core: SqlCore, prepared: PreparedQuery) -> PulledRows:
    """Execute a pull query on the stores of the query that keeps its table."""
    raise KsqlHttpError(
        400,
        "Pull queries are not supported by this server yet. Add EMIT CHANGES for a push query.",
        error_code=BAD_STATEMENT,
        statement=prepared.text,
    )
