"""What is known of pipelines when no broker answers: the control loop's last heartbeat."""

from __future__ import annotations

import os
import time

from moldau.pipelines.api import PipelineInfo
from moldau.pipelines.control.folder import ControlFolder
from moldau.pipelines.machine.records import Desired, State

__all__ = ["stored_infos"]


def stored_infos(folder: str | os.PathLike[str]) -> tuple[list[PipelineInfo], float] | None:
    """The pipelines of the deployment, and how many seconds ago that was written.

    Definitions and what is wanted are in the registry only, so they are not known here. None if
    there never was a control loop.
    """
    control = ControlFolder(folder)
    heartbeat = control.heartbeat()
    if heartbeat is None:
        return None
    stale = None if control.is_locked() else "the control loop does not run"
    ended = (State.STOPPED, State.STOPPING)
    infos = [
        PipelineInfo(
            name=name,
            desired=(Desired.STOPPED if status.state in ended else Desired.RUNNING).value,
            state=status.state.value,
            definition={},
            checkpoint=str(control.checkpoints / name),
            deployment=heartbeat.deployment,
            generation=0,
            revision=status.revision,
            finite=False,
            attempts=status.attempts,
            restarts=status.restarts,
            since_ms=status.since_ms,
            retry_at_ms=status.retry_at_ms,
            connector=status.connector,
            session_id=status.session_id,
            queries=status.queries,
            progress=status.progress,
            activity=status.activity,
            engine=status.engine or "spark",
            last_error=status.last_error,
            updated_at_ms=status.updated_at_ms,
            stale=stale,
        )
        for name, status in sorted(heartbeat.statuses().items())
    ]
    return infos, max(0.0, time.time() - heartbeat.at_ms / 1000)
