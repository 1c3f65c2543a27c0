"""Applications on the platform's Spark: `moldau streams start --instances`, `scale`, `stop`."""

from __future__ import annotations

import argparse
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moldau.cli.pipelines.pipelines import open_pipelines, reporting
from moldau.cli.support.arguments import Parser
from moldau.cli.support.failures import ToolError
from moldau.cli.support.running import find_deployment
from moldau.cli.support.tables import Table

if TYPE_CHECKING:
    from moldau.pipelines.api import PipelineInfo, Pipelines
    from moldau.pipelines.machine.applications import ApplicationDefinition

__all__ = [
    "add_deployment",
    "add_instances",
    "checked_instances",
    "hosted_applications",
    "instances_of",
    "scale_hosted",
    "show_instances",
    "start_application",
    "start_hosted",
    "stop_hosted",
]

_KIND = "streams"


def add_deployment(parser: Parser) -> None:
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="directory of the Spark deployment, or of its broker (default: as for pipelines)",
    )


def add_instances(parser: Parser) -> None:
    parser.add_argument(
        "--instances",
        type=int,
        metavar="N",
        help="run N instances on the deployment's Spark and return when they run (default: run one "
        "here)",
    )
    add_deployment(parser)


def start_hosted(arguments: argparse.Namespace, settings: Mapping[str, Any]) -> None:
    """Put the application on Spark; returns when all its instances run."""
    from moldau.pipelines.machine.applications import ApplicationDefinition
    from moldau.streams.hosts.on_spark import FILE, PROGRAM

    file = Path(arguments.file).resolve()
    definition = ApplicationDefinition(
        name=arguments.application_id,
        kind=_KIND,
        program=PROGRAM,
        instances=checked_instances(arguments.instances),
        settings={**settings, FILE: str(file)},
        digest=hashlib.sha256(file.read_bytes()).hexdigest()[:16],
    )
    start_application(arguments, definition)


def start_application(arguments: argparse.Namespace, definition: ApplicationDefinition) -> None:
    """Start it on the deployment's Spark; returns when all its instances run."""
    with _pipelines(arguments) as pipelines:
        info = pipelines.start_application(definition)
    print(f"{info.name} is {info.state}: {info.activity}.")


def scale_hosted(arguments: argparse.Namespace) -> None:
    with _pipelines(arguments) as pipelines:
        _require_hosted(pipelines, arguments.application_id)
        info = pipelines.scale(arguments.application_id, checked_instances(arguments.instances))
    print(f"{info.name} is {info.state}: {info.activity}.")


def stop_hosted(arguments: argparse.Namespace) -> bool:
    """Stop the application on Spark; False if there is none of that name."""
    if not _has_deployment(arguments):
        return False
    with _pipelines(arguments) as pipelines:
        if arguments.application_id not in _applications(pipelines):
            return False
        info = pipelines.stop(arguments.application_id)
    print(f"{info.name} is {info.state}.")
    return True


def hosted_applications(arguments: argparse.Namespace) -> dict[str, PipelineInfo]:
    """The applications on Spark, by id; none where there is no deployment."""
    if not _has_deployment(arguments):
        return {}
    with _pipelines(arguments) as pipelines:
        return _applications(pipelines)


def show_instances(info: PipelineInfo) -> None:
    """What the instances of an application on Spark report of themselves."""
    print(f"On Spark: {info.state}" + (f", {info.activity}" if info.activity else ""))
    if info.last_error is not None and (info.attempts or info.state == "failed"):
        print(f"Last error: {info.last_error}")
    table = Table("INSTANCE", "STATE", "PROCESS", "TASKS", "FAILURES")
    for row in instances_of(info):
        tasks = ", ".join(row["tasks"]) or "-"
        table.add(row["instance"], row["state"], row["process"], tasks, row["failures"])
    table.show()


def instances_of(info: PipelineInfo) -> list[dict[str, Any]]:
    from moldau.spark.hosting.places import ApplicationPlaces

    beats = ApplicationPlaces(info.checkpoint).beats(info.instances or 0)
    return [
        {
            "instance": beat.instance,
            "state": beat.state.value,
            "process": beat.pid,
            "tasks": beat.facts.get("tasks", []),
            "failures": beat.failures,
        }
        for beat in beats
        if beat.run == info.session_id
    ]


def _applications(pipelines: Pipelines) -> dict[str, PipelineInfo]:
    return {info.name: info for info in pipelines.list() if info.instances is not None}


def _require_hosted(pipelines: Pipelines, name: str) -> None:
    if name not in _applications(pipelines):
        raise ToolError(
            f"{name} does not run on Spark. Start it there with `moldau streams start FILE "
            f"--application-id {name} --instances N`; an application that runs in processes of its "
            f"own is scaled by starting more of them."
        )


def checked_instances(instances: int) -> int:
    from moldau.spark.hosting.machine.application import INSTANCES_MAX

    if not 1 <= instances <= INSTANCES_MAX:
        raise ToolError(f"--instances {instances}: choose between 1 and {INSTANCES_MAX}")
    return instances


def _has_deployment(arguments: argparse.Namespace) -> bool:
    return Path(find_deployment(arguments.data, os.environ), "cluster.json").exists()


@contextmanager
def _pipelines(arguments: argparse.Namespace) -> Iterator[Pipelines]:
    arguments.data = find_deployment(arguments.data, os.environ)
    if getattr(arguments, "origin", None) is not None and _has_deployment(arguments):
        # The address was not given, and the deployment has one.
        arguments.bootstrap_server = arguments.command_config = None
    with reporting(arguments), open_pipelines(arguments) as pipelines:
        yield pipelines
