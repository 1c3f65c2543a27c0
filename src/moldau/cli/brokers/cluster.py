"""`moldau cluster`: its options. `cli/nodes/cluster.py` does the work.

With the words cluster-id, unregister or list-endpoints it is Kafka's tool, which is in
`cli/admin/kafka_cluster.py`.
"""

from __future__ import annotations

import argparse

from moldau.cli.brokers.start import add_override
from moldau.cli.support.arguments import Parser

__all__ = ["add_arguments", "run"]

_DESCRIPTION = """\
run several nodes on this machine as one cluster, for development

Nodes 1 to 3 are brokers and controllers, further ones brokers. Clients connect to the ports
P, P+1, ...; controllers use the ports behind them. Every node has in DIR its data (node-N), its
configuration (node-N.properties) and its log (node-N.log). The first start formats the folders,
later ones continue with them. Ctrl-C stops all nodes, a second one kills them. A node that dies is
reported, and so is its return: by --restart, or by `moldau start DIR/node-N.properties`.

Beyond Kafka's defaults every topic, internal ones too, gets R replicas (default.replication.factor
and others), and with three or more, min.insync.replicas=2: acks=all survives the loss of a node.

`moldau cluster cluster-id`, `unregister` and `list-endpoints` ask a running cluster instead, as
kafka-cluster.sh does: `moldau kafka-cluster --help` tells more."""

_EXAMPLES = """\
examples:
  moldau cluster
  moldau cluster --restart
  moldau cluster --brokers 5 --port 19092 --data /var/moldau
  moldau cluster --override num.partitions=6 --override log.retention.hours=1
  moldau cluster --brokers 1 --data /tmp/one --logs
  moldau cluster cluster-id --bootstrap-server 127.0.0.1:9092
"""


def add_arguments(parser: Parser) -> None:
    parser.description = _DESCRIPTION
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "--brokers", type=int, metavar="N", help="how many (default 3, or as many as DIR has)"
    )
    parser.add_argument(
        "--port", type=int, metavar="P", help="port of the first (default 9092; 0 picks free ones)"
    )
    parser.add_argument("--data", metavar="DIR", help="data folder (default ./moldau-cluster)")
    parser.add_argument(
        "--replication", type=int, metavar="R", help="replicas of a topic (default min(3, N))"
    )
    parser.add_argument(
        "--restart",
        action="store_true",
        help="restart nodes that die, after 1 s, later up to 30 s; not those that are stopped",
    )
    parser.add_argument(
        "--logs", action="store_true", help="also show the nodes' logs here, by name"
    )
    add_override(parser)


def run(arguments: argparse.Namespace) -> int:
    from moldau.cli.nodes.cluster import run_cluster

    return run_cluster(arguments)
