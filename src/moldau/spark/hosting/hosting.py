"""Starts hosted applications on a Spark server, watches and stops them.

An application is the single micro-batch of a streaming query, of which each task runs one
instance and does not end. The server owns it: it outlives the client that started it and is found
again by its session. The rate source gives partition i the number i, so a task that Spark starts
again is the same instance.

Invariants: no call here waits for an instance; whether instances run is read from their
heartbeats, and they stop by a signal of our own, because Spark only kills.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any, Final

from moldau.spark.hosting.machine.application import HostedApplication
from moldau.spark.hosting.machine.beats import InstanceState, Summary, summary_of
from moldau.spark.hosting.machine.slots import refusal, slots_of
from moldau.spark.hosting.places import ApplicationPlaces
from moldau.spark.hosting.worker import COLUMN, HostedRun
from moldau.spark.runtime.errors import SparkRuntimeError
from moldau.spark.runtime.machine.settings import ServerSettings
from moldau.spark.runtime.processes import is_running

__all__ = ["NotEnoughSlots", "check_slots", "look", "request_stop", "start", "wait_until_ended"]

_POLL_SECONDS: Final = 0.1


class NotEnoughSlots(SparkRuntimeError):
    """An application has more instances than the server has slots left."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(f"{message}: {hint}")
        self.message = message
        self.hint = hint


def check_slots(spark: Any, application: HostedApplication, taken: Mapping[str, int]) -> None:
    """Raises if the application cannot run beside those of `taken`, or not on this server."""
    master = str(spark.conf.get("spark.master", None) or "")
    if not ServerSettings(master=master or "unknown").on_this_machine:
        raise SparkRuntimeError(
            f"{application.name}: hosted applications run where the Spark server is on this "
            f"machine, and tasks of {master} may run elsewhere. Start the server with "
            "--master 'local[16,4]'"
        )
    cores_max = spark.conf.get("spark.cores.max", None)
    total = slots_of(
        master, cores=os.cpu_count() or 1, cores_max=None if cores_max is None else int(cores_max)
    )
    problem = refusal(application.name, application.instances, total=total, taken=taken)
    if problem is not None:
        raise NotEnoughSlots(*problem)


def start(
    spark: Any, application: HostedApplication, places: ApplicationPlaces, *, run: str
) -> Any:
    """The query that hosts the application. `run` is an id of this start."""
    places.write_application(application)
    places.signal(run, stop=False)
    count = str(application.instances)
    numbers = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", count)
        .option("numPartitions", count)
        .load()
        .select(COLUMN)
    )
    hosted = numbers.mapInArrow(HostedRun(str(places.folder), run), f"{COLUMN} long")
    # Once: the batch ends when all instances have ended, and no other one follows.
    return hosted.writeStream.format("noop").queryName(application.name).trigger(once=True).start()


def look(places: ApplicationPlaces, *, run: str) -> Summary:
    """What the instances of a run report."""
    instances = places.application().instances
    return summary_of(
        places.beats(instances), instances=instances, run=run, now_ms=int(time.time() * 1000)
    )


def request_stop(places: ApplicationPlaces, *, run: str) -> None:
    places.signal(run, stop=True)


def wait_until_ended(places: ApplicationPlaces, *, run: str, seconds_max: float) -> bool:
    """Wait until every instance of a run that was started has ended, or its process is gone."""
    deadline = time.monotonic() + seconds_max
    instances = places.application().instances
    while True:
        left = [
            beat
            for beat in places.beats(instances)
            if beat.run == run
            and beat.state is not InstanceState.ENDED
            and is_running(beat.pid, beat.mark)
        ]
        if not left:
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
