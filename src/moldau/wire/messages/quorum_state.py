"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class QuorumStateData(Message):
    """data, versions 0-1."""

    KIND = "data"
    TYPE = None
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 0
    __slots__ = ("cluster_id", "leader_id", "leader_epoch", "voted_id", "voted_directory_id", "applied_offset", "current_voters",)
    FIELDS = (
        ('cluster_id', 'string', 0, 0, None, None, '', False),
        ('leader_id', 'int32', 0, 32767, None, None, -1, False),
        ('leader_epoch', 'int32', 0, 32767, None, None, -1, False),
        ('voted_id', 'int32', 0, 32767, None, None, -1, False),
        ('voted_directory_id', 'uuid', 1, 32767, None, None, (), False),
        ('applied_offset', 'int64', 0, 0, None, None, 0, False),
        ('current_voters', '[]Voter', 0, 0, (0, 0), None, (), False),
    )

    def __init__(
        self,
        *,
        cluster_id: str = '',
        leader_id: int = -1,
        leader_epoch: int = -1,
        voted_id: int = -1,
        voted_directory_id: UUID = ZERO_UUID,
        applied_offset: int = 0,
        current_voters: list[QuorumStateData.Voter] | None = UNSET,
    ) -> None:
        self.cluster_id = cluster_id
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.voted_id = voted_id
        self.voted_directory_id = voted_directory_id
        self.applied_offset = applied_offset
        self.current_voters = [] if current_voters is UNSET else current_voters
        self.unknown_tagged_fields = None

    class Voter(Message):
        __slots__ = ("voter_id",)
        FIELDS = (
            ('voter_id', 'int32', 0, 0, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            voter_id: int = 0,
        ) -> None:
            self.voter_id = voter_id
            self.unknown_tagged_fields = None
