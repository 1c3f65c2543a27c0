"""`moldau registry start`: runs the Schema Registry in the foreground."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping

from moldau.cli.support.addresses import DEFAULT_SERVERS, cluster_settings
from moldau.cli.support.arguments import Parser
from moldau.cli.support.config_files import read_config_file
from moldau.cli.support.failures import Failure

__all__ = ["add_arguments", "run"]

_EXAMPLES = """\
examples:
  moldau registry start
  moldau registry start --port 8085 --bootstrap-server kafka1:9092
  moldau registry start schema-registry.properties --override mode.mutability=false
"""
_SERVERS_KEY = "kafkastore.bootstrap.servers"


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    start = parser.add_commands().add("start", "run the registry until Ctrl-C")
    start.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="properties file with Confluent's keys (default: a registry for this machine)",
    )
    start.add_argument(
        "--port", type=int, metavar="P", help="port on 127.0.0.1; 0 chooses one (default: 8081)"
    )
    start.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        help="brokers that store the schemas (default: those of the file, of "
        f"MOLDAU_BOOTSTRAP_SERVERS or of the profile in use, or {DEFAULT_SERVERS})",
    )
    start.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set a configuration key; may be repeated",
    )


def run(arguments: argparse.Namespace) -> int:
    properties = _properties(arguments, os.environ)
    # Imported late: a wrong option should be reported before anything is loaded.
    from moldau.cli.services.serving import Runnable, serve
    from moldau.config.errors import ConfigError
    from moldau.services.registry.app import SchemaRegistry
    from moldau.services.registry.config import RegistryConfig
    from moldau.services.registry.topic import StoreError

    try:
        config = RegistryConfig.of(properties)
    except ConfigError as error:
        raise Failure(str(error)) from None

    def ready_text(service: Runnable) -> str:
        return _ready_text(service.urls, config.clients["bootstrap.servers"], config.topic)

    return serve(lambda: SchemaRegistry(config), ready_text, failures=(StoreError,))


def _properties(arguments: argparse.Namespace, environment: Mapping[str, str]) -> dict[str, str]:
    properties = {} if arguments.file is None else read_config_file(arguments.file)
    for each in arguments.override:
        key, separator, value = each.partition("=")
        if not separator:
            raise Failure(f"--override {each}: use KEY=VALUE")
        properties[key.strip()] = value.strip()
    if arguments.port is not None:
        if not 0 <= arguments.port <= 65535:
            raise Failure(f"--port {arguments.port}: a port must be between 0 and 65535")
        properties["listeners"] = f"http://127.0.0.1:{arguments.port}"
    if arguments.bootstrap_server is not None:
        properties[_SERVERS_KEY] = arguments.bootstrap_server
    elif not properties.get(_SERVERS_KEY):
        settings = cluster_settings(environment) or {"bootstrap.servers": DEFAULT_SERVERS}
        properties = {
            **{f"kafkastore.{name}": value for name, value in settings.items()},
            **properties,
        }
    return properties


def _ready_text(urls: list[str], servers: str, topic: str) -> str:
    url = urls[0].replace("0.0.0.0", "127.0.0.1")
    body = '{"schema": "{\\"type\\": \\"string\\"}"}'
    return "\n".join(
        (
            "The Schema Registry is up.",
            f"  listening  {', '.join(urls)}",
            f"  stored in  {topic} on {servers}",
            f"  reference  {url}/docs",
            "",
            "Try it:",
            "  curl -X POST -H 'Content-Type: application/vnd.schemaregistry.v1+json' \\",
            f"    --data '{body}' {url}/subjects/greetings-value/versions",
            f"  curl {url}/subjects",
            "",
            "Ctrl-C stops it.",
        )
    )
