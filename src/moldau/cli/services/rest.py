"""`moldau rest start`: runs the REST Proxy in the foreground."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping

from moldau.cli.services.options import add_service_arguments, service_properties
from moldau.cli.support.addresses import DEFAULT_SERVERS, cluster_settings
from moldau.cli.support.arguments import Parser
from moldau.cli.support.failures import Failure
from moldau.config.section import Values

__all__ = ["add_arguments", "run"]

_EXAMPLES = """\
examples:
  moldau rest start
  moldau rest start --port 8085 --bootstrap-server kafka1:9092
  moldau rest start kafka-rest.properties --override fetch.min.bytes=1
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    start = parser.add_commands().add("start", "run the proxy until Ctrl-C")
    add_service_arguments(start, what="proxy", port=8082, brokers="of the cluster")
    start.add_argument(
        "--schema-registry", metavar="URL", help="registry for Avro, JSON Schema and Protobuf"
    )


def run(arguments: argparse.Namespace) -> int:
    properties = _properties(arguments, os.environ)
    # Imported late: a wrong option should be reported before anything is loaded.
    from moldau.cli.services.serving import Runnable, serve
    from moldau.config.errors import ConfigError
    from moldau.services.rest.config import RestConfig
    from moldau.services.rest.service import RestService

    try:
        config = RestConfig.of(properties)
    except ConfigError as error:
        raise Failure(str(error)) from None

    def ready_text(service: Runnable) -> str:
        return _ready_text(service.urls, config.values)

    return serve(lambda: RestService(config), ready_text)


def _properties(arguments: argparse.Namespace, environment: Mapping[str, str]) -> dict[str, str]:
    properties = service_properties(arguments)
    if arguments.schema_registry is not None:
        properties["schema.registry.url"] = arguments.schema_registry
    if arguments.bootstrap_server is not None:
        properties["bootstrap.servers"] = arguments.bootstrap_server
    elif not properties.get("bootstrap.servers"):
        settings = cluster_settings(environment) or {"bootstrap.servers": DEFAULT_SERVERS}
        servers = settings["bootstrap.servers"]
        own = {f"client.{key}": value for key, value in settings.items()}
        properties = {**own, **properties, "bootstrap.servers": servers}
    return properties


def _ready_text(urls: list[str], config: Values) -> str:
    url = urls[0].replace("0.0.0.0", "127.0.0.1")
    record = '{"records": [{"value": {"hello": "world"}}]}'
    return "\n".join(
        (
            "The REST Proxy is up.",
            f"  listening  {', '.join(urls)}",
            f"  cluster    {', '.join(config['bootstrap.servers'])}",
            f"  schemas    {config['schema.registry.url'] or 'no Schema Registry'}",
            f"  reference  {url}/docs, and a page to try at {url}/",
            "",
            "Try it:",
            "  curl -X POST -H 'Content-Type: application/vnd.kafka.json.v2+json' \\",
            f"    --data '{record}' {url}/topics/greetings",
            f"  curl {url}/topics",
            "",
            "Ctrl-C stops it.",
        )
    )
