"""The kinds of coordinators that a client looks for."""

from __future__ import annotations

from enum import IntEnum


class CoordinatorType(IntEnum):
    """What a coordinator coordinates, by its number in FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2
