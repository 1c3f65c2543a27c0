"""The configuration of nodes under test: Kafka's own defaults but where a test would have to wait.

What differs is small for one machine and quick to notice failures; a test may set any key itself.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from typing import Final

__all__ = ["HOST", "data_folder", "node_properties"]

HOST: Final = "127.0.0.1"
CONTROLLERS_MAX: Final = 3
#: A tmpfs with less than this left would fill up where a disk would not.
_TMPFS_FREE_BYTES_MIN: Final = 1 << 30


def node_properties(
    *,
    node_id: int,
    ports: Mapping[int, tuple[int, int]],
    folder: str,
    log_dirs: int,
    overrides: Mapping[str, str],
    security: str = "PLAINTEXT",
) -> dict[str, str]:
    """One node's server.properties. `ports` are the client's and the controller's by node id."""
    controllers = sorted(ports)[:CONTROLLERS_MAX]
    client_port, controller_port = ports[node_id]
    is_controller = node_id in controllers
    listeners = f"{security}://{HOST}:{client_port}"
    if is_controller:
        listeners += f",CONTROLLER://{HOST}:{controller_port}"
    folders = [
        f"{folder}/data" if number == 0 else f"{folder}/data-{number}" for number in range(log_dirs)
    ]
    return {
        "process.roles": "broker,controller" if is_controller else "broker",
        "node.id": str(node_id),
        "listeners": listeners,
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": ",".join(
            f"{each}@{HOST}:{ports[each][1]}" for each in controllers
        ),
        "log.dirs": ",".join(folders),
        "metadata.log.dir": f"{folder}/metadata",
        **_secured(security),
        **_replication(len(ports)),
        **_pace(len(ports), first=node_id == controllers[0]),
        "socket.receive.buffer.bytes": "-1",
        "socket.send.buffer.bytes": "-1",
        **overrides,
    }


def _secured(security: str) -> dict[str, str]:
    if security == "PLAINTEXT":
        return {}
    return {
        "listener.security.protocol.map": f"{security}:{security},CONTROLLER:{security}",
        "security.inter.broker.protocol": security,
    }


def _replication(brokers: int) -> dict[str, str]:
    """As many replicas as there are brokers, up to three, and one of three may fail."""
    factor = str(min(3, brokers))
    in_sync = "2" if brokers >= 3 else "1"
    return {
        "default.replication.factor": factor,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": factor,
        "share.coordinator.state.topic.min.isr": in_sync,
        # Kafka makes fifty of each; every one is a few files, and a test has a handful of groups.
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.num.partitions": "4",
    }


def _pace(brokers: int, *, first: bool) -> dict[str, str]:
    pace = {
        "group.initial.rebalance.delay.ms": "0",
        "group.streams.initial.rebalance.delay.ms": "0",
        # Members of the newer protocols learn from their heartbeats what they are to do.
        # librdkafka's have no more time than that for an answer, and never get again what was
        # in one that came too late.
        **{
            f"group.{kind}.{which}": value
            for kind in ("consumer", "share", "streams")
            for which, value in (
                ("min.heartbeat.interval.ms", "100"),
                ("heartbeat.interval.ms", "1000"),
                ("min.assignment.interval.ms", "0"),
                ("assignment.interval.ms", "0"),
            )
        },
        # After a jump of the clock what is out of date should go soon.
        "log.retention.check.interval.ms": "500",
        "log.cleaner.backoff.ms": "500",
        "log.initial.task.delay.ms": "500",
        "log.segment.delete.delay.ms": "1000",
    }
    if brokers == 1:
        # Nobody could take over: that the clock is put forward is no reason to fence the node.
        return pace | {"broker.session.timeout.ms": str(24 * 3600 * 1000)}
    return pace | {
        "broker.heartbeat.interval.ms": "150",
        "broker.session.timeout.ms": "1500",
        # The first controller asks for votes as soon as others may be up; no two at a time.
        "controller.quorum.election.timeout.ms": "30" if first else "500",
        "controller.quorum.election.backoff.max.ms": "30" if first else "200",
        "controller.quorum.fetch.timeout.ms": "1000",
    }


def data_folder(parent: str | os.PathLike[str] | None = None) -> str:
    """A new directory for throw-away data: in memory if there is enough of it."""
    if parent is not None:
        os.makedirs(parent, exist_ok=True)
        return tempfile.mkdtemp(prefix="moldau-", dir=os.fspath(parent))
    memory = "/dev/shm"
    try:
        if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free >= _TMPFS_FREE_BYTES_MIN:
            return tempfile.mkdtemp(prefix="moldau-", dir=memory)
    except OSError:
        pass
    return tempfile.mkdtemp(prefix="moldau-")
