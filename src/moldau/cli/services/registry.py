"""`moldau registry start`: runs the Schema Registry in the foreground."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping

from moldau.cli.services.options import add_service_arguments, service_properties
from moldau.cli.support.addresses import DEFAULT_SERVERS, cluster_settings
from moldau.cli.support.arguments import Parser
from moldau.cli.support.failures import Failure

__all__ = ["add_arguments", "run"]

_EXAMPLES = """\
examples:
  moldau registry start
  moldau registry start --port 8085 --bootstrap-server kafka1:9092
  moldau registry start registry.properties --override mode.mutability=false
"""
_SERVERS_KEY = "kafkastore.bootstrap.servers"


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    start = parser.add_commands().add("start", "run the registry until Ctrl-C")
    add_service_arguments(start, what="registry", port=8081, brokers="that store the schemas")


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
    properties = service_properties(arguments)
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
