"""What a host lets the processors of a task know of the application around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from moldau.streams.errors import StreamsError
from moldau.streams.machine.processor_metrics import ProcessorMetrics
from moldau.streams.serdes import BYTES


def _no_metrics() -> ProcessorMetrics:
    raise StreamsError("what runs this processor keeps no metrics")


class Surroundings(NamedTuple):
    """The same for all processors of a task."""

    key_serde: Any = BYTES
    value_serde: Any = BYTES
    #: The folder of the task, a `Path`, if it has one.
    state_dir: Any = None
    #: Made when they are first asked for.
    metrics: Callable[[], ProcessorMetrics] = _no_metrics
