"""Read a cluster's load: brokers and replicas from metadata, sizes from the log directories, and
traffic from the brokers' metrics pages where they are given.
"""

from __future__ import annotations

import http.client
import threading
import time
import urllib.request
from collections.abc import Iterable, Mapping, Sequence

from moldau.balance.machine.model import Broker, Cluster, Impossible, Partition, Resource
from moldau.balance.machine.traffic import (
    Measured,
    broker_cpu,
    shared_cpu,
    shared_traffic,
    topic_rates,
)
from moldau.client.admin import Admin, LogDirDescription
from moldau.client.errors import KafkaTimeoutError
from moldau.client.topics import Node, TopicPartition
from moldau.metrics.parsing import parse

__all__ = ["read_cluster", "read_load"]

DISK_LIMIT = 0.9
"""The share of a broker's disks that replicas may fill."""
_ANSWER_SECONDS_MAX = (3.0, 12.0, 45.0)
"""How long brokers may take to describe their directories, each time they are asked."""
_PAGE_SECONDS_MAX = 10.0
_PAGE_BYTES_MAX = 64 << 20


def read_cluster(
    admin: Admin, measured: Measured | None = None, *, disk_limit: float = DISK_LIMIT
) -> Cluster:
    """Partitions without a leader are fixed: there is nothing to copy them from."""
    nodes, folders = _brokers(admin)
    sizes = _sizes(folders)
    names = sorted(admin.list_topics(list_internal=True))
    # A topic may be deleted between the two requests.
    described = admin.describe_topics(names, check=False).values_by_key if names else {}
    partitions = []
    for topic in described.values():
        for each in topic.partitions:
            copies = sizes.get(TopicPartition(topic.name, each.partition), {})
            leader = each.leader.id if each.leader is not None else -1
            size = copies.get(leader, max(copies.values(), default=0))
            partitions.append(
                Partition(
                    topic.name,
                    each.partition,
                    tuple(node.id for node in each.replicas),
                    disk=float(size),
                    fixed=leader not in nodes,
                )
            )
    known = set(nodes) | {broker for each in partitions for broker in each.replicas}
    brokers = [
        Broker(
            each,
            rack=nodes[each].rack if each in nodes else None,
            alive=each in nodes,
            capacity=_capacity(folders.get(each, {}), disk_limit),
        )
        for each in sorted(known)
    ]
    if measured is None:
        return Cluster(brokers, partitions)
    return Cluster(brokers, shared_cpu(shared_traffic(partitions, measured.topics), measured.cpu))


def _brokers(admin: Admin) -> tuple[dict[int, Node], dict[int, dict[str, LogDirDescription]]]:
    """The brokers of the cluster, and the log directories of those that describe them.

    A broker that has died is still listed for a moment. Asked until the request times out, it
    would hold up everything, so the brokers are listed again in between.
    """
    folders: dict[int, dict[str, LogDirDescription]] = {}
    for seconds_max in _ANSWER_SECONDS_MAX:
        nodes = {node.id: node for node in admin.describe_cluster().nodes}
        missing = sorted(nodes.keys() - folders.keys())
        if not missing:
            break
        asked = admin.describe_log_dirs(missing, timeout=seconds_max, check=False)
        folders |= asked.values_by_key
        if not any(isinstance(error, KafkaTimeoutError) for error in asked.errors.values()):
            break
    return nodes, folders


def _sizes(
    folders: Mapping[int, Mapping[str, LogDirDescription]],
) -> dict[TopicPartition, dict[int, int]]:
    found: dict[TopicPartition, dict[int, int]] = {}
    for broker, described in folders.items():
        for folder in described.values():
            for key, replica in folder.replica_infos.items():
                if not replica.is_future:
                    found.setdefault(key, {})[broker] = replica.size
    return found


def _capacity(folders: Mapping[str, LogDirDescription], limit: float) -> dict[Resource, float]:
    """What replicas may use: what they have and what is free, less a reserve.

    Other programs may fill the same disk, and directories may share one.
    """
    online = [each for each in folders.values() if each.error is None]
    if not online or any(each.total_bytes is None or each.total_bytes < 0 for each in online):
        return {}
    disks = {(each.total_bytes, each.usable_bytes) for each in online}
    free = sum((usable or 0) - (1 - limit) * (total or 0) for total, usable in disks)
    used = sum(replica.size for each in online for replica in each.replica_infos.values())
    return {Resource.DISK: used + free} if used + free > 0 else {Resource.DISK: float(used or 1)}


def read_load(pages: Sequence[str], seconds: float, stop: threading.Event) -> Measured:
    """From two readings of the metrics pages of all brokers, HOST:PORT or ID=HOST:PORT each."""
    split = [each.strip().rpartition("=") for each in pages]
    ids = [_broker_id(name) for name, _, _ in split]
    addresses = [address for _, _, address in split]
    before, then = _pages(addresses), time.monotonic()
    stop.wait(seconds)
    after, now = _pages(addresses), time.monotonic()
    return Measured(
        topic_rates(before, after, now - then), broker_cpu(ids, before, after, now - then)
    )


def _broker_id(text: str) -> int | None:
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise Impossible(
            f"--metrics: {text!r} is not the id of a broker. Write HOST:PORT or ID=HOST:PORT"
        ) from None


def _pages(addresses: Iterable[str]) -> list[list[tuple[str, str, float]]]:
    return [
        [(each.name, each.label("topic"), each.value) for each in parse(_page(address))]
        for address in addresses
    ]


def _page(address: str) -> str:
    base = address if address.startswith(("http://", "https://")) else f"http://{address}"
    url = base.rstrip("/").removesuffix("/metrics") + "/metrics"
    try:
        with urllib.request.urlopen(url, timeout=_PAGE_SECONDS_MAX) as answer:
            text: str = answer.read(_PAGE_BYTES_MAX).decode(errors="replace")
            return text
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise Impossible(
            f"{url}: {reason}. Start the brokers with --metrics-port, or leave out --metrics"
        ) from None
