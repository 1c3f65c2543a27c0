"""`moldau pipelines validate`: all mistakes of a definition, and what was and was not checked."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.cli.pipelines.definition_texts import own_line, warn_of_secrets
from moldau.cli.support.addresses import DEFAULT_SERVERS
from moldau.cli.support.tables import print_json

if TYPE_CHECKING:
    from moldau.pipelines.definition import Pipeline

__all__ = ["run_validate"]


def run_validate(arguments: argparse.Namespace) -> int:
    from moldau.pipelines.validation import validate

    with _analysis(arguments) as analyse:
        found = validate(Path(arguments.file), analyse=analyse)
    if found.pipeline is not None:
        warn_of_secrets(found.pipeline.to_json())
    name = None if found.pipeline is None else found.pipeline.name
    if arguments.json:
        print_json(
            {
                "valid": not found.mistakes,
                "name": name,
                "mistakes": [
                    {"where": one.where, "message": one.message, "hint": one.hint}
                    for one in found.mistakes
                ],
                "checked": found.checked,
                "unchecked": list(found.unchecked),
            }
        )
        return 1 if found.mistakes else 0
    stream = sys.stderr if found.mistakes else sys.stdout
    for mistake in found.mistakes:
        print(mistake, file=stream)
        code = own_line(mistake.where, Path(arguments.file).parent)
        if code is not None:
            print(code, file=stream)
    count = len(found.mistakes)
    verdict = (
        f"{arguments.file}: {count} mistake{'s' if count > 1 else ''}."
        if count
        else f"{arguments.file}: no mistake was found in the pipeline {name}."
    )
    unchecked = ", ".join(found.unchecked)
    print(f"{verdict} Checked: {found.checked}. Not checked: {unchecked}.", file=stream)
    return 1 if count else 0


@contextmanager
def _analysis(arguments: argparse.Namespace) -> Iterator[Callable[[Pipeline], None] | None]:
    """Spark's analysis, if the deployment's server runs; else None. Nothing is started."""
    from moldau.pipelines.control.folder import ControlFolder
    from moldau.spark.runtime.places import Places
    from moldau.spark.runtime.state_files import read_state

    state = read_state(Places(arguments.data))
    # A server that is just starting is not waited for.
    if state is None or not state.ready:
        yield None
        return
    from moldau.spark.runtime.server import ConnectServer

    server = ConnectServer(arguments.data)
    if not server.alive():
        yield None
        return
    from moldau.pipelines import build
    from moldau.spark.sessions import session

    cluster = ControlFolder(arguments.data).cluster or {}
    servers = arguments.bootstrap_server or cluster.get("bootstrap.servers") or DEFAULT_SERVERS
    spark = session(server.session_url)
    try:
        yield lambda pipeline: build.check(pipeline, spark, bootstrap=servers)
    finally:
        spark.stop()
