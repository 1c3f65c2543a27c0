"""MetadataShell: this node's part in the cluster's metadata, whatever its roles.

    run(decide) -> the active controller decides -> append -> commit -> publish -> respond
    from the leader -> append -> commit -> publish

It holds the committed image and publishes every change to it. While this node leads the quorum, its
controller is the active one (`active.py`). Invariants: nothing is published or returned before it
is committed; listeners see changes in log order; after a failed write or fsync the shell returns
only errors, because the content of that disk is unknown.

Decisions that arrive while an fsync is in progress are appended at once and share the next one, so
the disk sets the pace and there is no linger timer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Concatenate, ParamSpec, TypeVar
from uuid import UUID

from moldau.broker.config import BrokerConfig
from moldau.broker.controller_channel import ControllerNode
from moldau.broker.log.background import Background
from moldau.broker.log.context import LogDirState
from moldau.broker.log.disk import Disk
from moldau.broker.metadata.active import ActiveController, not_active, replay_uncommitted
from moldau.broker.metadata.formatting import bootstrap_records
from moldau.broker.metadata.machine.comparison import delta_between, whole_image_delta
from moldau.broker.metadata.machine.config_rules import ConfigRules
from moldau.broker.metadata.machine.controller import Controller
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.features import (
    KRAFT_VERSION,
    METADATA_VERSION,
    check_metadata_version,
)
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import Endpoint
from moldau.broker.metadata.machine.placement import RandomSource
from moldau.broker.metadata.machine.view import ControllerView
from moldau.broker.metadata.publication import Listener, Publication
from moldau.broker.metadata.quorum_watch import QuorumWatch
from moldau.broker.metadata.settings import (
    controller_config,
    controller_listener,
    quorum_settings,
    raft_log_config,
    static_voters,
    voter_endpoints,
)
from moldau.broker.metadata.snapshotter import Snapshotter
from moldau.broker.metrics.timing import timed
from moldau.broker.raft.log import RaftLog
from moldau.broker.raft.machine.batches import MetadataBatch
from moldau.broker.raft.machine.errors import MetadataError
from moldau.broker.raft.machine.voters import ReplicaKey, Voter, VoterSet
from moldau.broker.raft.node import RaftNode
from moldau.broker.raft.service import RaftService
from moldau.broker.raft.snapshots import Snapshot, SnapshotId
from moldau.clock import Clock
from moldau.invariant import present
from moldau.peers.channel import Transport
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import FeatureLevelRecord

P = ParamSpec("P")
R = TypeVar("R")

# How long a stop waits until what is appended is committed.
STOP_TIMEOUT_MS = 1_000

logger = logging.getLogger(__name__)


class MetadataShell:
    """Start it once; then read `image`, `subscribe` to changes, and `run` decisions if active."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        cluster_id: str,
        directory_id: UUID,
        rules: ConfigRules,
        random: RandomSource,
        disk: Disk,
        background: Background,
        clock: Clock,
        transport: Transport,
        controller_endpoints: tuple[Endpoint, ...],
        dir_state: LogDirState | None = None,
        clean_shutdown: bool = False,
        on_failure: Callable[[BaseException], None] | None = None,
    ) -> None:
        """`directory_id` is that of the metadata log directory; `controller_endpoints` are this
        node's listeners as a controller, empty if it is none; `on_failure` is called with the first
        failure, after which the node cannot continue."""
        self._config = config
        self._rules = rules
        self._random = random
        self._disk = disk
        self._background = background
        self._clock = clock
        self._transport = transport
        self._endpoints = controller_endpoints
        self._dir_state = dir_state
        self._clean_shutdown = clean_shutdown
        self._on_failure = on_failure
        self._local = ReplicaKey(config.node_id, directory_id)
        self.publication = self._publication = Publication()
        self._failure: BaseException | None = None
        self._stopping = False
        self.cluster_id = cluster_id
        self.image = MetadataImage()
        self.offset = -1
        self._next_offset = 0
        # Where the log ended at start; earlier registrations are of earlier processes.
        self._loaded_end_offset = 0
        self._raft: RaftNode | None = None
        self._service: RaftService | None = None
        self._active: ActiveController | None = None
        self._snapshotter: Snapshotter | None = None
        # For metrics: when the last applied record was written, and what decisions take in ms.
        self.applied_time_ms = 0
        self.on_decided: Callable[[float], None] | None = None
        self._quorum_watch: QuorumWatch | None = None

    # Reading ----------------------------------------------------------------------------

    @property
    def raft(self) -> RaftNode:
        return present(self._raft, "the metadata shell has not been started")

    @property
    def service(self) -> RaftService:
        """The quorum's RPCs."""
        return present(self._service, "the metadata shell has not been started")

    @property
    def _watch(self) -> QuorumWatch:
        return present(self._quorum_watch, "the metadata shell has not been started")

    @property
    def is_active(self) -> bool:
        """This node's controller is the active one and has written its activation records."""
        return self._active is not None and self._active.leads and not self._stopping

    @property
    def controller(self) -> Controller:
        """For reading; its image may be ahead of the committed one. Raises ApiError NOT_CONTROLLER
        while another controller is the active one."""
        if self._active is None or not self.is_active:
            raise not_active()
        return self._active.controller

    def controller_node(self) -> ControllerNode | None:
        """The active controller, if this node knows it."""
        name = controller_listener(self._config)
        if self.leader_id == self._local.id:
            own = next((end for end in self._endpoints if end.name == name), None)
            if own is None or not self.is_active:
                return None
            return ControllerNode(self._local.id, own.host, own.port, name)
        peer = self.raft.leader_address()
        return None if peer is None else ControllerNode(peer.id, peer.host, peer.port, name)

    @property
    def leader_id(self) -> int:
        return self.raft.leader_id

    @property
    def leader_epoch(self) -> int:
        return self.raft.epoch

    @property
    def high_watermark(self) -> int:
        return self.raft.high_watermark

    @property
    def voters(self) -> VoterSet:
        return self.raft.machine.voters

    @property
    def kraft_version(self) -> int:
        return self.raft.machine.history.kraft_version

    @property
    def finalized_features(self) -> dict[str, int]:
        """What ApiVersions reports: the image's levels and the quorum's own."""
        features = dict(self.image.features)
        if self.kraft_version > 0:
            features[KRAFT_VERSION] = self.kraft_version
        return features

    def subscribe(self, *listeners: Listener) -> None:
        """Call `listener(delta, image)` for everything committed from now on, in order.

        Each is called with the whole image first. A change goes to the listeners in the order in
        which they subscribed.
        """
        self._publication.add(*listeners)
        if self._raft is not None:
            self._publication.publish_to(listeners, whole_image_delta(self.image), self.image)

    def on_leader_changed(self, callback: Callable[[], None]) -> None:
        """Call `callback()` whenever the leader, its epoch or its endpoint changes, or this node's
        controller becomes active or ceases to be."""
        self._publication.add_for_leader(callback)

    # Start and stop-------------------------------------------------------------------------

    async def start(self) -> None:
        """Load what is known to be committed and join the quorum; does not wait for a leader."""
        self._load()
        self._publication.publish(whole_image_delta(self.image), self.image)
        self.raft.start()
        self._watch.start()

    async def stop(self) -> None:
        """Resign if leading, after what is appended is committed; close the files."""
        if self._raft is None:
            return
        self._stopping = True
        self._watch.stop()
        if self._active is not None and self._failure is None:
            await self._active.drained(STOP_TIMEOUT_MS)
        if self._snapshotter is not None:
            await self._snapshotter.stop(write_last=self._failure is None)
        await self.raft.stop()
        if self._active is not None:
            self._active.end(not_active())
        self.raft.log.close(clean=self._failure is None)

    # Deciding ---------------------------------------------------------------------------

    async def run(
        self,
        decide: Callable[Concatenate[ControllerView, P], Decision[R]],
        *args: P.args,
        **options: P.kwargs,
    ) -> R:
        """Call `decide` with the controller and these arguments, append the records, and return the
        response when they are committed and published.

        An ApiError of `decide` is raised as it is, and nothing has been appended. NOT_CONTROLLER
        is raised while another controller is the active one, and for records that are not committed
        when another becomes active: these may still become committed.
        """
        if self._failure is not None:
            raise _failed(self._failure)
        if self._active is None or self._stopping:
            raise not_active()
        with timed(self.on_decided):
            response, committed = self._active.submit(decide, *args, **options)
        await committed
        return response

    # Events of the quorum ---------------------------------------------------------------

    def on_leader(self, epoch: int, leader_id: int) -> None:
        if leader_id == self._local.id and self.raft.is_leader:
            self._lead(epoch)
        self._publication.publish_leader()

    def _lead(self, epoch: int) -> None:
        """Become the active controller.

        What a previous leader appended is part of the log, committed or not: it becomes committed
        together with the decisions that follow it, or neither does.
        """
        if self._active is not None:
            self._active.end(not_active())
        controller = Controller(
            controller_config(
                self._config, cluster_id=self.cluster_id, voter_ids=tuple(self.voters.voters)
            ),
            self._rules,
            self._random,
            self.image.copy(),
            next_offset=self._next_offset,
        )
        replay_uncommitted(controller, self.raft)
        self._active = ActiveController(
            controller,
            self.raft,
            self._clock,
            epoch=epoch,
            batch_size_max=self._config.metadata.internal_metadata_max_batch_size_in_bytes,
        )
        self._active.begin(
            bootstrap_records(self._disk, self._config.metadata_log_dir),
            departed=_departed(controller.image, self._local.id, self._loaded_end_offset),
        )
        logger.info("the controller of node %d is active in epoch %d", self._local.id, epoch)

    def on_step_down(self, epoch: int) -> None:
        if self._active is not None:
            self._active.end(not_active())
            self._active = None
        self._publication.publish_leader()

    def on_committed(self, batches: Sequence[MetadataBatch]) -> None:
        """Apply and publish, then release the responses."""
        delta = MetadataDelta()
        for batch in batches:
            self._apply(batch, delta)
        if METADATA_VERSION in delta.features:
            check_metadata_version(
                self.raft.log.directory, self.image.features.get(METADATA_VERSION)
            )
        if delta:
            self._publication.publish(delta, self.image)
        self.offset = self._next_offset - 1
        if self._active is not None:
            self._active.on_committed(self._next_offset)
        self._watch.on_voters()
        if self._snapshotter is not None and not self._stopping:
            self._snapshotter.maybe_start()

    def _apply(self, batch: MetadataBatch, delta: MetadataDelta) -> None:
        skipped = max(0, self._next_offset - batch.base_offset)
        try:
            self.image.replay_all(batch.records[skipped:], delta)
        except MetadataError as error:
            raise MetadataError(
                f"{self.raft.log.directory}: batch at offset {batch.base_offset}: {error}"
            ) from error
        self._next_offset = batch.next_offset
        self.applied_time_ms = batch.append_time_ms
        if self._snapshotter is not None:
            self._snapshotter.on_committed(batch)

    def on_snapshot(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        """Replace the image: this node was so far behind that the leader sent a snapshot."""
        old = self.image
        self._take_snapshot(snapshot_id, snapshot)
        check_metadata_version(self.raft.log.directory, self.image.features.get(METADATA_VERSION))
        delta = delta_between(old, self.image)
        self._publication.publish(delta, self.image)
        self.offset = self._next_offset - 1
        self._watch.on_voters()

    def on_failure(self, error: BaseException) -> None:
        if self._failure is not None:
            return
        self._failure = error
        if self._active is not None:
            self._active.end(_failed(error))
        if self._on_failure is not None:
            self._on_failure(error)

    # Loading ----------------------------------------------------------------------------

    def _load(self) -> None:
        metadata = self._config.metadata
        log = RaftLog.open(
            self._config.metadata_log_dir,
            disk=self._disk,
            background=self._background,
            config=raft_log_config(self._config),
            now_ms=self._clock.now_ms(),
            clean_shutdown=self._clean_shutdown,
            dir_state=self._dir_state,
        )
        found = log.latest_snapshot()
        local = Voter(key=self._local, endpoints=voter_endpoints(self._endpoints))
        raft = RaftNode(
            log,
            local=local,
            static_voters=static_voters(self._config),
            newest_snapshot=found,
            settings=quorum_settings(self._config, self._endpoints),
            cluster_id=self.cluster_id,
            transport=self._transport,
            clock=self._clock,
            random=self._random,
            listener=self,
        )
        self._raft, self._service = raft, RaftService(raft)
        self._quorum_watch = QuorumWatch(
            raft,
            self._clock,
            self._config,
            self._local,
            has_failed=lambda: self._failure is not None,
        )
        self._snapshotter = Snapshotter(
            log,
            source=self._snapshot_source,
            clock=self._clock,
            max_bytes=metadata.metadata_log_max_record_bytes_between_snapshots,
            max_interval_ms=metadata.metadata_log_max_snapshot_interval_ms,
        )
        self._loaded_end_offset = log.end_offset
        self._next_offset = log.start_offset
        if found is not None:
            self._take_snapshot(*found)
        self.offset = self._next_offset - 1
        self._check_loaded()

    def _take_snapshot(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        image = MetadataImage()
        image.replay_all(snapshot.records)
        self.image = image
        self._next_offset = snapshot_id.end_offset
        if self._snapshotter is not None:
            self._snapshotter.on_loaded(snapshot_id, snapshot.last_contained_log_timestamp)

    def _check_loaded(self) -> None:
        """Reject a log that this version cannot read, or of another voter, before changing it."""
        check_metadata_version(self.raft.log.directory, self.image.features.get(METADATA_VERSION))
        for batch in self.raft.batches(self._next_offset):
            for record in batch.records:
                if isinstance(record, FeatureLevelRecord) and record.name == METADATA_VERSION:
                    check_metadata_version(self.raft.log.directory, record.feature_level)
        self._watch.check_vote()
        self._watch.on_voters()

    def _snapshot_source(self) -> tuple[MetadataImage, int, VoterSet] | None:
        """What is committed, with the quorum at that offset; None inside a transaction."""
        if self.image.in_transaction:
            return None
        kraft_version, voters = self.raft.machine.history.at(self._next_offset)
        return self.image.copy(), kraft_version, voters


def _failed(error: BaseException) -> ApiError:
    return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the metadata log has failed: {error}")


def _departed(image: MetadataImage, node_id: int, loaded_end_offset: int) -> tuple[int, ...]:
    """This node's own broker, if an earlier process registered it."""
    own = image.brokers.get(node_id)
    return () if own is None or own.epoch >= loaded_end_offset else (own.id,)
