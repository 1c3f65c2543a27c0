"""Checks what `moldau up` was asked for, and runs it here or detached from the terminal.

Everything that can be wrong with the options, the ports or the directory is reported before any
process starts, and a start that is refused leaves no directory behind.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from moldau.cli.catalogue import TOOLS
from moldau.cli.nodes.cluster import BROKERS_MAX, free_range
from moldau.cli.nodes.machine.cluster_plan import CONTROLLERS_MAX
from moldau.cli.platform.folder import DEFAULT_PLATFORM, PlatformFolder
from moldau.cli.platform.machine.plan import (
    BROKER,
    Kind,
    PlanError,
    Service,
    Wanted,
    chosen,
    plan,
    servers_of,
)
from moldau.cli.platform.run import PlatformRun
from moldau.cli.platform.view import LinesView, LiveView, status_lines
from moldau.cli.support.failures import Failure, listen_problem
from moldau.cli.support.output import print_now
from moldau.cli.support.running import Announcement
from moldau.cli.support.tables import on_terminal
from moldau.installation import command, pip_install

__all__ = ["run_detached", "run_up"]

_DETACHED_S_MAX: Final = 120.0
_POLL_S: Final = 0.1
_LAST_LINES: Final = 10


def run_up(arguments: argparse.Namespace) -> int:
    with ExitStack() as held:
        folder, wanted = _prepare(arguments, held)
        return _run(folder, wanted, spark=arguments.spark)


def _run(folder: PlatformFolder, wanted: Wanted, *, spark: bool) -> int:
    services = _planned(wanted)
    servers = servers_of(wanted)
    announcement = Announcement(os.environ)
    data = f"{folder.path}/{BROKER}"

    def announce() -> None:
        announcement.make(
            address=servers.split(",")[0],
            data=data,
            spark=str(folder.spark),
            platform=str(folder.path),
        )

    async def serve(view: LinesView | LiveView) -> int:
        run = PlatformRun(
            services,
            folder,
            view,
            bootstrap_servers=servers,
            pipelines=_pipelines(folder, servers, at_once=spark),
            on_broker_up=announce,
        )
        return await run.serve()

    try:
        if not on_terminal():
            return asyncio.run(serve(LinesView()))
        with LiveView("Ctrl-C stops all of it.") as view:
            return asyncio.run(serve(view))
    finally:
        announcement.withdraw()


def _pipelines(folder: PlatformFolder, servers: str, *, at_once: bool) -> Any:
    """None where Spark is not installed."""
    if find_spec("pyspark") is None:
        if at_once:
            raise Failure(f"--spark needs the package pyspark: {pip_install('spark')}")
        return None
    from moldau.cli.platform.pipelines import Pipelines
    from moldau.pipelines.control.folder import ControlFolder

    lock = ControlFolder(folder.spark).own()
    if lock is None:
        raise Failure(f"{folder.spark} is in use by another command")
    return Pipelines(folder, lock, bootstrap_servers=servers, at_once=at_once)


# Checks.


def _prepare(arguments: argparse.Namespace, held: ExitStack) -> tuple[PlatformFolder, Wanted]:
    """The directory, locked as long as `held`, and what is to run in it."""
    folder = PlatformFolder(arguments.data or DEFAULT_PLATFORM)
    kinds = _installed(_chosen(arguments))
    if arguments.bootstrap_server is not None:
        kinds = tuple(kind for kind in kinds if kind.name != BROKER)
    brokers = _brokers(arguments.brokers, folder)
    _refuse_running(folder)
    ports = _ports(arguments, kinds, brokers)
    wanted = Wanted(
        kinds=kinds,
        ports=ports,
        data=str(folder.path),
        brokers=brokers,
        host=arguments.host,
        advertised_host=arguments.advertised_host,
        bootstrap_servers=arguments.bootstrap_server,
        files=_files(arguments.service_config, kinds),
        overrides=arguments.override,
    )
    _planned(wanted)
    folder.make()
    lock = folder.lock()
    if lock is None:
        _refuse_running(folder)
        raise Failure(f"{folder.path} is in use by another `moldau up`")
    held.enter_context(lock)
    folder.fix({"brokers": brokers} if any(kind.name == BROKER for kind in kinds) else {})
    return folder, wanted


def _refuse_running(folder: PlatformFolder) -> None:
    if folder.is_locked():
        status = folder.status()
        by = "" if status is None else f" (process {status['pid']})"
        raise Failure(
            f"the platform in {folder.path} is running already{by}. `{command()} status` shows it, "
            f"`{command()} stop` stops it"
        )


def _planned(wanted: Wanted) -> list[Service]:
    try:
        return plan(wanted)
    except PlanError as error:
        raise Failure(str(error)) from None


def _chosen(arguments: argparse.Namespace) -> tuple[Kind, ...]:
    if arguments.only and (arguments.without or arguments.added):
        raise Failure("--only names all services that run: leave out --with and --without")
    try:
        return chosen(
            without=_names(arguments.without),
            added=_names(arguments.added),
            only=_names(arguments.only),
        )
    except PlanError as error:
        raise Failure(str(error)) from None


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _installed(kinds: Sequence[Kind]) -> tuple[Kind, ...]:
    """Those that can run here; the others are left out with a line each."""
    found = []
    for kind in kinds:
        if kind.name != BROKER and kind.name not in TOOLS:
            print_now(f"moldau: {kind.title} is left out: this version does not have it.")
        elif kind.module and find_spec(kind.module) is None:
            print_now(
                f"moldau: {kind.title} is left out: it needs the package {kind.module}. "
                f"Install it: {pip_install(kind.extra)}"
            )
        else:
            found.append(kind)
    return tuple(found)


def _brokers(given: int | None, folder: PlatformFolder) -> int:
    known = folder.fixed.get("brokers")
    if given is not None and not 1 <= given <= BROKERS_MAX:
        raise Failure(f"--brokers {given}: choose 1 to {BROKERS_MAX}")
    if given is None or known is None:
        return given or known or 1
    if given != known and 1 in (given, known):
        raise Failure(
            f"--brokers {given}: the platform in {folder.path} has {known}, and one broker cannot "
            "become several. Choose another directory with --data"
        )
    return given


def _ports(arguments: argparse.Namespace, kinds: Sequence[Kind], brokers: int) -> dict[str, int]:
    """Each service's port, free now."""
    given = {
        name: _port(name, value)
        for name, value in _pairs(arguments.service_port, "--service-port", kinds)
    }
    if arguments.port is not None:
        given[BROKER] = _port(BROKER, str(arguments.port))
    # The controllers of a cluster use the ports after those of the brokers.
    width = 1 if brokers == 1 else brokers + min(brokers, CONTROLLERS_MAX)
    every = arguments.port == 0
    ports: dict[str, int] = {}
    for kind in kinds:
        wanted = given.get(kind.name, 0 if every else kind.port)
        count = width if kind.name == BROKER else 1
        ports[kind.name] = wanted or free_range(count)
        for port in range(ports[kind.name], ports[kind.name] + count):
            problem = listen_problem(arguments.host, port)
            if problem is not None:
                option = "--port P" if kind.name == BROKER else f"--service-port {kind.name}=P"
                problem = problem.replace("e.g. with --port", f"with {option}")
                raise Failure(f"{kind.title} cannot listen on {arguments.host}:{port}: {problem}")
    return ports


