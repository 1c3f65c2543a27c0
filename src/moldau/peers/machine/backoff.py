"""How long to wait before the next try: longer after each failure, up to a limit, with jitter.

Growth and jitter are those of Kafka's ExponentialBackoff: nodes that lost the same peer at the same
time do not all reconnect at the same time.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

JITTER_PERCENT: Final = 20


class RandomSource(Protocol):
    """What a backoff needs of `random.Random`."""

    def randrange(self, stop: int, /) -> int: ...


class ExponentialBackoff(NamedTuple):
    """`initial_ms` after the first failure in a row, `max_ms` at most."""

    initial_ms: int
    max_ms: int

    def delay_ms(self, failures: int, random: RandomSource) -> int:
        """The pause after the failure number `failures`, counted from 1."""
        # It doubles each time; beyond 30 times every limit is reached.
        term = min(self.max_ms, self.initial_ms << min(failures - 1, 30))
        percent = 100 - JITTER_PERCENT + random.randrange(2 * JITTER_PERCENT + 1)
        return min(self.max_ms, term * percent // 100)
