"""What `moldau cluster` decides while nodes run: when to restart one, what of its log to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

__all__ = ["Restarts", "last_lines"]

DELAY_S_FIRST: Final = 1.0
DELAY_S_MAX: Final = 30.0
# After this long a node counts as healthy: its next failure is the first again.
WELL_AFTER_S: Final = 60.0
IN_A_ROW_MAX: Final = 10
LINES_MAX: Final = 12
_BANNER_FIRST, _BANNER_LAST = " is up.", "Ctrl-C stops it."


@dataclass(slots=True)
class Restarts:
    """How long to wait before a dead node is started again.

    The delay doubles with each failure in a row, up to a limit. After too many in a row the node
    stays down: whatever is wrong with it does not go away by trying.
    """

    _failures: dict[int, int] = field(default_factory=dict)

    def delay_s(self, node_id: int, *, ran_s: float) -> float | None:
        """The pause after a node ended that had run for `ran_s`; None if it stays down."""
        failures = 1 if ran_s >= WELL_AFTER_S else self._failures.get(node_id, 0) + 1
        self._failures[node_id] = failures
        if failures > IN_A_ROW_MAX:
            return None
        return float(min(DELAY_S_MAX, DELAY_S_FIRST * 2 ** (failures - 1)))


def last_lines(output: str, count: int = LINES_MAX) -> list[str]:
    """The end of a node's output, without the lines that greet a user at its start."""
    lines = output.splitlines()
    return _without_banners(lines)[-count:]


def _without_banners(lines: Sequence[str]) -> list[str]:
    kept: list[str] = []
    in_banner = False
    for line in lines:
        if line.startswith("Moldau ") and line.endswith(_BANNER_FIRST):
            # It ends with its own last line; a node that dies in between has no more to show.
            in_banner = True
        if not in_banner:
            kept.append(line)
        if line == _BANNER_LAST:
            in_banner = False
    return kept
