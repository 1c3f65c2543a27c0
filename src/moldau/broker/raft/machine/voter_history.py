"""VoterHistory: the voters at every offset of the log that may still be truncated.

A voter set is in force as soon as it is in the log, committed or not, on leaders and followers;
truncating the log brings back the one before. What was known before the log is at offset -1.
"""

from __future__ import annotations

from moldau.broker.raft.machine.voters import ReplicaKey, VoterSet
from moldau.invariant import invariant

BEFORE_THE_LOG = -1


class VoterHistory:
    def __init__(self, static: VoterSet, kraft_version: int = 0) -> None:
        """`static` are the voters of the configuration, empty in a dynamic quorum."""
        self._static = static
        self._voters: list[tuple[int, VoterSet]] = [(BEFORE_THE_LOG, static)]
        self._versions: list[tuple[int, int]] = [(BEFORE_THE_LOG, kraft_version)]

    @property
    def voters(self) -> VoterSet:
        return self._voters[-1][1]

    @property
    def voters_offset(self) -> int:
        return self._voters[-1][0]

    @property
    def kraft_version(self) -> int:
        return self._versions[-1][1]

    @property
    def is_dynamic(self) -> bool:
        return self.kraft_version > 0

    def add(self, offset: int, kraft_version: int | None, voters: VoterSet | None) -> None:
        """Control records at `offset`; None is for a record that is not there."""
        if kraft_version is not None:
            self.add_kraft_version(offset, kraft_version)
        if voters is not None:
            self.add_voters(offset, voters)

    def add_voters(self, offset: int, voters: VoterSet) -> None:
        invariant(offset >= self.voters_offset, "a voter set out of order")
        self._voters.append((offset, voters))

    def add_kraft_version(self, offset: int, kraft_version: int) -> None:
        invariant(offset >= self._versions[-1][0], "a kraft.version out of order")
        self._versions.append((offset, kraft_version))

    def reset(self, offset: int, kraft_version: int, voters: VoterSet | None) -> None:
        """A snapshot has replaced everything up to `offset`, inclusive."""
        self._voters = [(offset, self._static if voters is None else voters)]
        self._versions = [(offset, kraft_version)]

    def truncate_to(self, end_offset: int) -> None:
        while len(self._voters) > 1 and self._voters[-1][0] >= end_offset:
            self._voters.pop()
        while len(self._versions) > 1 and self._versions[-1][0] >= end_offset:
            self._versions.pop()

    def forget_before(self, offset: int) -> None:
        """Nothing before `offset` is truncated any more, so the last set before it is enough."""
        while len(self._voters) > 1 and self._voters[1][0] < offset:
            del self._voters[0]
        while len(self._versions) > 1 and self._versions[1][0] < offset:
            del self._versions[0]

    def was_voter_since(self, key: ReplicaKey, offset: int) -> bool:
        """Whether `key` is a voter in the set in force at `offset` or in any after it."""
        first = max((i for i, (at, _) in enumerate(self._voters) if at < offset), default=0)
        return any(key in voters for _, voters in self._voters[first:])

    def at(self, end_offset: int) -> tuple[int, VoterSet]:
        """kraft.version and voters in a log that ends before `end_offset`."""
        voters = next((v for at, v in reversed(self._voters) if at < end_offset), self.voters)
        version = next(
            (v for at, v in reversed(self._versions) if at < end_offset), self.kraft_version
        )
        return version, voters
