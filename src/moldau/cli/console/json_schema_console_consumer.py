"""`kafka-json-schema-console-consumer`: prints records with a schema as JSON."""

from __future__ import annotations

from moldau.cli.console.console_consumer import run
from moldau.cli.console.schema_tools import add_consumer_arguments
from moldau.cli.support.arguments import Parser

__all__ = ["add_arguments", "run"]


def add_arguments(parser: Parser) -> None:
    add_consumer_arguments(parser, "json-schema")
