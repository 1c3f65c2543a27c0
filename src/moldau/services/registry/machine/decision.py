"""What a request decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

__all__ = ["Decision"]

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Decision(Generic[R]):
    """Write the records, all of one topic; answer only after they are read back."""

    records: tuple[Any, ...]
    response: R
