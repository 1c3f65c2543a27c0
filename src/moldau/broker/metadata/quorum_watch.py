"""Logs what an operator has to know about this node's place in the quorum: that no leader is known,
and that another log directory has its vote."""

from __future__ import annotations

import logging
from collections.abc import Callable

from moldau.broker.config import BrokerConfig
from moldau.broker.raft.machine.errors import MetadataError
from moldau.broker.raft.machine.voters import ReplicaKey, VoterSet
from moldau.broker.raft.node import RaftNode
from moldau.clock import Alarm, Clock
from moldau.wire.uuids import uuid_to_text

# How often a node without a leader logs it.
WARNING_INTERVAL_MS = 5_000

logger = logging.getLogger(__name__)


class QuorumWatch:
    def __init__(
        self,
        raft: RaftNode,
        clock: Clock,
        config: BrokerConfig,
        local: ReplicaKey,
        *,
        has_failed: Callable[[], bool],
    ) -> None:
        """After `has_failed` nothing is logged, as the node stops for another reason."""
        self._raft = raft
        self._clock = clock
        self._config = config
        self._local = local
        self._has_failed = has_failed
        self._voters_seen: VoterSet | None = None
        self._alarm: Alarm | None = None

    @property
    def _voters(self) -> VoterSet:
        return self._raft.machine.voters

    def start(self) -> None:
        self._alarm = self._clock.call_later(WARNING_INTERVAL_MS, self._on_interval)

    def stop(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def check_vote(self) -> None:
        """Raise MetadataError if no leader can ever be elected: the only voter is this node with
        another log directory."""
        voter = self._voters.voters.get(self._local.id)
        if voter is not None and len(self._voters) == 1 and self._local not in self._voters:
            raise MetadataError(
                f"{self._wrong_directory(voter.key)}. It is the only voter, so no other node can"
                " lead"
            )

    def on_voters(self) -> None:
        """Log it once when another log directory has this node's vote."""
        voters = self._voters
        if voters is self._voters_seen:
            return
        self._voters_seen = voters
        taken = voters.voters.get(self._local.id)
        if taken is not None and self._local not in voters:
            logger.error("%s; this node follows without a vote", self._wrong_directory(taken.key))

    def _wrong_directory(self, voter: ReplicaKey) -> str:
        return (
            f"node {self._local.id} is a voter of the metadata quorum with the directory id"
            f" {uuid_to_text(voter.directory_id)}, but {self._config.metadata_log_dir} has"
            f" {uuid_to_text(self._local.directory_id)}. Restore the former log directory, or"
            " remove that voter from the quorum and add this one (kafka-metadata-quorum"
            " remove-controller, add-controller)"
        )

    def _on_interval(self) -> None:
        if not self._raft.has_contact and not self._has_failed():
            logger.warning("no leader of the metadata quorum is known: %s", self._reason())
        self.start()

    def _reason(self) -> str:
        voters = self._voters
        if not voters:
            servers = self._config["controller.quorum.bootstrap.servers"]
            return f"none of controller.quorum.bootstrap.servers ({', '.join(servers)}) knows one"
        reached = self._raft.voters_reached(WARNING_INTERVAL_MS)
        ids = ", ".join(map(str, voters.voters))
        return (
            f"{reached} of {len(voters)} voters ({ids}) can be reached, a leader needs"
            f" {voters.majority}"
        )
