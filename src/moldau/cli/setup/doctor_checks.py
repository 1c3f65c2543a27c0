"""The checks of `moldau doctor`, one function each.

Checks measure this machine; the small functions at the end decide from the measurements what is
enough and what to do otherwise.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import os
import resource
import shutil
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from moldau import __version__
from moldau.cli.support.failures import listen_problem
from moldau.config.addresses import HostPort
from moldau.config.errors import ConfigError
from moldau.config.properties import load_properties
from moldau.installation import python, reinstall
from moldau.invariant import of_type

__all__ = [
    "Check",
    "Status",
    "ahead_by",
    "broker_checks",
    "judge_clock",
    "judge_disk_space",
    "judge_open_files",
    "judge_python",
    "judge_sync",
    "local_checks",
]

_GIB = 1 << 30
_COMPILED = (
    "moldau.wire._record_codec",
    "moldau.client._records",
    "moldau.client._batch_builder",
)
_SYNC_COUNT = 20
_SYNC_BYTES = 4096
_CONNECT_SECONDS = 3.0
_ASK_SECONDS = 10.0


class Status(Enum):
    OK = "OK"
    WARN = "warn"
    FAIL = "fail"


class Check(NamedTuple):
    name: str
    status: Status
    found: str
    #: What to do; empty if there is nothing.
    fix: str = ""


def local_checks(*, port: int, data: str) -> Iterator[Check]:
    """This machine, for a broker with this port and data directory."""
    yield judge_python(sys.version_info[:3])
    yield _codec()
    yield _event_loop()
    yield _port(port)
    yield _data_folder(data)
    yield from _disk(data)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield judge_open_files(soft, hard)
    yield _memory_maps()


# Measured.


def _codec() -> Check:
    missing = []
    for name in _COMPILED:
        file = importlib.import_module(name).__file__ or ""
        if not file.endswith((".so", ".pyd")):
            missing.append(name)
    if not missing:
        return Check("record codec", Status.OK, "compiled")
    return Check(
        "record codec",
        Status.WARN,
        f"not compiled: {', '.join(missing)}. It works, but several times slower",
        f"install a C compiler and run `{reinstall()}`",
    )


def _event_loop() -> Check:
    try:
        version = importlib.metadata.version("uvloop")
    except importlib.metadata.PackageNotFoundError:
        return Check(
            "event loop",
            Status.WARN,
            "uvloop is not installed; asyncio's own event loop is slower",
            f"{python()} -m pip install uvloop",
        )
    return Check("event loop", Status.OK, f"uvloop {version}")


def _port(port: int) -> Check:
    problem = listen_problem("127.0.0.1", port)
    if problem is None:
        return Check("port", Status.OK, f"{port} is free")
    if _answers_as_broker(port):
        return Check(
            "port",
            Status.WARN,
            f"a broker already listens on {port}",
            f"use it (moldau doctor --bootstrap-server 127.0.0.1:{port}) or choose another --port",
        )
    found, _, fix = problem.partition(". ")
    return Check("port", Status.FAIL, found, fix)


def _answers_as_broker(port: int) -> bool:
    """Whether a Kafka node answers on the port."""
    from moldau.cli.support.probe import problems_of

    address = HostPort("127.0.0.1", port)
    wait = _CONNECT_SECONDS
    return problems_of([address], connect_seconds_max=wait, answer_seconds_max=wait) is None


def _data_folder(data: str) -> Check:
    folder = Path(data).absolute()
    if not folder.exists():
        parent = _existing(folder)
        if os.access(parent, os.W_OK | os.X_OK):
            return Check("data directory", Status.OK, f"{folder} will be created by a start")
        return Check(
            "data directory",
            Status.FAIL,
            f"{folder} cannot be created: {parent} is not writable",
            "choose another one with --data, or change the owner",
        )
    if not folder.is_dir():
        return Check(
            "data directory", Status.FAIL, f"{folder} is not a directory", "choose another --data"
        )
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return Check(
            "data directory", Status.FAIL, f"{folder} is not writable", f"chown -R $USER {folder}"
        )
    return _formatted(folder)


def _formatted(folder: Path) -> Check:
    file = folder / "meta.properties"
    if not file.exists():
        if any(folder.iterdir()):
            return Check(
                "data directory",
                Status.WARN,
                f"{folder} is not empty and not formatted",
                "choose an empty one with --data",
            )
        return Check("data directory", Status.OK, f"{folder} is empty")
    try:
        properties = load_properties(file.read_text(encoding="utf-8"))
    except (OSError, ConfigError, UnicodeDecodeError) as error:
        return Check(
            "data directory",
            Status.FAIL,
            f"{file} cannot be read: {error}",
            "restore it from a backup",
        )
    cluster, node = properties.get("cluster.id", "?"), properties.get("node.id", "?")
    return Check("data directory", Status.OK, f"{folder} holds node {node} of cluster {cluster}")


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path


def _disk(data: str) -> Iterator[Check]:
    folder = _existing(Path(data).absolute())
    if not folder.is_dir():
        folder = folder.parent
    usage = shutil.disk_usage(folder)
    yield judge_disk_space(usage.free, usage.total, str(folder))
    try:
        yield judge_sync(_sync_seconds(folder), str(folder))
    except OSError as error:
        yield Check(
            "disk sync",
            Status.FAIL,
            f"cannot write in {folder}: {error.strerror}",
            "choose another directory with --data",
        )


def _sync_seconds(folder: Path) -> float:
    """How long the disk takes to write and sync a small record: the median of some tries."""
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(_SYNC_COUNT):
            file.write(b"\0" * _SYNC_BYTES)
            file.flush()
            begun = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - begun)
    return statistics.median(times)


def _memory_maps() -> Check:
    try:
        limit = int(Path("/proc/sys/vm/max_map_count").read_text())
    except (OSError, ValueError):
        return Check("memory maps", Status.OK, "this system has no known limit")
    if limit < 65_530:
        return Check(
            "memory maps",
            Status.WARN,
            f"{limit} per process; every open segment uses some",
            "sysctl -w vm.max_map_count=262144",
        )
    return Check("memory maps", Status.OK, f"{limit} per process")


# A broker.


def broker_checks(arguments: argparse.Namespace) -> Iterator[Check]:
    """The broker that --bootstrap-server names, as a client here sees it."""
    from moldau.cli.support.client_options import client_config
    from moldau.cli.support.connecting import wait_until_reachable
    from moldau.cli.support.failures import ToolError
    from moldau.cli.support.reporting import message_of
    from moldau.client.admin import Admin
    from moldau.client.errors import KafkaError

    config = client_config(arguments)
    try:
        wait_until_reachable(config, seconds_max=0)
    except ToolError as error:
        found, _, fix = str(error).partition(". ")
        yield Check("broker", Status.FAIL, found, f"{fix} `moldau start` starts one".strip())
        return
    except ConfigError as error:
        yield Check("broker", Status.FAIL, str(error), "give --bootstrap-server HOST:PORT")
        return
    try:
        with Admin(config) as admin:
            yield from _ask_broker(admin)
    except KafkaError as error:
        yield Check(
            "broker",
            Status.FAIL,
            f"{arguments.bootstrap_server} does not answer: {message_of(error)}",
            "check the address, and whether the listener needs settings for TLS or SASL "
            "(--command-config)",
        )


def _ask_broker(admin: object) -> Iterator[Check]:
    from moldau.client.admin import Admin

    admin = of_type(admin, Admin)
    cluster = admin.describe_cluster(timeout=_ASK_SECONDS)
    yield Check(
        "broker", Status.OK, f"cluster {cluster.cluster_id}, {len(cluster.nodes)} broker(s) up"
    )
    for node in cluster.nodes:
        try:
            socket.create_connection((node.host, node.port), timeout=_CONNECT_SECONDS).close()
        except OSError as error:
            yield Check(
                f"broker {node.id}",
                Status.FAIL,
                f"advertises {node.host}:{node.port}, which cannot be reached: "
                f"{error.strerror or error}",
                "set its advertised.listeners to an address that clients can reach",
            )
        else:
            yield Check(f"broker {node.id}", Status.OK, f"reachable at {node.host}:{node.port}")
    begun = time.time()
    quorum = admin.describe_metadata_quorum(timeout=_ASK_SECONDS)
    ended = time.time()
    for voter in quorum.voters:
        # The leader reports for itself the time at which it answers.
        if voter.replica_id == quorum.leader_id and voter.last_caught_up_timestamp:
            yield judge_clock(ahead_by(voter.last_caught_up_timestamp / 1000, begun, ended))


# Judged.


def judge_python(version: tuple[int, ...]) -> Check:
    shown = ".".join(map(str, version))
    if version >= (3, 11):
        return Check("python", Status.OK, f"{shown}, moldau {__version__}")
    return Check("python", Status.FAIL, f"{shown}; 3.11 is needed", "install Python 3.11 or newer")


def judge_disk_space(free: int, total: int, folder: str) -> Check:
    found = f"{free / _GIB:.1f} of {total / _GIB:.1f} GiB free at {folder}"
    fix = "free some, or choose another disk with --data"
    if free < _GIB // 4:
        return Check("disk space", Status.FAIL, found, fix)
    if free < 5 * _GIB or free < total // 20:
        return Check("disk space", Status.WARN, found, fix)
    return Check("disk space", Status.OK, found)


def judge_sync(seconds: float, folder: str) -> Check:
    found = f"fsync takes {seconds * 1000:.2f} ms at {folder}"
    if seconds > 0.02:
        return Check(
            "disk sync",
            Status.WARN,
            found,
            "use a local SSD, which takes less than 5 ms; metadata and flushed logs wait for fsync",
        )
    return Check("disk sync", Status.OK, found)


def judge_open_files(soft: int, hard: int) -> Check:
    unlimited = soft == resource.RLIM_INFINITY
    found = "unlimited" if unlimited else f"up to {soft}"
    if unlimited or soft >= 10_000:
        return Check("open files", Status.OK, found)
    allowed = hard == resource.RLIM_INFINITY or hard >= 100_000
    fix = "ulimit -n 100000"
    if not allowed:
        fix += ", as root or with LimitNOFILE=100000 in the service's unit"
    status = Status.FAIL if soft < 512 else Status.WARN
    found += "; every connection and every open segment uses some"
    return Check("open files", status, found, fix)


def ahead_by(told_s: float, begun_s: float, ended_s: float) -> float:
    """By how much a clock is at least ahead that returned its time between these two local times.

    A slow answer proves little: only a time before the request or after the answer is wrong.
    """
    return min(0.0, told_s - begun_s) + max(0.0, told_s - ended_s)


def judge_clock(ahead_s: float) -> Check:
    """By how many seconds the broker's clock is ahead of the local one."""
    off = abs(ahead_s)
    which = "ahead of" if ahead_s > 0 else "behind"
    found = f"the broker's clock is {off:.2f} s {which} this one"
    fix = "synchronize both clocks with NTP (timedatectl set-ntp true)"
    if off > 30:
        return Check("clock", Status.FAIL, found, fix)
    if off > 1:
        return Check("clock", Status.WARN, found, fix)
    return Check("clock", Status.OK, f"within {max(off, 0.01):.2f} s of the broker's")
