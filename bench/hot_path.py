"""The hot path of a broker in instructions, with and without what may stand beside it.

A broker's connection, dispatcher, handlers and log handle the same Produce and Fetch requests under
callgrind, which counts instructions: unlike times they do not depend on what else the machine does.
The event loop and the kernel are left out, so the share of whatever is added is an upper bound. The
clock advances by a millisecond with every tenth request, as at 10,000 requests per second. Needs
valgrind.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from itertools import count
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from moldau.broker.network.machine._frames import BufferPool

ROOT = Path(__file__).resolve().parents[1]
REQUESTS = 400
#: Everything inside this function of the interpreter is counted: the loop below, and no import.
COUNTED = "functools_reduce"


#: What a broker may have beside the bare path.
VARIANTS = ("bare", "metrics", "acls", "audit")


def exchanges(kind: str, variant: str, batch_size: int) -> Callable[[], int]:
    """A request and its response each time it is called."""
    from moldau.broker.handlers.fetch import FetchHandler
    from moldau.broker.handlers.produce import ProduceHandler
    from moldau.broker.metrics.node import NodeMetrics
    from moldau.broker.network._connection import Connection
    from moldau.broker.network.context import ConnectionInfo
    from moldau.broker.network.dispatcher import Dispatcher
    from moldau.broker.network.routes import Route
    from moldau.metrics import Registry
    from moldau.wire.apis import API_BY_KEY, ApiKey
    from moldau.wire.framing import encode_request_frame
    from moldau.wire.message import Message
    from moldau.wire.messages import FetchRequest, ProduceRequest
    from support.hosting import Host, alone, batch_of

    metrics = NodeMetrics(Registry(time.monotonic)) if variant == "metrics" else None
    folder = Path(tempfile.mkdtemp(prefix="metrics-cost-"))
    host = Host(folder, replication=replace(alone(), metrics=metrics))
    topic_id = host.create_topic("orders")
    guard = _guard(variant, folder, {topic_id: "orders"})
    produce = ProduceHandler(host.replicas, loop=host.loop, clock=host.loop.clock, guard=guard)
    fetch = FetchHandler(
        host.replicas, loop=host.loop, clock=host.loop.clock, random_id=lambda: 1, guard=guard
    )
    dispatcher = Dispatcher(
        {
            ApiKey.PRODUCE: Route(produce.handle, raw=True, pipelined=True),
            ApiKey.FETCH: Route(fetch.handle, raw=True),
        },
        metrics=None if metrics is None else metrics.requests,
    )
    records = batch_of(*[bytes(100)] * (batch_size // 110 or 1))
    data = ProduceRequest.PartitionProduceData(index=0, records=records)
    produced = ProduceRequest(
        acks=1,
        timeout_ms=1000,
        topic_data=[
            ProduceRequest.TopicProduceData(name="orders", topic_id=topic_id, partition_data=[data])
        ],
    )
    fetched = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[
            FetchRequest.FetchTopic(
                topic="orders",
                topic_id=topic_id,
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=0, fetch_offset=0, partition_max_bytes=1 << 20
                    )
                ],
            )
        ],
    )

    def frame_of(key: ApiKey, request: Message) -> bytes:
        api = API_BY_KEY[key]
        whole = encode_request_frame(api, api.max_version, 1, "client", request)
        return bytes(whole)[4:]

    produce_frame = frame_of(ApiKey.PRODUCE, produced)
    fetch_frame = frame_of(ApiKey.FETCH, fetched)
    frame = produce_frame if kind == "produce" else fetch_frame

    client, served = socket.socketpair()
    served.setblocking(False)
    connection = Connection(
        _Hosting(), served, ConnectionInfo(), dispatcher, request_bytes_max=1 << 20
    )

    def exchange(sent: bytes = frame) -> int:
        client.sendall(len(sent).to_bytes(4, "big") + sent)
        connection._on_readable()
        return len(client.recv(1 << 20))

    # Everything that is made with the first request is made before.
    exchange(produce_frame)
    exchange()
    exchange()
    return exchange


def work(kind: str, variant: str, batch_size: int) -> None:
    """Handle requests; runs under callgrind."""
    exchange = exchanges(kind, variant, batch_size)
    reduce(lambda total, _: total + exchange(), range(REQUESTS), 0)


def _guard(variant: str, folder: Path, names: dict[UUID, str]) -> Any:
    """Allows everything to everybody by an ACL; with "audit" every request is recorded."""
    if variant not in ("acls", "audit"):
        return None
    from moldau.broker.metadata.machine.delta import MetadataDelta
    from moldau.broker.metadata.machine.image import MetadataImage
    from moldau.broker.security.audit.log import AuditLog
    from moldau.broker.security.audit.machine.settings import audit_settings
    from moldau.broker.security.authorization.authorization import STANDARD, load_authorization
    from moldau.broker.security.authorization.topic_guard import TopicGuard
    from moldau.wire.acls import AclOperation, AclPermissionType, PatternType, ResourceType
    from moldau.wire.messages import AccessControlEntryRecord

    audit = None
    if variant == "audit":
        settings = audit_settings({"moldau.audit.file": str(folder / "audit.jsonl")})
        audit = AuditLog(settings, _Ticking(), node_id=1) if settings is not None else None
    authorization = load_authorization(STANDARD, {}, caught_up=lambda: True, audit=audit)
    image = MetadataImage()
    acl_id = UUID(int=1)
    image.acls[acl_id] = AccessControlEntryRecord(
        id=acl_id, resource_type=ResourceType.TOPIC, resource_name="*",
        pattern_type=PatternType.LITERAL, principal="User:ANONYMOUS", host="*",
        operation=AclOperation.ALL, permission_type=AclPermissionType.ALLOW,
    )  # fmt: skip
    assert authorization is not None
    authorization.apply(MetadataDelta(acls_changed=True, acls={acl_id}), image)
    return TopicGuard(authorization, cast(Any, _Topics(names)))


class _Topics:
    def __init__(self, names: dict[UUID, str]) -> None:
        self.name_of = names.get


class _Ticking:
    """A clock that advances as at 10,000 requests per second; its alarms never go off."""

    def __init__(self) -> None:
        self._tenths = count(17_948_880_000_000)

    # As much work as the real one.
    def now_ms(self) -> Any:
        return next(self._tenths) // 10

    def elapsed_ms(self) -> Any:
        return 0

    def call_later(self, delay_ms: int, callback: object) -> Any:
        return self

    def cancel(self) -> None: ...


class _Loop:
    """The part of an event loop that a connection uses before it waits for anything."""

    def add_reader(self, *_: object) -> None: ...

    def remove_reader(self, *_: object) -> None: ...


class _Hosting:
    def __init__(self) -> None:
        self.loop = _Loop()
        self.receive_buffer = memoryview(bytearray(1 << 20))
        self.pool = BufferPool(None)
        self.tick = 0


def instructions(kind: str, variant: str, batch_size: int) -> float:
    """Per request."""
    return counted("bench.hot_path", kind, variant, str(batch_size)) / REQUESTS


def counted(module: str, *arguments: str) -> int:
    """The instructions of a module's run inside COUNTED."""
    command = [
        "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
        f"--toggle-collect={COUNTED}", sys.executable, "-m", module, *arguments,
    ]  # fmt: skip
    environment = {
        "PYTHONHASHSEED": "0", "PYTHONPATH": f"{ROOT}/tests:{ROOT}", "PATH": "/usr/bin:/bin",
    }  # fmt: skip
    ended = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False
    )
    found = re.search(r"Collected : (\d+)", ended.stderr)
    if found is None or int(found[1]) == 0:
        raise SystemExit(f"callgrind counted nothing:\n{ended.stderr[-3000:]}")
    return int(found[1])


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2], int(sys.argv[3]))
