"""How acknowledgements end: accepted, refused, or sent again.

Invariants: each acknowledgement has one outcome, passed to `on_outcome`; none is sent to another
node than the one that gave the record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.client.cluster import ClusterClient
from moldau.client.errors import KafkaError, error_for
from moldau.client.metrics import ShareConsumerMetrics
from moldau.client.share.machine.acknowledgements import TopicIdPartition
from moldau.client.share.node_state import Commit, NodeState, Outcome, PartitionAcks
from moldau.client.topics import TopicPartition
from moldau.wire.errors import PARTITION_MOVED, ErrorCode

__all__ = ["Outcomes", "error_of", "missing"]


class Outcomes:
    """See the module."""

    def __init__(
        self,
        cluster: ClusterClient,
        metrics: ShareConsumerMetrics,
        on_outcome: Callable[[Outcome], None],
    ) -> None:
        self._cluster = cluster
        self._metrics = metrics
        self._on_outcome = on_outcome

    def drop_hopeless(self, state: NodeState) -> None:
        """Commits that cannot be sent any more have their outcome now."""
        while state.commits:
            commit = state.commits[0]
            if state.session.is_new:
                self.refuse(commit.acks, commit)
            else:
                self.refuse_moved(state, commit.acks, commit)
            if commit.acks and commit.deadline.passed and state.failures:
                self.fail(commit.acks, error_for(ErrorCode.REQUEST_TIMED_OUT), commit)
            if commit.acks:
                return
            state.commits.popleft()
            commit.finish()

    def refuse(self, acks: PartitionAcks, commit: Commit | None = None) -> None:
        self.fail(acks, error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER), commit)

    def refuse_moved(
        self, state: NodeState, acks: PartitionAcks, commit: Commit | None = None
    ) -> None:
        picture = self._cluster.metadata
        for partition in list(acks):
            view = picture.partition(TopicPartition(partition.topic, partition.partition))
            gone = state.node_id not in picture.nodes
            if gone or (view is not None and view.leader_id not in (state.node_id, -1)):
                self.refuse({partition: acks.pop(partition)}, commit)

    # Answers.

    def take(
        self, acks: PartitionAcks, response: Any, commit: Commit | None = None
    ) -> set[TopicIdPartition]:
        """Outcomes of what was answered; gives what may be tried again."""
        again = set()
        by_id = {(each.topic_id, each.partition): each for each in acks}
        for topic in response.responses:
            for each in topic.partitions:
                partition = by_id.get((topic.topic_id, each.partition_index))
                if partition is None:
                    continue
                error = error_of(each.error_code, each.error_message)
                moved = error is not None and error.code in PARTITION_MOVED
                if commit is not None and error is not None and error.retriable and not moved:
                    again.add(partition)
                    continue
                outcome = Outcome(
                    partition,
                    acks.pop(partition),
                    error,
                    response.acquisition_lock_timeout_ms or None,
                )
                self.settle(outcome, commit)
        return again

    def fail(self, acks: PartitionAcks, error: KafkaError, commit: Commit | None = None) -> None:
        """The same outcome for all of them."""
        for partition in list(acks):
            self.settle(Outcome(partition, acks.pop(partition), error, None), commit)

    def settle(self, outcome: Outcome, commit: Commit | None = None) -> None:
        if outcome.error is not None:
            self._metrics.acknowledge_failed(len(outcome.acknowledgements))
        if commit is not None:
            commit.results[outcome.partition] = outcome.error
        self._on_outcome(outcome)


def missing() -> KafkaError:
    return error_for(
        ErrorCode.INVALID_RECORD_STATE,
        "Acknowledgement not successful due to invalid response from broker",
    )


def error_of(code: int, message: str | None) -> KafkaError | None:
    return None if code == ErrorCode.NONE else error_for(code, message)
