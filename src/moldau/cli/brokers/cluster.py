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

Nodes 1 to 3 are brokers and controllers, all others are brokers. Clients connect to the ports P,
P+1, ...; controllers use the ports after these. DIR contains for each node its data directory
(node-N), its configuration (node-N.properties) and its log (node-N.log). The first start formats
the data directories, later starts use them again. Ctrl-C stops all nodes; a second Ctrl-C kills
them. A node that dies is reported. It comes back with --restart, or with
`moldau start DIR/node-N.properties` in another terminal, and that is reported too.

Two settings differ from Kafka's defaults: every topic, also an internal one, has R replicas
(default.replication.factor and others), and if R is 3 or more, min.insync.replicas=2, so that
records sent with acks=all survive the loss of a node.

With cluster-id, unregister or list-endpoints the command queries a running cluster, as
kafka-cluster.sh does: see `moldau kafka-cluster --help`."""

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
        "--brokers", type=int, metavar="N", help="number of nodes (default: 3, or those in DIR)"
    )
    parser.add_argument(
        "--port",
        type=int,
        metavar="P",
        help="port of the first node; 0 chooses free ports (default: 9092)",
    )
    parser.add_argument(
        "--data", metavar="DIR", help="directory of the cluster (default: ./moldau-cluster)"
    )
    parser.add_argument(
        "--replication",
        type=int,
        metavar="R",
        help="replicas of each topic (default: 3, or N if smaller)",
    )
    parser.add_argument(
        "--restart",
        action="store_true",
        help="restart a node that dies, after 1 to 30 s; a node that was stopped stays stopped",
    )
    parser.add_argument(
        "--logs", action="store_true", help="also print the nodes' logs here, with the node's name"
    )
    add_override(parser)


def run(arguments: argparse.Namespace) -> int:
    from moldau.cli.nodes.cluster import run_cluster

    return run_cluster(arguments)
