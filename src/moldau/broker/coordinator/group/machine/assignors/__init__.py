"""The server-side assignors: which member gets which partitions."""

from __future__ import annotations

from typing import Final

from moldau.broker.coordinator.group.machine.assignors.interface import Assignor
from moldau.broker.coordinator.group.machine.assignors.range import RangeAssignor
from moldau.broker.coordinator.group.machine.assignors.simple import SimpleAssignor
from moldau.broker.coordinator.group.machine.assignors.uniform import UniformAssignor

_UNIFORM: Final = UniformAssignor()
_RANGE: Final = RangeAssignor()
_SIMPLE: Final = SimpleAssignor()

ASSIGNORS: Final[dict[str, Assignor]] = {_UNIFORM.name: _UNIFORM, _RANGE.name: _RANGE}
"""Those of consumer groups, the default first."""

SHARE_ASSIGNORS: Final[dict[str, Assignor]] = {_SIMPLE.name: _SIMPLE}

__all__ = [
    "ASSIGNORS",
    "SHARE_ASSIGNORS",
    "Assignor",
    "RangeAssignor",
    "SimpleAssignor",
    "UniformAssignor",
]
