"""What a request decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from moldau.services.registry.machine.records import Record

__all__ = ["Decision"]

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Decision(Generic[R]):
    """Write the records; answer only after they are read back."""

    records: tuple[Record, ...]
    response: R
