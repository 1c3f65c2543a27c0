"""Answers and rows as tables, JSON, CSV or columns between tabs."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TextIO

from rich.console import Console
from rich.table import Table

from moldau.sql.client.http import RowStream
from moldau.sql.client.listings import cell, field_type, listing_rows

__all__ = ["OUTPUTS", "Output", "Printer"]

Output = Literal["TABULAR", "JSON", "CSV", "PLAIN"]
OUTPUTS: Final[tuple[Output, ...]] = ("TABULAR", "JSON", "CSV", "PLAIN")
_WIDTH_MIN: Final = 8
_WIDTH_DEFAULT: Final = 120


class Printer:
    """Writes to the screen and, between SPOOL and SPOOL OFF, to a file."""

    def __init__(self, out: TextIO, output: Output | None = None) -> None:
        """`output` by default: tables for people, tabs for programs."""
        self.out = out
        self.is_terminal = out.isatty()
        self.output: Output = output or ("TABULAR" if self.is_terminal else "PLAIN")
        self.wrap = True
        self.column_width: int | None = None
        self._spool: TextIO | None = None

    @property
    def width(self) -> int:
        return Console(file=self.out).width if self.is_terminal else _WIDTH_DEFAULT

    # Text.

    def line(self, text: str = "") -> None:
        self._write(f"{text}\n")

    def _write(self, text: str) -> None:
        self.out.write(text)
        self.out.flush()
        if self._spool is not None:
            self._spool.write(text)
            self._spool.flush()

    def echo(self, statement: str) -> None:
        """What was typed is part of what SPOOL writes."""
        if self._spool is not None:
            self._spool.write(f"ksql> {statement}\n")

    def spool(self, path: str | None) -> None:
        """Raises OSError."""
        if self._spool is not None:
            self._spool.close()
            self._spool = None
        if path is not None:
            self._spool = open(path, "w", encoding="utf-8")  # noqa: SIM115 - until SPOOL OFF

    # Rows of queries.

    def rows(self, names: Sequence[str], types: Sequence[str], lines: Iterable[bytes]) -> int:
        """Show rows as they come; how many there were."""
        count = 0
        for text in self._row_texts(names, types, lines):
            self._write(text)
            count += 1
        return count

    def _row_texts(
        self, names: Sequence[str], types: Sequence[str], lines: Iterable[bytes]
    ) -> Iterator[str]:
        if self.output == "JSON":
            schema = ", ".join(f"`{name}` {kind}" for name, kind in zip(names, types, strict=False))
            self._write(json.dumps({"header": {"schema": schema}}, ensure_ascii=False) + "\n")
            for line in lines:
                yield f'{{"row":{{"columns":{line.decode()}}}}}\n'
            return
        self._write(self._head(names))
        for line in lines:
            yield self._row([cell(each) for each in json.loads(line)])

    def _head(self, names: Sequence[str]) -> str:
        if self.output != "TABULAR":
            return self._row(names)
        width = self._column_width(len(names))
        rule = f"+{'+'.join(['-' * (width + 2)] * len(names))}+\n"
        return rule + self._row(names) + rule

    def _column_width(self, count: int) -> int:
        if self.column_width is not None:
            return self.column_width
        return max(_WIDTH_MIN, (self.width - 1) // max(count, 1) - 3)

    def _row(self, cells: Sequence[str]) -> str:
        if self.output == "CSV":
            return _csv([cells])
        if self.output == "PLAIN":
            return "\t".join(cells) + "\n"
        width = self._column_width(len(cells))
        pieces = [self._pieces(each, width) for each in cells]
        lines = []
        for index in range(max(map(len, pieces), default=0)):
            shown = [each[index] if index < len(each) else "" for each in pieces]
            lines.append("|" + "|".join(f" {each:<{width}} " for each in shown) + "|\n")
        return "".join(lines)

    def _pieces(self, text: str, width: int) -> list[str]:
        if len(text) <= width and "\n" not in text:
            return [text]
        if not self.wrap:
            flat = text.replace("\n", " ")
            return [flat if len(flat) <= width else f"{flat[: width - 3]}..."]
        found = [
            piece
            for line in text.split("\n")
            for piece in textwrap.wrap(line, width, drop_whitespace=False) or [""]
        ]
        return found or [""]

    def query(self, stream: RowStream) -> int:
        return self.rows(stream.names, stream.types, stream.lines())

    # Answers of statements.

    def entity(self, entity: Mapping[str, Any]) -> None:
        """What a statement was answered with."""
        if self.output == "JSON":
            self.line(json.dumps(entity, ensure_ascii=False))
            return
        for warning in entity.get("warnings") or ():
            self.line(f"WARNING: {warning.get('message', warning)}")
        kind = entity.get("@type", "")
        if kind == "currentStatus":
            self.line(entity["commandStatus"]["message"])
        elif kind == "sourceDescription":
            self._source(entity["sourceDescription"])
        elif kind == "source_descriptions":
            for each in entity["sourceDescriptions"]:
                self._source(each)
        elif kind == "queryDescription":
            self._query_description(entity["queryDescription"])
        elif kind == "describe_function":
            self._function(entity)
        elif (found := listing_rows([entity])) is not None:
            self.table(*found)
        elif "message" in entity:
            self.line(str(entity["message"]))
        else:
            shown = {k: v for k, v in entity.items() if k not in ("@type", "warnings")}
            self.line(json.dumps(shown, indent=2, ensure_ascii=False))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        cells = [[cell(each) for each in row] for row in rows]
        if self.output == "CSV":
            self._write(_csv([columns, *cells]))
        elif self.output == "PLAIN":
            for row in [columns, *cells]:
                self.line("\t".join(row))
        elif self.output == "JSON":
            for row in rows:
                shown = dict(zip(columns, row, strict=True))
                self.line(json.dumps(shown, ensure_ascii=False, default=str))
        else:
            table = Table(*columns)
            for row in cells:
                table.add_row(*row)
            self.render(table)

    def render(self, shown: Any) -> None:
        """Something of rich's, in its plain form where colours cannot be shown."""
        buffer = io.StringIO()
        console = Console(file=buffer, width=self.width, highlight=False, markup=False)
        console.print(shown)
        self._write(buffer.getvalue())

    def _source(self, source: Mapping[str, Any]) -> None:
        if self.output == "TABULAR":
            self.line(f"Name                 : {source['name']}")
            if source.get("extended"):
                self._details(source)
        fields = [(each["name"], field_type(each)) for each in source["fields"]]
        self.table(("Field", "Type"), fields)
        if source.get("extended"):
            self._queries("Queries that read from this source", source.get("readQueries"))
            self._queries("Queries that write into this source", source.get("writeQueries"))
            if source.get("statement"):
                self.line(f"Statement: {source['statement']}")

    def _details(self, source: Mapping[str, Any]) -> None:
        details = (
            ("Type", "type"),
            ("Timestamp field", "timestamp"),
            ("Key format", "keyFormat"),
            ("Value format", "valueFormat"),
            ("Kafka topic", "topic"),
            ("Partitions", "partitions"),
            ("Replication", "replication"),
        )
        for title, name in details:
            if source.get(name) not in (None, ""):
                self.line(f"{title:<21}: {source[name]}")
        for name in ("statistics", "errorStats"):
            if source.get(name):
                self.line(str(source[name]))

    def _queries(self, title: str, queries: Any) -> None:
        if queries:
            self.line(f"\n{title}")
            for each in queries:
                self.line(f"{each['id']} ({each.get('state', '')}) : {each['queryString']}")

    def _query_description(self, query: Mapping[str, Any]) -> None:
        self.line(f"ID                   : {query['id']}")
        self.line(f"SQL                  : {query['statementText']}")
        self.line(f"Status               : {query.get('state') or ''}")
        fields = [(each["name"], field_type(each)) for each in query["fields"]]
        self.table(("Field", "Type"), fields)
        for title, name in (
            ("Sources that this query reads from", "sources"),
            ("Sinks that this query writes to", "sinks"),
        ):
            if query.get(name):
                self.line(f"\n{title}: {', '.join(query[name])}")
        for title, name in (
            ("Execution plan", "executionPlan"),
            ("Processing topology", "topology"),
        ):
            if query.get(name):
                self.line(f"\n{title}\n{query[name]}")

    def _function(self, function: Mapping[str, Any]) -> None:
        self.line(f"Name        : {function['name']}")
        for title, name in (("Author", "author"), ("Overview", "description")):
            if function.get(name):
                self.line(f"{title:<12}: {function[name]}")
        self.line(f"Type        : {function['type']}")
        self.line(f"Jar         : {function.get('path') or 'internal'}")
        self.line("Variations  :")
        for each in function["functions"]:
            arguments = ", ".join(
                f"{argument['name']} {argument['type']}{'[]' * bool(argument.get('isVariadic'))}"
                for argument in each["arguments"]
            )
            self.line(f"\n\tVariation   : {function['name']}({arguments})")
            self.line(f"\tReturns     : {each['returnType']}")
            if each.get("description"):
                self.line(f"\tDescription : {each['description']}")


def _csv(rows: Iterable[Sequence[str]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()
