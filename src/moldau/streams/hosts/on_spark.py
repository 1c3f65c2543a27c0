"""The third host: one instance of an application as a long-lived task of Spark.

Spark places the instance and starts it again; the group decides which tasks it processes, and
exactly once comes from its lasting identity: a successor has the same transactional id and fences
an instance that is still alive.
"""

from __future__ import annotations

from typing import Final

from moldau.spark.hosting.context import HostedContext
from moldau.streams.errors import StreamsError
from moldau.streams.hosts.kafka_streams import KafkaStreams
from moldau.streams.hosts.programs import load_topology, without_traces
from moldau.streams.hosts.query_server import QueryServer

__all__ = ["FILE", "PROGRAM", "run"]

#: What the control loop starts.
PROGRAM: Final = "moldau.streams.hosts.on_spark:run"
#: The setting that names the file with the topology; all others are the application's.
FILE: Final = "program.file"
_POLL_SECONDS: Final = 0.5
# Less than the control loop waits before it lets Spark kill the worker.
_CLOSE_SECONDS_MAX: Final = 15.0


def run(context: HostedContext) -> None:
    """Process until the instance is to stop; raises what stops the application."""
    settings = dict(context.settings)
    file = settings.pop(FILE)
    with without_traces(file):
        settings.setdefault("state.dir", str(context.disk))
        settings.setdefault("client.id", f"{settings['application.id']}-{context.instance}")
        server = settings.get("application.server")
        if server is not None:
            settings["application.server"] = address_of(server, context.instance)
        streams = KafkaStreams(load_topology(file), settings)
        streams.instance.directory.identify(context.process_id)
        if server is None:
            closed = _process(streams, context)
        else:
            with QueryServer(streams, settings["application.server"]):
                closed = _process(streams, context)
        if streams.error is not None:
            raise streams.error
        if not closed:
            raise StreamsError(f"the application did not close in {_CLOSE_SECONDS_MAX:g} s")


def _process(streams: KafkaStreams, context: HostedContext) -> bool:
    """Until the instance is to stop, or its threads have; whether it was closed in time."""
    streams.start()
    while not context.stopping.wait(_POLL_SECONDS):
        tasks = [str(task) for thread in streams.threads for task in list(thread.tasks.active)]
        context.report(state=streams.state.name, tasks=sorted(tasks))
        if streams.state.has_completed_shutdown:
            break
    return streams.close(_CLOSE_SECONDS_MAX)


def address_of(server: str, instance: int) -> str:
    """Where an instance answers queries: each on a port of its own, from the first one's on."""
    host, _, port = server.rpartition(":")
    return f"{host}:{int(port) + instance}"
