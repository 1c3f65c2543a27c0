"""`kafka-json-schema-console-producer`: sends lines of JSON, with a schema."""

from __future__ import annotations

from moldau.cli.console.schema_tools import add_producer_arguments
from moldau.cli.console.schema_tools import run_producer as run
from moldau.cli.support.arguments import Parser

__all__ = ["add_arguments", "run"]


def add_arguments(parser: Parser) -> None:
    add_producer_arguments(parser, "json-schema")
