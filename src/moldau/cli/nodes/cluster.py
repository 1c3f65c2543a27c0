"""`moldau cluster`: several nodes on this machine as one cluster, for development.

The nodes are ordinary `moldau start FILE` processes. What is here checks everything, writes their
files and formats their log directories once; `cluster_run` starts, watches and stops them.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import os
import random
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from moldau import __version__
from moldau.cli.nodes.cluster_processes import running_nodes
from moldau.cli.nodes.cluster_run import ClusterRun
from moldau.cli.nodes.configuration import (
    DEFAULT_PORT,
    load_config,
    parse_overrides,
    warn_of_ignored_keys,
)
from moldau.cli.nodes.machine.cluster_plan import (
    CONTROLLERS_MAX,
    Layout,
    NodePlan,
    plan_nodes,
    ports_of,
)
from moldau.cli.nodes.machine.cluster_watch import Restarts
from moldau.cli.nodes.start import try_lines
from moldau.cli.support.failures import Failure, listen_problem, unusable_directory
from moldau.cli.support.output import print_now
from moldau.config.errors import ConfigError
from moldau.config.properties import dump_properties, load_properties

__all__ = ["BROKERS_MAX", "free_range", "prepare", "ready_text", "run_cluster"]

DEFAULT_CLUSTER_DATA = "moldau-cluster"
BROKERS_DEFAULT = 3
BROKERS_MAX = 100
_OWN_KEYS = (
    "process.roles",
    "node.id",
    "broker.id",
    "listeners",
    "advertised.listeners",
    "controller.listener.names",
    "controller.quorum.voters",
    "controller.quorum.bootstrap.servers",
    "log.dir",
    "log.dirs",
    "metadata.log.dir",
)


def run_cluster(arguments: argparse.Namespace) -> int:
    with ExitStack() as held:
        layout, nodes, data = prepare(arguments, held)
        run = ClusterRun(
            nodes,
            data,
            command_of=_command,
            show_logs=arguments.logs,
            restarts=Restarts() if arguments.restart else None,
        )
        try:
            return asyncio.run(run.serve(lambda: print_now(ready_text(layout, nodes, data))))
        except OSError as error:
            raise Failure(f"cannot start the nodes: {error}") from None


def _command(node: NodePlan, data: Path) -> list[str]:
    return [sys.executable, "-m", "moldau.cli", "start", str(data / f"{node.name}.properties")]


def prepare(arguments: argparse.Namespace, held: ExitStack) -> tuple[Layout, list[NodePlan], Path]:
    """Check everything, write the nodes' files and format new data directories.

    The lock on the cluster's directory lasts as long as `held`.
    """
    data = Path(os.path.abspath(arguments.data or DEFAULT_CLUSTER_DATA))
    overrides = _checked_overrides(arguments.override)
    _lock(data, held)
    layout = _layout(data, arguments.brokers)
    if arguments.replication is not None and not 1 <= arguments.replication <= layout.brokers:
        raise Failure(
            f"--replication {arguments.replication}: a cluster of {layout.brokers} can hold 1 to "
            f"{layout.brokers} replicas"
        )
    _require_stopped(data)
    ports, controller_ports = _free_ports(arguments.port, layout)
    nodes = plan_nodes(
        ports,
        controller_ports,
        replication=arguments.replication or min(3, layout.brokers),
        data=str(data),
        overrides=overrides,
    )
    configs = [load_config(node.properties) for node in nodes]
    # What --override sets is the same for all.
    warn_of_ignored_keys(configs[0])
    _format(data, layout, nodes)
    return layout, nodes, data


def _checked_overrides(texts: Sequence[str]) -> dict[str, str]:
    overrides = parse_overrides(texts)
    for key in overrides:
        if key in _OWN_KEYS:
            raise Failure(
                f"--override {key}: this differs from node to node and is set by `moldau cluster`. "
                "Use --port or --data, or start nodes with files of your own"
            )
    return overrides


def _lock(data: Path, held: ExitStack) -> None:
    if "," in str(data):
        raise Failure(f"--data {data}: the name of the directory must not contain a comma")
    problem = unusable_directory(str(data))
    if problem is not None:
        raise Failure(problem)
    if (data / "meta.properties").exists():
        raise Failure(
            f"{data} contains the data of a single node. Choose another directory with --data"
        )
    lock = held.enter_context((data / ".lock").open("w"))
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise Failure(
            f"{data} is in use by another `moldau cluster`. Stop it or choose another --data"
        ) from None


def _layout(data: Path, brokers: int | None) -> Layout:
    """What an earlier start fixed, or a new one."""
    wanted = BROKERS_DEFAULT if brokers is None else brokers
    if not 1 <= wanted <= BROKERS_MAX:
        raise Failure(f"--brokers {wanted}: choose 1 to {BROKERS_MAX}")
    file = data / "cluster.properties"
    if not file.exists():
        from moldau.cli.nodes.storage import new_uuid_text

        strays = sorted(data.glob("node-*/meta.properties"))
        if strays:
            raise Failure(
                f"{strays[0].parent} has data, but {file} is missing. Restore it or choose another "
                "--data"
            )
        controllers = min(wanted, CONTROLLERS_MAX)
        return Layout(cluster_id=new_uuid_text(), brokers=wanted, controllers=controllers)
    try:
        layout = Layout.from_properties(load_properties(file.read_text()))
    except (ValueError, ConfigError) as error:
        raise Failure(f"{file} is damaged: {error}. Restore it or choose another --data") from None
    if brokers is None or brokers == layout.brokers:
        return layout
    if brokers < layout.brokers:
        raise Failure(
            f"--brokers {brokers}: {data} has a cluster of {layout.brokers}, and the replicas on "
            f"the others would be missing. Start it with --brokers {layout.brokers} or choose "
            "another --data"
        )
    # The voters stay as they are; more brokers may join at any time.
    return replace(layout, brokers=brokers)


def _require_stopped(data: Path) -> None:
    """A node that was started by hand holds its port and its log directory."""
    running = running_nodes(data)
    if running:
        named = ", ".join(f"{name} (process {pid})" for name, pid in sorted(running.items()))
        pids = " ".join(str(pid) for _, pid in sorted(running.items()))
        are = "is" if len(running) == 1 else "are"
        raise Failure(
            f"{named} of the cluster in {data} {are} running already, started by hand with "
            f"`moldau start`. Stop {'it' if len(running) == 1 else 'them'} first: kill {pids}"
        )


def _free_ports(first: int | None, layout: Layout) -> tuple[list[int], list[int]]:
    counts = {"brokers": layout.brokers, "controllers": layout.controllers}
    if first == 0:
        first = free_range(layout.brokers + layout.controllers)
    first = DEFAULT_PORT if first is None else first
    last = first + layout.brokers + layout.controllers - 1
    if not 1 <= first <= last <= 65535:
        raise Failure(
            f"--port {first}: {layout.brokers} brokers and {layout.controllers} controllers take "
            f"the ports up to {last}; ports are between 1 and 65535"
        )
    ports, controller_ports = ports_of(first, **counts)
    for port in (*ports, *controller_ports):
        problem = listen_problem("127.0.0.1", port)
        if problem is not None:
            raise Failure(f"cannot listen on 127.0.0.1:{port}: {problem}")
    return ports, controller_ports


def free_range(count: int) -> int:
    """The first of `count` consecutive ports that are free now.

    Below those that systems give to outgoing connections: one of these could take the port of a
    node that is down for a while.
    """
    for _ in range(100):
        first = random.randrange(20_000, 32_000 - count)
        if not any(listen_problem("127.0.0.1", port) for port in range(first, first + count)):
            return first
    raise Failure(f"there are no {count} consecutive free ports. Choose the first with --port")


def _format(data: Path, layout: Layout, nodes: Sequence[NodePlan]) -> None:
    """Data directories are formatted once; one that was lost is never replaced by an empty one."""
    from moldau.cli.nodes.storage import format_folders

    new = [node for node in nodes if not (data / node.name / "meta.properties").exists()]
    for node in new:
        if node.node_id <= layout.formatted:
            raise Failure(
                f"the data of {node.name} is missing in {data}. Restore the directory, or delete "
                f"{data} to start over"
            )
    _write(data / "cluster.properties", layout.to_properties())
    for node in nodes:
        _write(data / f"{node.name}.properties", node.properties)
    for node in new:
        format_folders(load_config(node.properties), layout.cluster_id)
    formatted = replace(layout, formatted=len(nodes))
    _write(data / "cluster.properties", formatted.to_properties())


def _write(path: Path, properties: Mapping[str, str]) -> None:
    text = "# Written by `moldau cluster` at every start.\n" + dump_properties(properties)
    partial = path.with_name(f"{path.name}.tmp")
    try:
        partial.write_text(text)
        partial.replace(path)
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror}") from None


def ready_text(layout: Layout, nodes: Sequence[NodePlan], data: Path) -> str:
    """What is up, lines to try it, and how to stop it."""
    count = len(nodes)
    first = nodes[0].properties
    replicas = first["default.replication.factor"]
    lines = [
        f"Moldau {__version__}: a cluster of {count} is up.",
        f"  cluster    {layout.cluster_id}",
        *(
            f"  node {node.node_id:<5} PLAINTEXT://{node.address} ({node.roles.replace(',', ', ')})"
            for node in nodes
        ),
        f"  data       {data}",
        f"  logs       {data}/node-*.log",
        f"  replicas   {replicas} of every topic; acks=all waits for those in sync, at least "
        f"{first['min.insync.replicas']}",
        "",
        "Try it:",
        *try_lines(nodes[0].address),
        "",
        "Ctrl-C stops it.",
    ]
    return "\n".join(lines)
