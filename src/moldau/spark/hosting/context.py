"""What a hosted program sees of its host."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moldau.spark.hosting.machine.application import process_id

__all__ = ["HostedContext"]


@dataclass(slots=True, kw_only=True)
class HostedContext:
    """Of one instance. The program runs until `stopping` is set, then it finishes and returns."""

    application: str
    #: This instance's number, from 0, and how many there are.
    instance: int
    instances: int
    settings: Mapping[str, Any]
    #: A folder on the worker's machine, the same after a restart there.
    disk: Path
    log: logging.Logger
    stopping: threading.Event
    _facts: dict[str, Any] = field(default_factory=dict)

    @property
    def process_id(self) -> str:
        """The same after every restart, on every machine."""
        return process_id(self.application, self.instance)

    @property
    def transactional_id(self) -> str:
        """Whoever uses it fences an earlier worker of this instance."""
        return f"{self.application}-{self.process_id}"

    def report(self, **facts: Any) -> None:
        """What the next heartbeat says beside the state; values as JSON has them."""
        self._facts = {**self._facts, **facts}

    @property
    def facts(self) -> Mapping[str, Any]:
        return self._facts
