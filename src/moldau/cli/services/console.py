"""`moldau console start`: runs the Control Center in the foreground."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from moldau.cli.services.options import add_service_arguments, service_properties
from moldau.cli.support.addresses import DEFAULT_SERVERS, cluster_settings
from moldau.cli.support.arguments import Parser
from moldau.cli.support.failures import Failure

if TYPE_CHECKING:
    from moldau.services.console.config import ConsoleConfig

__all__ = ["add_arguments", "run"]

_EXAMPLES = """\
examples:
  moldau console start
  moldau console start --port 9022 --bootstrap-server kafka1:9092
  moldau console start --schema-registry http://127.0.0.1:8081
  moldau console start console.properties --override read.only=true
"""
_SWITCH_S = 0.001
_URLS = {
    "schema_registry": ("schema.registry.url", "registry for Avro, JSON Schema and Protobuf"),
    "connect": ("connect.url", "a Connect worker, for the page of connectors"),
    "sql": ("sql.url", "the SQL server, for the SQL editor"),
}


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    start = parser.add_commands().add("start", "run the Control Center until Ctrl-C")
    add_service_arguments(start, what="console", port=9021, brokers="of the cluster")
    for name, (_, help_text) in _URLS.items():
        start.add_argument(f"--{name.replace('_', '-')}", metavar="URL", help=help_text)


def run(arguments: argparse.Namespace) -> int:
    properties = _properties(arguments, os.environ)
    # Imported late: a wrong option should be reported before anything is loaded.
    from moldau.cli.services.serving import Runnable, serve
    from moldau.config.errors import ConfigError
    from moldau.services.console.config import ConsoleConfig
    from moldau.services.console.service import ConsoleService

    try:
        config = ConsoleConfig.of(properties)
    except ConfigError as error:
        raise Failure(str(error)) from None

    def ready_text(service: Runnable) -> str:
        return _ready_text(service.urls, config)

    # Big clusters are read in a thread for seconds. Requests wait for the interpreter each time
    # that they go on: a fifth of Python's default keeps pages quick meanwhile.
    sys.setswitchinterval(_SWITCH_S)
    return serve(lambda: ConsoleService(config), ready_text)


def _properties(arguments: argparse.Namespace, environment: Mapping[str, str]) -> dict[str, str]:
    properties = service_properties(arguments)
    for name, (key, _) in _URLS.items():
        if getattr(arguments, name) is not None:
            properties[key] = getattr(arguments, name)
    if arguments.bootstrap_server is not None:
        properties["bootstrap.servers"] = arguments.bootstrap_server
    elif not (properties.get("bootstrap.servers") or properties.get("clusters")):
        settings = cluster_settings(environment) or {"bootstrap.servers": DEFAULT_SERVERS}
        servers = settings["bootstrap.servers"]
        own = {f"client.{key}": value for key, value in settings.items()}
        properties = {**own, **properties, "bootstrap.servers": servers}
    return properties


def _ready_text(urls: list[str], config: ConsoleConfig) -> str:
    logins = {
        "NONE": "none: everybody on this machine may use it",
        "PASSWORD": "users and passwords of the brokers",
        "OIDC": f"by {config['oidc.issuer.url']}",
    }
    lines = [
        "The Control Center is up.",
        f"  listening  {', '.join(urls)}",
        f"  login      {logins[config.login]}",
    ]
    for each in config.clusters.values():
        lines.append(f"  cluster    {each.name}: {', '.join(each.bootstrap_servers)}")
        for name, url in each.services.items():
            if url is not None:
                lines.append(f"             {name} {url}")
    url = urls[0].replace("0.0.0.0", "127.0.0.1")
    lines += ["", f"Open {url}/ in a browser. {url}/docs has the API.", "", "Ctrl-C stops it."]
    return "\n".join(lines)
