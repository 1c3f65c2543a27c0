"""`moldau mqtt start`: runs the MQTT proxy in the foreground."""

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
  moldau mqtt start
  moldau mqtt start --port 1884 --bootstrap-server kafka1:9092
  moldau mqtt start --ws-port 8083
  moldau mqtt start mqtt.properties --override packet.size.max=100000
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    start = parser.add_commands().add("start", "run the proxy until Ctrl-C")
    add_service_arguments(start, what="proxy", port=1883, brokers="of the cluster")
    start.add_argument("--ws-port", metavar="PORT", help="MQTT over websockets here, at /mqtt")
    start.add_argument("--metrics-port", metavar="PORT", help="serve /metrics here, for Prometheus")


def run(arguments: argparse.Namespace) -> int:
    properties = _properties(arguments, os.environ)
    # Imported late: a wrong option should be reported before anything is loaded.
    from moldau.cli.services.serving import Runnable, serve
    from moldau.config.errors import ConfigError
    from moldau.services.mqtt.config import MqttConfig
    from moldau.services.mqtt.service import MqttService

    try:
        config = MqttConfig.of(properties)
    except ConfigError as error:
        raise Failure(str(error)) from None

    def ready_text(service: Runnable) -> str:
        metrics_url = service.metrics_url if isinstance(service, MqttService) else None
        return _ready_text(service.urls, config.values, metrics_url)

    return serve(lambda: MqttService(config), ready_text)


def _properties(arguments: argparse.Namespace, environment: Mapping[str, str]) -> dict[str, str]:
    properties = service_properties(arguments)
    if arguments.port is not None:
        properties["listeners"] = f"mqtt://127.0.0.1:{arguments.port}"
    if arguments.ws_port is not None:
        listeners = properties.get("listeners") or "mqtt://127.0.0.1:1883"
        properties["listeners"] = f"{listeners},ws://127.0.0.1:{arguments.ws_port}"
    if arguments.metrics_port is not None:
        properties["moldau.metrics.port"] = arguments.metrics_port
    if arguments.bootstrap_server is not None:
        properties["bootstrap.servers"] = arguments.bootstrap_server
    elif not properties.get("bootstrap.servers"):
        settings = cluster_settings(environment) or {"bootstrap.servers": DEFAULT_SERVERS}
        servers = settings["bootstrap.servers"]
        own = {
            f"client.{key}": value for key, value in settings.items() if key != "bootstrap.servers"
        }
        properties = {**own, **properties, "bootstrap.servers": servers}
    return properties


def _ready_text(urls: list[str], config: Values, metrics_url: str | None) -> str:
    url = next((each for each in urls if each.startswith("mqtt")), urls[0])
    host, _, port = url.split("://")[1].removesuffix("/mqtt").rpartition(":")
    host = host.strip("[]").replace("0.0.0.0", "127.0.0.1")
    rules = ", ".join(config["rules"]) or "none; sensors/7/temp is the topic sensors"
    return "\n".join(
        (
            "The MQTT proxy is up.",
            f"  listening  {', '.join(urls)}",
            f"  cluster    {', '.join(config['bootstrap.servers'])}",
            f"  rules      {rules}",
            *([] if metrics_url is None else [f"  metrics    {metrics_url}"]),
            "",
            "Try it:",
            f"  mosquitto_sub -h {host} -p {port} -t 'sensors/#' -v &",
            f"  mosquitto_pub -h {host} -p {port} -t sensors/7/temp -m 21.5 -q 1",
            "",
            "Ctrl-C stops it.",
        )
    )
