"""MetadataShell: this node's part in the cluster's metadata, whatever its roles.

    run(decide) -> the active controller decides -> append -> commit -> publish -> answer
    from the leader -> append -> commit -> publish

It holds the committed image and tells listeners of every change to it. While this node leads the
quorum, its controller is the active one (`active.py`). What always holds: nothing is published or
answered before it is committed, listeners see changes in log order, and after a failed write or
fsync the shell answers nothing any more, because nobody knows what is on that disk.

Decisions that come while an fsync is under way are appended at once and share the next one, so the
disk sets the pace and no timer lingers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar
from uuid import UUID

from moldau.broker.config import BrokerConfig
from moldau.broker.controller_channel import ControllerNode
from moldau.broker.log.background import Background
from moldau.broker.log.context import LogDirState
from moldau.broker.log.disk import Disk
from moldau.broker.metadata.active import ActiveController, not_active
from moldau.broker.metadata.formatting import default_bootstrap_records
from moldau.broker.metadata.machine.comparison import delta_between, whole_image_delta
from moldau.broker.metadata.machine.config_rules import ConfigRules
from moldau.broker.metadata.machine.controller import Controller
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.features import (
    KRAFT_VERSION,
    LATEST_METADATA_VERSION,
    METADATA_VERSION,
    METADATA_VERSION_NAMES,
    SUPPORTED_FEATURES,
)
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import Endpoint
from moldau.broker.metadata.machine.placement import RandomSource
from moldau.broker.metadata.settings import (
    controller_config,
    controller_listener,
    quorum_settings,
    raft_log_config,
    static_voters,
    voter_endpoints,
)
from moldau.broker.metadata.snapshotter import Snapshotter
from moldau.broker.raft.log import RaftLog
from moldau.broker.raft.machine.batches import MetadataBatch
from moldau.broker.raft.machine.errors import MetadataError
from moldau.broker.raft.machine.voters import ReplicaKey, Voter, VoterSet
from moldau.broker.raft.node import RaftNode
from moldau.broker.raft.service import RaftService
from moldau.broker.raft.snapshots import BOOTSTRAP_FILE, Snapshot, SnapshotId, read_snapshot
from moldau.clock import Alarm, Clock
from moldau.invariant import invariant
from moldau.peers.channel import Transport
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import FeatureLevelRecord
from moldau.wire.uuids import uuid_to_text

R = TypeVar("R")
Listener = Callable[[MetadataDelta, MetadataImage], None]

# How often a node that hears of no leader says so.
COMPLAINT_INTERVAL_MS = 5_000
# What is appended is given so long to become committed before the node lets go of it.
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
        """`directory_id` is that of the metadata log dir; `controller_endpoints` are where this
        node serves as a controller, none if it does not; `on_failure` hears of the first failure,
        after which the node cannot go on."""
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
        self._listeners: list[Listener] = []
        self._leader_listeners: list[Callable[[], None]] = []
        self._failure: BaseException | None = None
        self._stopping = False
        self._complaint: Alarm | None = None
        self._voters_seen: VoterSet | None = None
        self.cluster_id = cluster_id
        self.image = MetadataImage()
        self.offset = -1
        self._next_offset = 0
        # Where the log ended when this process began; whoever registered before is of another life.
        self._loaded_end_offset = 0
        self._raft: RaftNode | None = None
        self._service: RaftService | None = None
        self._active: ActiveController | None = None
        self._snapshotter: Snapshotter | None = None

    # What others ask --------------------------------------------------------------------

    @property
    def raft(self) -> RaftNode:
        invariant(self._raft is not None, "the metadata shell has not been started")
        return self._raft  # type: ignore[return-value]

    @property
    def service(self) -> RaftService:
        """The quorum's RPCs."""
        invariant(self._service is not None, "the metadata shell has not been started")
        return self._service  # type: ignore[return-value]

    @property
    def is_active(self) -> bool:
        """This node's controller is the active one and has written its activation records."""
        return self._active is not None and self._active.leads and not self._stopping

    @property
    def controller(self) -> Controller:
        """For reading; its image may be ahead of the committed one. ApiError NOT_CONTROLLER when
        another is the active one."""
        if self._active is None or not self.is_active:
            raise not_active()
        return self._active.controller

    def controller_node(self) -> ControllerNode | None:
        """The active controller as far as it is known here."""
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

    def subscribe(self, listener: Listener) -> None:
        """Call `listener(delta, image)` for everything committed from now on, in order.

        It hears of the whole image first.
        """
        self._listeners.append(listener)
        if self._raft is not None:
            self._tell(listener, whole_image_delta(self.image))

    def on_leader_changed(self, callback: Callable[[], None]) -> None:
        """Call `callback()` whenever the leader, its epoch or its endpoint is another, or this
        node's controller begins or ends to be the active one."""
        self._leader_listeners.append(callback)

    # Life -------------------------------------------------------------------------------

    async def start(self) -> None:
        """Load what is committed for sure and join the quorum; does not wait for a leader."""
        self._load()
        for listener in self._listeners:
            self._tell(listener, whole_image_delta(self.image))
        self.raft.start()
        self._complain_later()

    async def stop(self) -> None:
        """Resign if leading, after what is appended is committed; let go of the files."""
        if self._raft is None:
            return
        self._stopping = True
        if self._complaint is not None:
            self._complaint.cancel()
            self._complaint = None
        if self._active is not None and self._failure is None:
            await self._drained(self._active)
        if self._snapshotter is not None:
            await self._snapshotter.stop()
        await self.raft.stop()
        if self._active is not None:
            self._active.end(not_active())
        self.raft.log.close(clean=self._failure is None)

    async def _drained(self, active: ActiveController) -> None:
        """Wait for the commits under way, for a bounded time."""
        task = asyncio.get_running_loop().create_task(active.drained())
        alarm = self._clock.call_later(STOP_TIMEOUT_MS, lambda: _cancel(task))
        await asyncio.gather(task, return_exceptions=True)
        alarm.cancel()

    # Deciding ---------------------------------------------------------------------------

    async def run(self, decide: Callable[[Controller], Decision[R]]) -> R:
        """Decide, append, and return the response when it is committed and published.

        ApiError from `decide` comes out as it is; nothing has happened then. NOT_CONTROLLER while
        another controller is the active one, and for what is not committed when one becomes it:
        that may still come to pass.
        """
        response, committed = self._submit(decide)
        await committed
        return response

    def _submit(self, decide: Callable[[Controller], Decision[R]]) -> tuple[R, Awaitable[None]]:
        if self._failure is not None:
            raise _failed(self._failure)
        if self._active is None or self._stopping:
            raise not_active()
        return self._active.submit(decide)

    # What the quorum tells --------------------------------------------------------------

    def on_leader(self, epoch: int, leader_id: int) -> None:
        if leader_id == self._local.id and self.raft.is_leader:
            self._lead(epoch)
        self._tell_leader()

    def _lead(self, epoch: int) -> None:
        """Become the active controller.

        What a former leader appended is part of the log, committed or not: it becomes committed
        with whatever is decided on top of it, or neither does.
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
        for batch in self.raft.batches(self._next_offset):
            records = batch.records[max(0, self._next_offset - batch.base_offset) :]
            base_offset = max(batch.base_offset, self._next_offset)
            controller.replay(records, base_offset=base_offset)
        self._active = ActiveController(
            controller,
            self.raft,
            self._clock,
            epoch=epoch,
            batch_size_max=self._config.metadata.internal_metadata_max_batch_size_in_bytes,
        )
        self._active.begin(self._bootstrap_records(), departed=self._departed(controller.image))
        logger.info("the controller of node %d is active in epoch %d", self._local.id, epoch)

    def _departed(self, image: MetadataImage) -> tuple[int, ...]:
        """This node's own broker, if it registered in a former life of this process."""
        own = image.brokers.get(self._local.id)
        return () if own is None or own.epoch >= self._loaded_end_offset else (own.id,)

    def on_step_down(self, epoch: int) -> None:
        if self._active is not None:
            self._active.end(not_active())
            self._active = None
        self._tell_leader()

    def on_committed(self, batches: Sequence[MetadataBatch]) -> None:
        """Apply and publish, then answer."""
        delta = MetadataDelta()
        for batch in batches:
            self._apply(batch, delta)
        if METADATA_VERSION in delta.features:
            self._check_level(self.image.features.get(METADATA_VERSION))
        if delta:
            for listener in tuple(self._listeners):
                self._tell(listener, delta)
        self.offset = self._next_offset - 1
        if self._active is not None:
            self._active.on_committed(self._next_offset)
        self._look_at_voters()
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
        if self._snapshotter is not None:
            self._snapshotter.on_committed(batch)

    def on_snapshot(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        """This node was far behind: a whole image takes the place of the one it had."""
        old = self.image
        self._take_snapshot(snapshot_id, snapshot)
        self._check_level(self.image.features.get(METADATA_VERSION))
        delta = delta_between(old, self.image)
        for listener in tuple(self._listeners):
            self._tell(listener, delta)
        self.offset = self._next_offset - 1
        self._look_at_voters()

    def on_failure(self, error: BaseException) -> None:
        if self._failure is not None:
            return
        self._failure = error
        if self._active is not None:
            self._active.end(_failed(error))
        if self._on_failure is not None:
            self._on_failure(error)

    def _tell(self, listener: Listener, delta: MetadataDelta) -> None:
        try:
            listener(delta, self.image)
        except Exception:
            # One listener's bug must not keep the others from what is committed.
            logger.exception("a metadata listener failed")

    def _tell_leader(self) -> None:
        for callback in tuple(self._leader_listeners):
            try:
                callback()
            except Exception:
                logger.exception("who follows the metadata leader failed")

    # What an operator should know -------------------------------------------------------

    def _look_at_voters(self) -> None:
        """Say it once when this node's place among the voters is taken by another folder."""
        voters = self.voters
        if voters is self._voters_seen:
            return
        self._voters_seen = voters
        taken = voters.voters.get(self._local.id)
        if taken is not None and self._local not in voters:
            logger.error("%s; it follows without a vote", self._wrong_folder(taken.key))

    def _wrong_folder(self, voter: ReplicaKey) -> str:
        return (
            f"node {self._local.id} is a voter of the metadata quorum with the directory id"
            f" {uuid_to_text(voter.directory_id)}, but {self._config.metadata_log_dir} has"
            f" {uuid_to_text(self._local.directory_id)}. Bring the former folder back, or remove"
            " that voter from the quorum and add this one (kafka-metadata-quorum"
            " remove-controller, add-controller)"
        )

    def _complain_later(self) -> None:
        if not self._stopping:
            self._complaint = self._clock.call_later(COMPLAINT_INTERVAL_MS, self._complain)

    def _complain(self) -> None:
        if not self.raft.has_contact and self._failure is None:
            logger.warning("no leader of the metadata quorum is known: %s", self._who_is_missed())
        self._complain_later()

    def _who_is_missed(self) -> str:
        voters = self.voters
        if not voters:
            servers = self._config["controller.quorum.bootstrap.servers"]
            return f"none of controller.quorum.bootstrap.servers ({', '.join(servers)}) names one"
        heard = self.raft.voters_heard(COMPLAINT_INTERVAL_MS)
        ids = ", ".join(map(str, voters.voters))
        return (
            f"{heard} of {len(voters)} voters ({ids}) can be reached, a leader needs"
            f" {voters.majority}"
        )

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
        local = Voter(key=self._local, endpoints=voter_endpoints(self._endpoints))
        raft = RaftNode(
            log,
            local=local,
            static_voters=static_voters(self._config),
            settings=quorum_settings(self._config, self._endpoints),
            cluster_id=self.cluster_id,
            transport=self._transport,
            clock=self._clock,
            random=self._random,
            listener=self,
        )
        self._raft, self._service = raft, RaftService(raft)
        self._snapshotter = Snapshotter(
            log,
            source=self._snapshot_source,
            clock_ms=self._clock.now_ms,
            max_bytes=metadata.metadata_log_max_record_bytes_between_snapshots,
            max_interval_ms=metadata.metadata_log_max_snapshot_interval_ms,
        )
        self._loaded_end_offset = log.end_offset
        self._next_offset = log.start_offset
        found = log.latest_snapshot()
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
        """Refuse what this version cannot read, or whose owner is another, before changing it."""
        self._check_level(self.image.features.get(METADATA_VERSION))
        for batch in self.raft.batches(self._next_offset):
            for record in batch.records:
                if isinstance(record, FeatureLevelRecord) and record.name == METADATA_VERSION:
                    self._check_level(record.feature_level)
        voter = self.voters.voters.get(self._local.id)
        if voter is not None and len(self.voters) == 1 and self._local not in self.voters:
            raise MetadataError(
                f"{self._wrong_folder(voter.key)}. It is the only voter, so nobody else can lead"
            )
        self._look_at_voters()

    def _check_level(self, level: int | None) -> None:
        if level is not None and level not in SUPPORTED_FEATURES[METADATA_VERSION]:
            raise MetadataError(
                f"{self.raft.log.directory} has metadata.version {level}, but this version of"
                f" Moldau knows levels up to {LATEST_METADATA_VERSION}"
                f" ({METADATA_VERSION_NAMES[LATEST_METADATA_VERSION]}); start it with a newer one"
            )

    def _bootstrap_records(self) -> tuple[Any, ...]:
        path = f"{self._config.metadata_log_dir}/{BOOTSTRAP_FILE}"
        if not self._disk.exists(path):
            return tuple(default_bootstrap_records())
        return read_snapshot(self._disk, path).records

    def _snapshot_source(self) -> tuple[MetadataImage, int, VoterSet] | None:
        """What is committed, with the quorum as it was there; None inside a transaction."""
        if self.image.in_transaction:
            return None
        kraft_version, voters = self.raft.machine.history.at(self._next_offset)
        return self.image.copy(), kraft_version, voters


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()


def _failed(error: BaseException) -> ApiError:
    return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the metadata log has failed: {error}")
