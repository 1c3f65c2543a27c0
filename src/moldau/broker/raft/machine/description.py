"""DescribeQuorum: how far the replicas of the metadata log are, as their leader knows."""

from __future__ import annotations

from moldau.broker.raft.machine.quorum.leadership import Progress
from moldau.broker.raft.machine.quorum.machine import QuorumMachine
from moldau.broker.raft.machine.quorum.roles import Leader
from moldau.times import ElapsedMs, WallMs
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import DescribeQuorumResponse


def describe_quorum(
    machine: QuorumMachine, elapsed_ms: ElapsedMs, now_ms: WallMs
) -> DescribeQuorumResponse.PartitionData:
    """ApiError NOT_LEADER_OR_FOLLOWER unless this node leads."""
    role = machine.role
    if not isinstance(role, Leader):
        raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this node does not lead the quorum")

    def wall_ms(at_ms: ElapsedMs) -> int:
        return -1 if at_ms < 0 else now_ms - elapsed_ms + at_ms

    def replica_state(progress: Progress) -> DescribeQuorumResponse.ReplicaState:
        is_local = progress.key.id == machine.local.id
        return DescribeQuorumResponse.ReplicaState(
            replica_id=progress.key.id,
            replica_directory_id=progress.key.directory_id,
            log_end_offset=machine.state.log.end_offset if is_local else progress.end_offset,
            last_fetch_timestamp=now_ms if is_local else wall_ms(progress.last_fetch_ms),
            last_caught_up_timestamp=now_ms if is_local else wall_ms(progress.caught_up_ms),
        )

    established = machine.established_high_watermark
    leadership = role.leadership
    return DescribeQuorumResponse.PartitionData(
        leader_id=machine.local.id,
        leader_epoch=machine.epoch,
        high_watermark=-1 if established is None else established,
        current_voters=[replica_state(each) for each in leadership.voter_progress()],
        observers=[replica_state(each) for each in leadership.observer_progress(elapsed_ms)],
    )
