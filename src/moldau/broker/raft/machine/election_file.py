"""The quorum-state file: the last epoch that this node knows, its leader, and this node's vote.

It is written and synced before any message of the epoch is sent, because a vote that is lost in a
crash could be given twice in one epoch. Version 0 is for static quorums, version 1 for dynamic
ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from moldau.broker.raft.machine.voters import ReplicaKey
from moldau.wire.uuids import ZERO_UUID, uuid_from_text, uuid_to_text

QUORUM_STATE_FILE = "quorum-state"
NO_NODE = -1


class CorruptQuorumState(Exception):
    """The quorum-state file does not have Kafka's format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """What a node knows of an epoch; `leader_id` is NO_NODE while the leader is not known."""

    epoch: int = 0
    leader_id: int = NO_NODE
    voted: ReplicaKey | None = None


def encode_election(
    election: Election, *, kraft_version: int, voter_ids: Iterable[int] = ()
) -> bytes:
    voted = election.voted or ReplicaKey(NO_NODE)
    content: dict[str, Any]
    if kraft_version == 0:
        content = {
            "clusterId": "",
            "leaderId": election.leader_id,
            "leaderEpoch": election.epoch,
            "votedId": voted.id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter_id} for voter_id in voter_ids],
            "data_version": 0,
        }
    else:
        content = {
            "leaderId": election.leader_id,
            "leaderEpoch": election.epoch,
            "votedId": voted.id,
            "votedDirectoryId": uuid_to_text(voted.directory_id),
            "data_version": 1,
        }
    return json.dumps(content, separators=(",", ":")).encode()


def decode_election(data: bytes) -> Election:
    try:
        content = json.loads(data)
        version = content["data_version"]
        if version not in (0, 1):
            raise CorruptQuorumState(
                f"{QUORUM_STATE_FILE}: data_version {version} is not supported, only 0 and 1 are;"
                " it may have been written by a newer version"
            )
        voted_id = _int(content.get("votedId", NO_NODE))
        directory: UUID = (
            uuid_from_text(content["votedDirectoryId"])
            if "votedDirectoryId" in content
            else ZERO_UUID
        )
        return Election(
            epoch=_int(content["leaderEpoch"]),
            leader_id=_int(content["leaderId"]),
            voted=None if voted_id == NO_NODE else ReplicaKey(voted_id, directory),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptQuorumState(f"{QUORUM_STATE_FILE} is damaged: {error!r}") from error


def _int(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r} is not a number")
    return value
