"""The shell of `moldau sql`: statements in, tables out."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table

from moldau.cli.services.sql_client import SqlClient, StatementFailed
from moldau.sql.errors import KsqlException
from moldau.sql.syntax.parser import parse

__all__ = ["Shell"]

_QUERY = re.compile(r"\s*(SELECT|PRINT)\b", re.IGNORECASE)
_SET = re.compile(r"\s*SET\s+'([^']+)'\s*=\s*'([^']*)'\s*;?\s*", re.IGNORECASE)
_UNSET = re.compile(r"\s*UNSET\s+'([^']+)'\s*;?\s*", re.IGNORECASE)
_DEFINE = re.compile(r"\s*DEFINE\s+(\w+)\s*=\s*'([^']*)'\s*;?\s*", re.IGNORECASE)
_LISTED = {
    "streams": ("streams", ("name", "topic", "keyFormat", "valueFormat", "isWindowed")),
    "tables": ("tables", ("name", "topic", "keyFormat", "valueFormat", "isWindowed")),
    "queries": ("queries", ("id", "queryType", "state", "sinks", "queryString")),
    "kafka_topics": ("topics", ("name", "replicaInfo")),
    "function_names": ("functions", ("name", "type", "category")),
    "properties": ("properties", ("name", "scope", "value")),
    "variables": ("variables", ("name", "value")),
}


class Shell:
    """Remembers what SET and DEFINE say, and sends it along."""

    def __init__(self, client: SqlClient, out: TextIO) -> None:
        self._client = client
        self._console = Console(file=out, soft_wrap=not out.isatty(), highlight=False)
        self._properties: dict[str, str] = {}
        self._variables: dict[str, str] = {}

    def execute(self, script: str) -> int:
        """Execute the statements of a text, up to the first that fails; the exit code."""
        try:
            statements = [each.text for each in parse(script)]
        except KsqlException as error:
            self._fail(str(error))
            return 1
        for text in statements:
            try:
                self._one(text)
            except StatementFailed as error:
                self._fail(str(error))
                return 1
            except KeyboardInterrupt:
                self._console.print("Query terminated")
        return 0

    def run(self, source: TextIO) -> int:
        """Read statements until the end, or until `exit`."""
        interactive = source.isatty()
        if interactive:
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401 - editing and history of input()
            self._console.print(f"Connected to {self._client.url}. End with: exit")
        pending = ""
        while True:
            line = _read(source, "ksql> " if not pending else "> ", interactive)
            if line is None or (not pending and line.strip().lower() in ("exit", "quit")):
                return 0
            pending += line
            if pending.strip() and pending.rstrip().endswith(";"):
                self.execute(pending)
                pending = ""
            elif not pending.strip():
                pending = ""

    def _one(self, text: str) -> None:
        if (found := _SET.fullmatch(text)) is not None:
            self._properties[found[1]] = found[2]
            return
        if (found := _UNSET.fullmatch(text)) is not None:
            self._properties.pop(found[1], None)
            return
        if (found := _DEFINE.fullmatch(text)) is not None:
            self._variables[found[1]] = found[2]
            return
        if _QUERY.match(text):
            self._rows(text)
            return
        for entity in self._client.execute(text, self._properties, self._variables):
            self._show(entity)

    def _rows(self, text: str) -> None:
        """Rows as they come, in columns of a fixed width: a query may never end."""
        lines = self._client.rows(text, self._properties, self._variables)
        header = next(lines, None)
        if header is None:
            return
        names: list[str] = header["columnNames"]
        if not self._console.is_terminal:
            self._plain(names)
            for row in lines:
                self._plain(list(map(_cell, row)))
            return
        width = max(8, self._console.width // max(len(names), 1) - 3)
        self._line(names, width)
        self._line(["-" * width] * len(names), width)
        for row in lines:
            self._line([_cell(each) for each in row], width)

    def _line(self, cells: Sequence[str], width: int) -> None:
        shown = "|".join(f" {each[:width]:<{width}} " for each in cells)
        self._console.print(f"|{shown}|", markup=False, no_wrap=True)

    def _show(self, entity: dict[str, Any]) -> None:
        kind = entity["@type"]
        if kind == "currentStatus":
            self._console.print(entity["commandStatus"]["message"], markup=False)
        elif kind in _LISTED:
            name, columns = _LISTED[kind]
            self._table(columns, [[each.get(c) for c in columns] for each in entity[name]])
        elif kind == "sourceDescription":
            self._describe(entity["sourceDescription"])
        else:
            shown = {k: v for k, v in entity.items() if k not in ("@type", "warnings")}
            self._console.print(json.dumps(shown, indent=2), markup=False)

    def _describe(self, source: dict[str, Any]) -> None:
        self._console.print(
            f"{source['name']}: {source['type'].lower()} of topic {source['topic']}", markup=False
        )
        rows = [
            [each["name"], each["schema"]["type"], each.get("type", "")]
            for each in source["fields"]
        ]
        self._table(("Field", "Type", "Kind"), rows)

    def _table(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        if not self._console.is_terminal:
            self._plain(columns)
            for row in rows:
                self._plain(list(map(_cell, row)))
            return
        table = Table(*columns)
        for row in rows:
            table.add_row(*map(_cell, row))
        self._console.print(table)

    def _plain(self, cells: Sequence[str]) -> None:
        """For programs: columns between tabs."""
        print("\t".join(cells), file=self._console.file, flush=True)

    def _fail(self, message: str) -> None:
        print(message, file=sys.stderr)


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _read(source: TextIO, prompt: str, interactive: bool) -> str | None:
    if not interactive:
        return source.readline() or None
    try:
        return input(prompt) + "\n"
    except EOFError:
        return None
    except KeyboardInterrupt:
        return "\n"
