"""The settings of the metadata quorum."""

from __future__ import annotations

from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.broker.raft.machine.rpcs import Peer
from moldau.config.section import Section


class QuorumSettings(Section, keys=BROKER_KEYS, prefix="controller.quorum."):
    """Fields named after controller.quorum.*; `listener_name` is that of the controllers."""

    listener_name: str = "CONTROLLER"
    election_timeout_ms: int
    fetch_timeout_ms: int
    election_backoff_max_ms: int
    request_timeout_ms: int
    retry_backoff_ms: int
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int
    fetch_snapshot_max_bytes: int
    auto_join_enable: bool
    can_become_voter: bool = True
    bootstrap: tuple[Peer, ...] = ()
