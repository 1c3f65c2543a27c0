"""The voters of the metadata quorum.

A voter is identified by its node id and, in a dynamic quorum (kraft.version 1), by the id of its
metadata log directory: a node with an empty disk is not the voter that it replaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from moldau.invariant import invariant
from moldau.wire.messages import VotersRecord
from moldau.wire.uuids import ZERO_UUID

KRAFT_VERSION_MIN = 0
KRAFT_VERSION_MAX = 1


@dataclass(frozen=True, slots=True)
class ReplicaKey:
    """`directory_id` is the zero UUID where it is not known (static quorums)."""

    id: int
    directory_id: UUID = ZERO_UUID

    def matches(self, other: ReplicaKey) -> bool:
        """Whether `other` is this replica; without a directory id, any replica of the node is."""
        return self.id == other.id and self.directory_id in (ZERO_UUID, other.directory_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterEndpoint:
    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    key: ReplicaKey
    endpoints: tuple[VoterEndpoint, ...] = ()
    min_kraft_version: int = KRAFT_VERSION_MIN
    max_kraft_version: int = KRAFT_VERSION_MAX


@dataclass(frozen=True, slots=True)
class VoterSet:
    """The voters by node id. Immutable."""

    voters: Mapping[int, Voter] = field(default_factory=dict)

    @classmethod
    def of(cls, voters: Iterable[Voter]) -> VoterSet:
        by_id = {voter.key.id: voter for voter in voters}
        return cls(dict(sorted(by_id.items())))

    def __len__(self) -> int:
        return len(self.voters)

    def __contains__(self, key: object) -> bool:
        """Whether `key` is a voter; without a directory id, any replica of the node is."""
        if not isinstance(key, ReplicaKey):
            return False
        voter = self.voters.get(key.id)
        return voter is not None and voter.key.matches(key)

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    def is_only(self, key: ReplicaKey) -> bool:
        return len(self.voters) == 1 and key in self

    def others(self, key: ReplicaKey) -> tuple[Voter, ...]:
        return tuple(voter for voter in self.voters.values() if voter.key.id != key.id)

    def endpoints_of(self, node_id: int) -> tuple[VoterEndpoint, ...]:
        voter = self.voters.get(node_id)
        return () if voter is None else voter.endpoints

    def needs_update(self, voter: Voter) -> bool:
        """Whether `voter` is in the set with other endpoints or versions."""
        known = self.voters.get(voter.key.id)
        return known is not None and known.key == voter.key and known != voter

    def with_voter(self, voter: Voter) -> VoterSet:
        return VoterSet.of([*self.others(voter.key), voter])

    def without(self, key: ReplicaKey) -> VoterSet | None:
        """The other voters; None if `key` is not a voter, or the only one."""
        known = self.voters.get(key.id)
        if known is None or known.key != key or len(self) == 1:
            return None
        return VoterSet.of(self.others(key))

    def majority_offset(self, offsets: Mapping[int, int]) -> int:
        """The highest offset that a majority of the voters has reached."""
        invariant(len(self.voters) > 0, "a quorum without voters")
        reached = sorted((offsets.get(node_id, 0) for node_id in self.voters), reverse=True)
        return reached[self.majority - 1]

    @classmethod
    def from_record(cls, record: VotersRecord) -> VoterSet:
        return cls.of(
            Voter(
                key=ReplicaKey(item.voter_id, item.voter_directory_id),
                endpoints=tuple(
                    VoterEndpoint(name=end.name, host=end.host, port=end.port)
                    for end in item.endpoints
                ),
                min_kraft_version=item.kraft_version_feature.min_supported_version,
                max_kraft_version=item.kraft_version_feature.max_supported_version,
            )
            for item in record.voters
        )

    def to_record(self) -> VotersRecord:
        return VotersRecord(
            version=0,
            voters=[
                VotersRecord.Voter(
                    voter_id=voter.key.id,
                    voter_directory_id=voter.key.directory_id,
                    endpoints=[
                        VotersRecord.Endpoint(name=end.name, host=end.host, port=end.port)
                        for end in voter.endpoints
                    ],
                    kraft_version_feature=VotersRecord.KRaftVersionFeature(
                        min_supported_version=voter.min_kraft_version,
                        max_supported_version=voter.max_kraft_version,
                    ),
                )
                for voter in self.voters.values()
            ],
        )
