"""`moldau start` and `moldau server-start`: run a broker in the foreground.

`start` creates and formats what is missing; `server-start` behaves like Kafka's script and refuses
data directories that are not formatted.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Sequence
from typing import Protocol

from moldau import __version__
from moldau.broker.config.broker_config import BrokerConfig
from moldau.broker.config.listeners import Listener
from moldau.cli.nodes.configuration import (
    DEFAULT_DATA,
    DEFAULT_PORT,
    load_config,
    read_properties,
    standalone_properties,
    warn_of_ignored_keys,
)
from moldau.cli.support.addresses import DEFAULT_SERVERS, named_cluster
from moldau.cli.support.failures import (
    Failure,
    explain_os_error,
    listen_problem,
    unusable_directory,
)
from moldau.cli.support.output import print_now
from moldau.cli.support.running import Announcement
from moldau.config.errors import ConfigError
from moldau.installation import command, python

__all__ = ["ready_text", "run_server_start", "run_start", "try_lines"]


class Ready(Protocol):
    """What is known of the broker once it serves: the addresses it is bound to."""

    @property
    def cluster_id(self) -> str: ...

    @property
    def node_id(self) -> int: ...

    @property
    def listeners(self) -> Sequence[Listener]: ...


def run_start(arguments: argparse.Namespace) -> int:
    is_alone = not getattr(arguments, "has_parent", False)
    if arguments.file is None:
        port = DEFAULT_PORT if arguments.port is None else arguments.port
        if not 0 <= port <= 65535:
            raise Failure(f"--port {port}: a port must be between 0 and 65535")
        data = os.path.abspath(arguments.data or DEFAULT_DATA)
        if "," in data:
            raise Failure(f"--data {data}: the name of the directory must not contain a comma")
        properties = standalone_properties(port=port, data=data)
    else:
        for option, value in (("--port", arguments.port), ("--data", arguments.data)):
            if value is not None:
                key = "listeners" if option == "--port" else "log.dirs"
                raise Failure(
                    f"{option} cannot be combined with a file. Use --override {key}=... instead"
                )
        properties = read_properties(arguments.file)
    overrides = list(arguments.override)
    metrics_port = getattr(arguments, "metrics_port", None)
    if metrics_port is not None:
        overrides.append(f"moldau.metrics.port={metrics_port}")
    config = load_config(properties, overrides)
    warn_of_ignored_keys(config)
    if formatted_folders(config):
        _require_folders(config)
    else:
        # First, so that a failed start leaves no data directory behind.
        _require_ports(config)
        _require_folders(config)
        _format(config)
    return _run(config, verbose=True, announced=is_alone)


def run_server_start(arguments: argparse.Namespace) -> int:
    config = load_config(read_properties(arguments.file), arguments.override)
    warn_of_ignored_keys(config)
    if not formatted_folders(config):
        folders = ", ".join(config.log_dirs)
        raise Failure(
            f"No readable meta.properties files found in {folders}. Format the storage first: "
            f"bin/kafka-storage.sh format {_format_options(config)} -c {arguments.file}"
        )
    return _run(config, verbose=False)


def formatted_folders(config: BrokerConfig) -> list[str]:
    """Log directories of this node that are formatted."""
    folders = dict.fromkeys((config.metadata_log_dir, *config.log_dirs))
    return [path for path in folders if os.path.exists(os.path.join(path, "meta.properties"))]


def _require_ports(config: BrokerConfig) -> None:
    for listener in config.listeners:
        problem = listen_problem(listener.host, listener.port)
        if problem is not None:
            raise Failure(f"cannot listen on {listener}: {problem}")


def _require_folders(config: BrokerConfig) -> None:
    """One of several log directories may fail and go offline; the metadata's may not."""
    problem = unusable_directory(config.metadata_log_dir)
    if problem is not None:
        raise Failure(problem)


def _format(config: BrokerConfig) -> None:
    if not _is_alone(config):
        raise Failure(
            "this node belongs to a cluster of several nodes and is not formatted. Run "
            f"moldau storage format {_format_options(config)} with the cluster ID on each node "
            "first"
        )
    from moldau.cli.nodes.storage import format_folders, new_uuid_text

    static = bool(config.quorum.controller_quorum_voters)
    format_folders(config, new_uuid_text(), standalone=not static)


def _is_alone(config: BrokerConfig) -> bool:
    """Whether the configured quorum can only be this node.

    A member of a larger cluster that formatted itself would form a separate cluster.
    """
    if not config.is_controller:
        return False
    voters = config.quorum.controller_quorum_voters
    if voters:
        return len(voters) == 1
    servers = config.quorum.controller_quorum_bootstrap_servers
    listening = (*config.controller_listeners, *config.advertised_controller_listeners)
    own_ports = {listener.port for listener in listening}
    own_hosts = {listener.host for listener in listening}
    return len(servers) == 1 and (
        (servers[0].port in own_ports or 0 in own_ports)
        and (servers[0].host in own_hosts or _is_here(servers[0].host))
    )


