"""What a consumer counts."""

from __future__ import annotations


class FetchMetrics:
    def on_response(self, latency_ms: int, size: int, throttle_ms: int) -> None:
        """A Fetch was answered."""


class CommitMetrics:
    def on_commit(self, latency_ms: int) -> None:
        """An OffsetCommit was answered."""
