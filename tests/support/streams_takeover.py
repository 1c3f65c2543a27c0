"""An application that Kafka Streams (Java) and `moldau.streams` run in turns, on shared topics."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from moldau.streams import KafkaStreams, Topology
from support.java import program
from support.streams_embedded import Stage


@contextmanager
def java_instance(source: str, stage: Stage, prefix: str) -> Iterator[None]:
    """A program of tests/java, which runs until its input is closed and says so."""
    command = [*program(source), stage.bootstrap, prefix]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield
        said, _ = process.communicate(timeout=120)
        assert said.decode().strip() == "closed"
    finally:
        process.kill()
        process.wait()


@contextmanager
def python_instance(topology: Topology, stage: Stage, prefix: str) -> Iterator[None]:
    """The same application here. Nothing but the topics is taken over."""
    made = KafkaStreams(
        topology,
        application_id=f"{prefix}app",
        bootstrap_servers=stage.bootstrap,
        state_dir=str(stage.folder / f"{prefix}state"),
    )
    # The Java application has other files in its state directory: nothing is taken from there.
    made.clean_up()
    with made:
        yield