def _is_here(host: str) -> bool:
    """Whether `host` is this machine: only its own addresses can be bound."""
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM)
    except OSError:
        return False
    for family, kind, _, _, address in found:
        try:
            with socket.socket(family, kind) as probe:
                probe.bind(address)
        except OSError:
            continue
        return True
    return False


def _format_options(config: BrokerConfig) -> str:
    """The options that format this node."""
    if _is_alone(config):
        quorum = "" if config.quorum.controller_quorum_voters else "--standalone "
        return f"{quorum}-t $(bin/kafka-storage.sh random-uuid)"
    if config.is_controller and not config.quorum.controller_quorum_voters:
        return "--initial-controllers ID@HOST:PORT:DIRECTORY,... -t CLUSTER_ID"
    return "-t CLUSTER_ID"


def _run(config: BrokerConfig, *, verbose: bool, announced: bool = False) -> int:
    """With `announced`, commands of this user find the broker without its address."""
    # The broker is imported last: a wrong value should be reported before anything is loaded.
    from moldau.broker.app import run
    from moldau.broker.log.log_dirs import WrongLogDir
    from moldau.broker.network.server import ListenError
    from moldau.broker.raft.machine.election_file import CorruptQuorumState
    from moldau.broker.raft.machine.errors import MetadataError
    from moldau.wire.errors import ApiError

    announcement = Announcement(os.environ)

    def on_ready(ready: Ready) -> None:
        if announced:
            address = plain_address(config, ready)
            announcement.make(address=address, data=config.log_dirs[0])
        if verbose:
            print_now(ready_text(config, ready))
        else:
            addresses = ", ".join(map(str, ready.listeners))
            print_now(f"Kafka Server started: node {ready.node_id} on {addresses}")

    try:
        exit_code = run(config, on_ready=on_ready)
        if verbose and exit_code == 0:
            print_now("Moldau has stopped; all data is on disk.")
        return exit_code
    except (ConfigError, WrongLogDir, MetadataError, CorruptQuorumState, ApiError) as error:
        raise Failure(str(error)) from None
    except ListenError as error:
        if isinstance(error.__cause__, OSError):
            raise Failure(explain_os_error(error.__cause__, config.listeners)) from None
        raise Failure(str(error)) from None
    except OSError as error:
        raise Failure(explain_os_error(error, config.listeners)) from None
    except KeyboardInterrupt:
        print("moldau: interrupted", file=sys.stderr)
        return 130
    finally:
        if announced:
            announcement.withdraw()


def ready_text(config: BrokerConfig, ready: Ready) -> str:
    """What is up, a line to try it, and how to stop it."""
    names = config.controller_listener_names
    clients = [listener for listener in ready.listeners if listener.name not in names]
    lines = [
        f"Moldau {__version__} is up.",
        f"  cluster    {ready.cluster_id}",
        f"  node       {ready.node_id} ({', '.join(sorted(config.process_roles))})",
        f"  listening  {', '.join(map(str, clients or ready.listeners))}",
        f"  data       {', '.join(config.log_dirs)}",
    ]
    if (address := plain_address(config, ready)) is not None:
        lines += ["", "Try it:", *try_lines(address)]
    lines += ["", "Ctrl-C stops it."]
    return "\n".join(lines)


def plain_address(config: BrokerConfig, ready: Ready) -> str | None:
    """Where commands without settings can connect, which needs a listener without security."""
    for listener in ready.listeners:
        if (
            listener.name not in config.controller_listener_names
            and listener.security_protocol == "PLAINTEXT"
        ):
            host = "127.0.0.1" if listener.is_wildcard else listener.host
            return listener._replace(host=host).address
    return None


def try_lines(bootstrap: str) -> list[str]:
    """Commands to copy: one writes a first record, one reads it, one writes from Python."""
    tool = command()
    at = "" if _is_default(bootstrap) else f" --bootstrap-server {bootstrap}"
    return [
        f"  echo hello | {tool} console-producer{at} --topic greetings",
        f"  {tool} console-consumer{at} --topic greetings --from-beginning --max-messages 1",
        f'  {python()} -c "from moldau.client import Producer; '
        f"p = Producer(bootstrap_servers='{bootstrap}'); "
        "p.send('greetings', 'hello'); p.close()\"",
    ]


def _is_default(bootstrap: str) -> bool:
    """Whether commands find this broker by themselves."""
    try:
        return bootstrap == DEFAULT_SERVERS and named_cluster(os.environ) is None
    except Failure:
        return False