def _port(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise Failure(f"the port of {name} must be between 0 and 65535, not {text}")
    return int(text)


def _files(texts: Sequence[str], kinds: Sequence[Kind]) -> dict[str, str]:
    files = dict(_pairs(texts, "--service-config", kinds))
    for name, file in files.items():
        if name == BROKER:
            raise Failure("--service-config broker: use --override KEY=VALUE")
        if not Path(file).is_file():
            raise Failure(f"--service-config {name}={file}: there is no such file")
        files[name] = os.path.abspath(file)
    return files


def _pairs(texts: Sequence[str], option: str, kinds: Sequence[Kind]) -> list[tuple[str, str]]:
    pairs = []
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator:
            raise Failure(f"{option} {text}: use SERVICE=VALUE")
        if name not in {kind.name for kind in kinds}:
            known = ", ".join(kind.name for kind in kinds)
            raise Failure(f"{option} {text}: no service {name} is to run, only {known}")
        pairs.append((name, value))
    return pairs


# In the background.


def run_detached(arguments: argparse.Namespace) -> int:
    """Start the same command without a terminal, and wait until all its services are up."""
    with ExitStack() as held:
        # What is wrong is reported here.
        folder, _ = _prepare(arguments, held)
    words = [word for word in arguments.given if word not in ("--detach", "-d")]
    log = folder.log("up")
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "moldau.cli", "up", *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    deadline = time.monotonic() + _DETACHED_S_MAX
    while time.monotonic() < deadline:
        if process.poll() is not None:
            shown = "\n".join(folder.last_lines("up", _LAST_LINES))
            raise Failure(f"the platform ended while starting:\n{shown}")
        status = folder.status()
        if status is not None and status["pid"] == process.pid and status["allUp"]:
            print_now("\n".join(status_lines(status)))
            print_now(f"\nThe platform runs in the background. `{command()} stop` stops it.")
            return 0
        time.sleep(_POLL_S)
    status = folder.status()
    print_now("\n".join(status_lines(status)) if status is not None else "")
    raise Failure(
        f"not all services are up after {_DETACHED_S_MAX:.0f} s; those that are keep running. "
        f"`{command()} logs SERVICE` shows why, `{command()} stop` stops all"
    )
