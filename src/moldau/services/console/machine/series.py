"""Series: what the charts show, the last values of a few numbers over time, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

__all__ = ["Series"]


class Series:
    """Points of several named numbers at the same times."""

    def __init__(self, *, points_max: int) -> None:
        self._points: deque[tuple[int, dict[str, float]]] = deque(maxlen=points_max)

    def __len__(self) -> int:
        return len(self._points)

    def add(self, now_ms: int, values: Mapping[str, float]) -> None:
        self._points.append((now_ms, dict(values)))

    def since(self, time_ms: int) -> dict[str, list[float | None]]:
        """Columns: `time`, and each number, None where a point does not have it."""
        points = [point for point in self._points if point[0] > time_ms]
        names = sorted({name for _, values in points for name in values})
        columns: dict[str, list[float | None]] = {"time": [at for at, _ in points]}
        for name in names:
            columns[name] = [values.get(name) for _, values in points]
        return columns

    def latest(self, name: str) -> float | None:
        return self._points[-1][1].get(name) if self._points else None
