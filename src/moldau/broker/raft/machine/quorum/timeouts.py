"""Timeouts of the quorum, with the random part that keeps nodes from acting at the same time."""

from __future__ import annotations

from collections.abc import Callable, Collection

from moldau.broker.raft.machine.settings import QuorumSettings
from moldau.broker.raft.machine.voters import ReplicaKey, VoterSet

# Voters whose leader refuses connections stand one after another, so that votes are not split: two
# of them are this part of the election timeout apart.
SUCCESSION_PART = 8


class Timeouts:
    def __init__(self, settings: QuorumSettings, random_below: Callable[[int], int]) -> None:
        self._settings = settings
        self._random_below = random_below

    def election_ms(self) -> int:
        """Between one and two election timeouts."""
        timeout_ms = self._settings.election_timeout_ms
        return timeout_ms + self._random_below(max(1, timeout_ms))

    def fetch_ms(self) -> int:
        """Up to a tenth longer than the fetch timeout, so that followers that lose their leader at
        the same time do not stand for election at the same time."""
        timeout_ms = self._settings.fetch_timeout_ms
        return timeout_ms + self._random_below(max(1, timeout_ms // 10))

    def succession_ms(self, voters: VoterSet, local: ReplicaKey, gone: Collection[int]) -> int:
        """The delay by the order of ids among the voters that are left.

        The random part is for a voter that noticed late, close to the turn of the next one.
        """
        step_ms = max(1, self._settings.election_timeout_ms // SUCCESSION_PART)
        before = sum(voter_id < local.id for voter_id in voters.voters if voter_id not in gone)
        return before * step_ms + self._random_below(max(1, step_ms // 4))
