"""`moldau start`: its options. `cli/nodes/start.py` does the work."""

from __future__ import annotations

import argparse

from moldau.cli.support.arguments import Parser

__all__ = ["add_arguments", "add_override", "run"]

_EXAMPLES = """\
examples:
  moldau start
  moldau start --port 19092 --data /var/moldau
  moldau start --spark
  moldau start config/server.properties --override log.retention.hours=1
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="Kafka configuration file (default: settings for a single node on this machine)",
    )
    parser.add_argument(
        "--port",
        type=int,
        metavar="P",
        help="port on 127.0.0.1; 0 chooses a free one (default: 9092). Other commands of this "
        "user find the broker while it runs",
    )
    parser.add_argument("--data", metavar="DIR", help="data directory (default: ./moldau-data)")
    parser.add_argument(
        "--spark",
        action="store_true",
        help="also start Spark and the control loop of pipelines, in the directory DIR-spark, and "
        "restart whatever fails of the three",
    )
    parser.add_argument(
        "--command-config",
        metavar="CLIENT_FILE",
        help="with --spark: properties file with settings of the pipelines' clients, if the broker "
        "has no PLAINTEXT listener",
    )
    parser.add_argument(
        "--metrics-port",
        type=int,
        metavar="P",
        help="serve metrics at http://127.0.0.1:P/metrics (moldau.metrics.port); 0 chooses a port",
    )
    add_override(parser)


def add_override(parser: Parser) -> None:
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set a configuration key; may be repeated",
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.spark:
        from moldau.cli.brokers.start_with_spark import run_with_spark

        return run_with_spark(arguments)
    from moldau.cli.nodes.start import run_start

    return run_start(arguments)
