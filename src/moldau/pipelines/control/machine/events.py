"""What happens to pipelines, and what is to be done about it: see `decisions.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moldau.pipelines.machine.records import Desired, ErrorRecord, QueryRecord

__all__ = [
    "Effect",
    "Ended",
    "Event",
    "Exit",
    "InstancesSeen",
    "Reattach",
    "Reattached",
    "Remove",
    "Removed",
    "Report",
    "ServerSeen",
    "ServerStartFailed",
    "Shutdown",
    "Spec",
    "SpecsRead",
    "Start",
    "StartFailed",
    "StartServer",
    "Started",
    "Stop",
    "Stopped",
    "Tick",
]


@dataclass(frozen=True, slots=True)
class Spec:
    """What is wanted of a pipeline."""

    desired: Desired
    revision: int
    finite: bool = False
    delete_checkpoint: bool = False
    #: `task` if it runs without Spark.
    engine: str | None = None


# Events.


@dataclass(frozen=True, slots=True)
class SpecsRead:
    """All that is wanted now."""

    specs: Mapping[str, Spec]
    #: Whether the server is to run also without pipelines.
    keep_server: bool = False


@dataclass(frozen=True, slots=True)
class ServerSeen:
    """Which server runs; None if none does."""

    server_id: str | None


@dataclass(frozen=True, slots=True)
class ServerStartFailed:
    error: ErrorRecord


@dataclass(frozen=True, slots=True)
class Started:
    name: str
    queries: tuple[QueryRecord, ...]
    connector: str | None = None


@dataclass(frozen=True, slots=True)
class StartFailed:
    """`lasting`: another try can only fail again."""

    name: str
    error: ErrorRecord
    lasting: bool


@dataclass(frozen=True, slots=True)
class Reattached:
    """Whether all queries of the last run were found, active or ended."""

    name: str
    found: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """A query is not active any more; without an error it came to its end or was stopped."""

    name: str
    error: ErrorRecord | None


@dataclass(frozen=True, slots=True)
class InstancesSeen:
    """Failures in a row of the worst instance of a hosted application; 0 if all are well.

    `restarts` is how often instances of this run were started again, of all together; `all_run`
    whether each instance reports that its program runs.
    """

    name: str
    failures: int
    error: ErrorRecord | None
    restarts: int = 0
    all_run: bool = False


@dataclass(frozen=True, slots=True)
class Stopped:
    """Nothing of the pipeline runs; or, with an error, that could not be brought about."""

    name: str
    error: ErrorRecord | None = None


@dataclass(frozen=True, slots=True)
class Removed:
    name: str
    error: ErrorRecord | None = None


@dataclass(frozen=True, slots=True)
class Shutdown:
    """Stop what runs, start nothing, then end."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Event = (
    SpecsRead
    | ServerSeen
    | ServerStartFailed
    | Started
    | StartFailed
    | Reattached
    | Ended
    | InstancesSeen
    | Stopped
    | Removed
    | Shutdown
    | Tick
)


# Effects.


@dataclass(frozen=True, slots=True)
class StartServer:
    pass


@dataclass(frozen=True, slots=True)
class Start:
    """In a session of that id; a Report that holds it comes before."""

    name: str
    revision: int
    server_id: str
    session_id: str


@dataclass(frozen=True, slots=True)
class Reattach:
    name: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop its queries in order and close its session."""

    name: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Forget it; with its checkpoint if asked for."""

    name: str
    delete_checkpoint: bool


@dataclass(frozen=True, slots=True)
class Report:
    """Its status has changed."""

    name: str


@dataclass(frozen=True, slots=True)
class Exit:
    pass


Effect = StartServer | Start | Reattach | Stop | Remove | Report | Exit
