"""`moldau sql`: a shell for ksqlDB's language; `moldau sql start` runs the server."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence

from moldau.cli.services import sql_test
from moldau.cli.services.options import add_service_arguments, service_properties
from moldau.cli.support.addresses import DEFAULT_SERVERS, cluster_settings
from moldau.cli.support.arguments import Parser
from moldau.cli.support.failures import Failure
from moldau.config.section import Values

__all__ = ["add_arguments", "run"]

_EXAMPLES = """\
examples:
  moldau sql start
  moldau sql start ksql-server.properties --queries-file queries.sql
  moldau sql
  moldau sql -e "SHOW STREAMS;"
  moldau sql -f script.sql --server http://127.0.0.1:8088
  moldau sql --output CSV -e "SELECT * FROM totals;"
  moldau sql test statements.sql
"""
DEFAULT_URL = "http://127.0.0.1:8088"


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "-e", "--execute", metavar="SQL", help="execute statements, print the answers and exit"
    )
    parser.add_argument(
        "-f", "--script", "--file", metavar="FILE",
        help="execute the statements of a file and exit",
    )  # fmt: skip
    parser.add_argument(
        "--server", metavar="URL", default=DEFAULT_URL, help=f"the server (default: {DEFAULT_URL})"
    )
    parser.add_argument(
        "-d", "--define", metavar="NAME=VALUE", action="append", default=[],
        help="define a variable, which statements use as ${NAME}; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--output", metavar="FORMAT", type=str.upper,
        choices=("TABULAR", "JSON", "CSV", "PLAIN"),
        help="TABULAR, JSON, CSV or PLAIN (default: TABULAR on a terminal, else PLAIN: tabs)",
    )  # fmt: skip
    parser.add_argument("-u", "--user", metavar="NAME", help="user of the server")
    parser.add_argument(
        "-p", "--password", metavar="PASSWORD",
        help="the user's password (default: the variable KSQL_PASSWORD)",
    )  # fmt: skip
    parser.add_argument(
        "--config-file", metavar="FILE", help="properties that are sent with each statement"
    )
    parser.add_argument(
        "--query-row-limit", metavar="N", type=int, help="end queries after this many rows"
    )
    parser.add_argument(
        "--query-timeout", metavar="MS", type=int, help="end queries after this time"
    )
    commands = parser.add_commands(required=False)
    start = commands.add("start", "run the server until Ctrl-C")
    add_service_arguments(start, what="server", port=8088, brokers="of the cluster")
    start.add_argument(
        "--schema-registry", metavar="URL", help="registry for Avro, JSON Schema and Protobuf"
    )
    start.add_argument(
        "--queries-file",
        metavar="SQL",
        help="run the queries of a file alone: statements are not taken from anyone else",
    )
    sql_test.add_arguments(
        commands.add("test", "run statements and ASSERTs in this process, without a cluster")
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.command == "test":
        return sql_test.run(arguments)
    if arguments.command != "start":
        return _shell(arguments)
    properties = _properties(arguments, os.environ)
    # Imported late: a wrong option should be reported before anything is loaded.
    from moldau.cli.services.serving import Runnable, serve
    from moldau.config.errors import ConfigError
    from moldau.services.sql.config import SqlConfig
    from moldau.services.sql.service import SqlService
    from moldau.sql.errors import KsqlException

    try:
        config = SqlConfig.of(properties)
    except ConfigError as error:
        raise Failure(str(error)) from None

    def ready_text(service: Runnable) -> str:
        return _ready_text(service.urls, config.values)

    return serve(lambda: SqlService(config), ready_text, failures=(KsqlException, TimeoutError))


def _shell(arguments: argparse.Namespace) -> int:
    from moldau.cli.services.sql_shell.shell import Shell
    from moldau.cli.support.config_files import read_config_file
    from moldau.sql.client.errors import Error
    from moldau.sql.client.http import SqlClient

    password = arguments.password
    if password is None and arguments.user is not None:
        password = os.environ.get("KSQL_PASSWORD")
    try:
        client = SqlClient(arguments.server, user=arguments.user, password=password)
    except Error as error:
        raise Failure(f"--server {error}") from None
    properties = read_config_file(arguments.config_file) if arguments.config_file else {}
    shell = Shell(
        client,
        sys.stdout,
        output=arguments.output,
        variables=_variables(arguments.define),
        properties=properties,
        row_limit=arguments.query_row_limit,
        timeout_ms=arguments.query_timeout,
    )
    if arguments.execute is not None:
        return shell.execute(arguments.execute)
    if arguments.script is not None:
        try:
            with open(arguments.script, encoding="utf-8") as file:
                return shell.execute(file.read())
        except OSError as error:
            raise Failure(f"{arguments.script}: {error.strerror}") from None
    return shell.run(sys.stdin)


def _variables(defined: Sequence[str]) -> dict[str, str]:
    found = {}
    for each in defined:
        name, equals, value = each.partition("=")
        if not equals or not name.strip():
            raise Failure(f"--define {each}: use NAME=VALUE")
        found[name.strip()] = value.strip().removeprefix("'").removesuffix("'")
    return found


def _properties(arguments: argparse.Namespace, environment: Mapping[str, str]) -> dict[str, str]:
    properties = service_properties(arguments)
    if arguments.schema_registry is not None:
        properties["ksql.schema.registry.url"] = arguments.schema_registry
    if arguments.queries_file is not None:
        properties["ksql.queries.file"] = arguments.queries_file
    if arguments.bootstrap_server is not None:
        properties["bootstrap.servers"] = arguments.bootstrap_server
    elif not properties.get("bootstrap.servers"):
        settings = cluster_settings(environment) or {"bootstrap.servers": DEFAULT_SERVERS}
        properties = {**settings, **properties, "bootstrap.servers": settings["bootstrap.servers"]}
    return properties


def _ready_text(urls: list[str], config: Values) -> str:
    url = urls[0].replace("0.0.0.0", "127.0.0.1")
    return "\n".join(
        (
            "The SQL server is up.",
            f"  listening  {', '.join(urls)}",
            f"  cluster    {', '.join(config['bootstrap.servers'])}",
            f"  schemas    {config['ksql.schema.registry.url'] or 'no Schema Registry'}",
            f"  service    {config['ksql.service.id']}",
            "",
            "Try it:",
            f"  moldau sql --server {url}",
            f'  moldau sql --server {url} -e "SHOW TOPICS;"',
            "",
            "Ctrl-C stops it.",
        )
    )
