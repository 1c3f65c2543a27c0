"""MetadataShell: runs the controller's decisions through the metadata log and publishes the result.

    run(decide) -> decide on its image -> append -> fsync -> commit -> publish -> answer

Decisions that come while an fsync is under way are appended at once and share the next one, so the
disk sets the pace and no timer lingers. What always holds: nothing is published or answered before
it is committed, listeners see changes in log order, and after a failed write or fsync the shell
answers nothing any more, because nobody knows what is on that disk.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from moldau.broker.config import BrokerConfig
from moldau.broker.log.background import Background
from moldau.broker.log.context import LogDirState
from moldau.broker.log.disk import Disk
from moldau.broker.metadata.config_rules import ConfigRules
from moldau.broker.metadata.controller import Controller, ControllerConfig
from moldau.broker.metadata.decision import RECORDS_PER_BATCH_MAX, Decision
from moldau.broker.metadata.delta import MetadataDelta
from moldau.broker.metadata.features import (
    KRAFT_VERSION,
    LATEST_METADATA_VERSION,
    METADATA_VERSION,
    METADATA_VERSION_NAMES,
    SUPPORTED_FEATURES,
)
from moldau.broker.metadata.formatting import default_bootstrap_records
from moldau.broker.metadata.image import MetadataImage
from moldau.broker.metadata.model import Endpoint, MetadataError
from moldau.broker.metadata.placement import RandomSource
from moldau.broker.metadata.snapshotter import Snapshotter
from moldau.broker.raft.batches import (
    MetadataBatch,
    encode_controls,
    encode_records,
    leader_change,
    quorum_controls,
)
from moldau.broker.raft.events import (
    Appended,
    BecomeLeader,
    CommitUpTo,
    Event,
    PersistElection,
    RequestVotes,
    ShutDown,
    Started,
    StepDown,
    Synced,
)
from moldau.broker.raft.log import RaftLog, RaftLogConfig
from moldau.broker.raft.machine import QuorumMachine
from moldau.broker.raft.snapshots import BOOTSTRAP_FILE, read_snapshot
from moldau.broker.raft.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet
from moldau.invariant import invariant
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import BrokerRegistrationRequest, KRaftVersionRecord, VotersRecord

R = TypeVar("R")
Listener = Callable[[MetadataDelta, MetadataImage], None]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerIdentity:
    """This broker as it registers itself.

    `previous_broker_epoch` is that of the clean-shutdown file, -1 after a crash.
    `controller_endpoints` are where it serves as a controller, empty if it does not.
    """

    broker_id: int
    incarnation_id: UUID
    endpoints: tuple[Endpoint, ...]
    log_dirs: tuple[UUID, ...]
    rack: str | None = None
    previous_broker_epoch: int = -1
    controller_endpoints: tuple[Endpoint, ...] = ()

    def registration(self, cluster_id: str) -> BrokerRegistrationRequest:
        return BrokerRegistrationRequest(
            broker_id=self.broker_id,
            cluster_id=cluster_id,
            incarnation_id=self.incarnation_id,
            listeners=[
                BrokerRegistrationRequest.Listener(
                    name=end.name,
                    host=end.host,
                    port=end.port,
                    security_protocol=end.security_protocol,
                )
                for end in self.endpoints
            ],
            features=[
                BrokerRegistrationRequest.Feature(
                    name=name,
                    min_supported_version=levels.min_version,
                    max_supported_version=levels.max_version,
                )
                for name, levels in SUPPORTED_FEATURES.items()
            ],
            rack=self.rack,
            log_dirs=list(self.log_dirs),
            previous_broker_epoch=self.previous_broker_epoch,
        )


@dataclass(frozen=True, slots=True)
class _Pending:
    """A decision that waits until everything before `end_offset` is committed."""

    batches: list[MetadataBatch]
    end_offset: int
    done: asyncio.Future[None]


class MetadataShell:
    """Start it once; then `run` decisions, read `image`, `subscribe` to changes."""

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
        clock_ms: Callable[[], int],
        dir_state: LogDirState | None = None,
        clean_shutdown: bool = False,
        on_failure: Callable[[BaseException], None] | None = None,
    ) -> None:
        """`directory_id` is that of the metadata log dir; `on_failure` hears of the first failure,
        after which the node cannot go on."""
        self._config = config
        self._rules = rules
        self._random = random
        self._disk = disk
        self._background = background
        self._clock_ms = clock_ms
        self._dir_state = dir_state
        self._clean_shutdown = clean_shutdown
        self._on_failure = on_failure
        self._local = ReplicaKey(config.node_id, directory_id)
        self._listeners: list[Listener] = []
        self._pending: deque[_Pending] = deque()
        self._committer: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._stopped = False
        # Until the whole image has been told once there is nothing a delta could be added to.
        self._publishing = False
        self.cluster_id = cluster_id
        self.image = MetadataImage()
        self.kraft_version = 0
        self.broker_epoch = -1
        self._voters = VoterSet()
        self._raft_log: RaftLog | None = None
        self._machine: QuorumMachine | None = None
        self._controller: Controller | None = None
        self._snapshotter: Snapshotter | None = None

    # What others ask --------------------------------------------------------------------

    @property
    def raft_log(self) -> RaftLog:
        invariant(self._raft_log is not None, "the metadata shell has not been started")
        return self._raft_log  # type: ignore[return-value]

    @property
    def machine(self) -> QuorumMachine:
        invariant(self._machine is not None, "the metadata shell has not been started")
        return self._machine  # type: ignore[return-value]

    @property
    def controller(self) -> Controller:
        """For reading; its image may be ahead of the committed one."""
        invariant(self._controller is not None, "the metadata shell has not been started")
        return self._controller  # type: ignore[return-value]

    @property
    def leader_id(self) -> int:
        return self.machine.election.leader_id

    @property
    def leader_epoch(self) -> int:
        return self.machine.epoch

    @property
    def high_watermark(self) -> int:
        return self.machine.high_watermark

    @property
    def voters(self) -> VoterSet:
        return self._voters

    @property
    def finalized_features(self) -> dict[str, int]:
        """What ApiVersions reports: the image's levels and the quorum's own."""
        features = dict(self.image.features)
        if self.kraft_version > 0:
            features[KRAFT_VERSION] = self.kraft_version
        return features

    def subscribe(self, listener: Listener) -> None:
        """Call `listener(delta, image)` for everything committed from now on, in order.

        A listener that comes after the start first hears of the whole image.
        """
        self._listeners.append(listener)
        if self._publishing:
            self._tell(listener, _whole_image_delta(self.image))

    # Life -------------------------------------------------------------------------------

    async def start(self, identity: BrokerIdentity | None = None) -> None:
        """Load, become the leader, write what a new cluster needs, register this broker."""
        self._load()
        self._step(
            Started(end_offset=self.raft_log.end_offset, last_epoch=self.raft_log.last_epoch)
        )
        if not self.machine.is_leader:
            raise MetadataError(
                f"node {self._local.id} is not the only voter of the metadata quorum"
                f" (voters: {sorted(self._voters.voters)}); quorums of several nodes are not"
                " supported yet. Format the folder with --standalone, or set"
                f" controller.quorum.voters={self._local.id}@host:port"
            )
        # All of it is appended before the first fsync returns, so the start costs one.
        _, started = self._submit(lambda controller: controller.activate(self._bootstrap_records()))
        if identity is not None:
            started = self._register(identity)
        await started
        self._publishing = True
        self._publish(_whole_image_delta(self.image))

    async def register(self, identity: BrokerIdentity) -> int:
        """Register this broker as a new incarnation and unfence it; its broker epoch."""
        await self._register(identity)
        return self.broker_epoch

    def _register(self, identity: BrokerIdentity) -> Awaitable[None]:
        if identity.controller_endpoints:
            self._submit(
                lambda controller: controller.register_controller(
                    incarnation_id=identity.incarnation_id,
                    endpoints=identity.controller_endpoints,
                )
            )
        request = identity.registration(self.cluster_id)
        response, _ = self._submit(lambda controller: controller.register_broker(request))
        self.broker_epoch = response.broker_epoch
        _, unfenced = self._submit(
            lambda controller: controller.unfence_broker(
                broker_id=identity.broker_id, broker_epoch=response.broker_epoch
            )
        )
        return unfenced

    async def stop(self) -> None:
        """Finish what is appended, then let go of the files."""
        if self._raft_log is None:
            return
        self._stopped = True
        if self._committer is not None:
            await asyncio.gather(self._committer, return_exceptions=True)
        if self._snapshotter is not None:
            await self._snapshotter.stop()
        self._step(ShutDown())
        self.raft_log.close(clean=self._failure is None)

    # Deciding ---------------------------------------------------------------------------

    async def run(self, decide: Callable[[Controller], Decision[R]]) -> R:
        """Decide, append, and return the response when it is committed and published.

        ApiError from `decide` comes out as it is; nothing has happened then.
        """
        response, committed = self._submit(decide)
        await committed
        return response

    def _submit(self, decide: Callable[[Controller], Decision[R]]) -> tuple[R, Awaitable[None]]:
        """Decide and append; the response is for the client once the awaitable is done."""
        self._check_running()
        decision = decide(self.controller)
        batches = self._append(decision)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Even without records of its own an answer may speak of what is not committed yet.
        end_offset = self.raft_log.end_offset
        if end_offset <= self.machine.high_watermark:
            done.set_result(None)
            return decision.response, done
        self._pending.append(_Pending(batches, end_offset, done))
        if self._committer is None:
            self._committer = asyncio.get_running_loop().create_task(self._sync_appended())
        # Shielded: a client that goes away must not undo what is in the log.
        return decision.response, asyncio.shield(done)

    def _append(self, decision: Decision[Any]) -> list[MetadataBatch]:
        if not decision.records:
            return []
        batches, encoded = self._encode(decision)
        try:
            for batch, data in zip(batches, encoded, strict=True):
                self.raft_log.append(data, epoch=batch.epoch, now_ms=batch.append_time_ms)
                self._step(Appended(batch.next_offset))
                self.controller.replay(batch.records, base_offset=batch.base_offset)
        except Exception as error:
            self._fail(error)
            raise
        return batches

    def _encode(self, decision: Decision[Any]) -> tuple[list[MetadataBatch], list[bytes]]:
        """Everything that can go wrong without harm goes wrong here, before the log changes."""
        now_ms = self._clock_ms()
        offset = self.raft_log.end_offset
        size_max = self._config.metadata.internal_metadata_max_batch_size_in_bytes
        batches: list[MetadataBatch] = []
        encoded: list[bytes] = []
        for records in _batches_of(decision):
            data = encode_records(
                records,
                base_offset=offset,
                epoch=self.machine.epoch,
                now_ms=now_ms,
                metadata_version=self.controller.image.metadata_version,
            )
            if len(data) > size_max:
                raise ApiError(
                    ErrorCode.POLICY_VIOLATION,
                    "Unable to perform excessively large batch operation.",
                )
            batches.append(
                MetadataBatch(
                    base_offset=offset,
                    next_offset=offset + len(records),
                    epoch=self.machine.epoch,
                    append_time_ms=now_ms,
                    size=len(data),
                    controls=(),
                    records=records,
                )
            )
            encoded.append(data)
            offset += len(records)
        return batches, encoded

    async def _sync_appended(self) -> None:
        synced = -1
        try:
            while synced < self.raft_log.end_offset:
                end_offset = self.raft_log.end_offset
                await self.raft_log.sync(end_offset, now_ms=self._clock_ms())
                synced = end_offset
                self._step(Synced(replica=self._local, end_offset=synced))
        except Exception as error:
            self._fail(error)
        finally:
            self._committer = None

    def _on_committed(self, offset: int) -> None:
        """Apply and publish everything before `offset`, then answer."""
        self.raft_log.commit(offset)
        delta = MetadataDelta()
        answered: list[asyncio.Future[None]] = []
        while self._pending and self._pending[0].end_offset <= offset:
            pending = self._pending.popleft()
            for batch in pending.batches:
                self.image.replay_all(batch.records, delta)
                if self._snapshotter is not None:
                    self._snapshotter.on_committed(batch)
            answered.append(pending.done)
        if delta and self._publishing:
            self._publish(delta)
        for future in answered:
            if not future.done():
                future.set_result(None)
        if self._snapshotter is not None:
            self._snapshotter.maybe_start()

    def _publish(self, delta: MetadataDelta) -> None:
        for listener in self._listeners:
            self._tell(listener, delta)

    def _tell(self, listener: Listener, delta: MetadataDelta) -> None:
        try:
            listener(delta, self.image)
        except Exception:
            # One listener's bug must not keep the others from what is committed.
            logger.exception("a metadata listener failed")

    def _check_running(self) -> None:
        if self._failure is not None:
            raise ApiError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"the metadata log has failed: {self._failure}"
            )
        if self._stopped or self._machine is None or not self._machine.is_leader:
            raise ApiError(ErrorCode.NOT_CONTROLLER, "this controller is not active")

    def _fail(self, error: BaseException) -> None:
        if self._failure is not None:
            return
        self._failure = error
        logger.critical("the metadata log has failed: %s", error)
        failure = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the metadata log has failed: {error}")
        while self._pending:
            done = self._pending.popleft().done
            if not done.done():
                done.set_exception(failure)
        if self._on_failure is not None:
            self._on_failure(error)

    # The quorum -------------------------------------------------------------------------

    def _step(self, event: Event) -> None:
        for effect in self.machine.step(event):
            match effect:
                case PersistElection(election):
                    self.raft_log.save_election(
                        election, kraft_version=self.kraft_version, voters=self._voters
                    )
                case BecomeLeader():
                    self._on_become_leader(effect)
                case CommitUpTo(offset):
                    self._on_committed(offset)
                case StepDown() | RequestVotes():
                    pass

    def _on_become_leader(self, effect: BecomeLeader) -> None:
        log = self.raft_log
        now_ms = self._clock_ms()
        controls: list[Any] = [leader_change(self._local.id, effect.voters, effect.granting)]
        if log.end_offset == 0:
            # The log itself says who the voters are from its first batch on.
            controls += quorum_controls(self.kraft_version, self._voters)
        data = encode_controls(
            controls, base_offset=log.end_offset, epoch=effect.epoch, now_ms=now_ms
        )
        log.append(data, epoch=effect.epoch, now_ms=now_ms)
        self.controller.skip_to(log.end_offset)
        self.machine.step(Appended(log.end_offset))
        logger.info("leading the metadata quorum in epoch %d", effect.epoch)

    # Loading ----------------------------------------------------------------------------

    def _load(self) -> None:
        metadata = self._config.metadata
        self._raft_log = log = RaftLog.open(
            metadata.metadata_log_dir,
            disk=self._disk,
            background=self._background,
            config=RaftLogConfig(
                log_segment_bytes=metadata.internal_metadata_log_segment_bytes
                or metadata.metadata_log_segment_bytes,
                log_segment_ms=metadata.metadata_log_segment_ms,
                max_retention_bytes=metadata.metadata_max_retention_bytes,
                max_retention_ms=metadata.metadata_max_retention_ms,
            ),
            now_ms=self._clock_ms(),
            clean_shutdown=self._clean_shutdown,
            dir_state=self._dir_state,
        )
        self._voters = self._static_voters()
        self._snapshotter = Snapshotter(
            log,
            source=self._snapshot_source,
            clock_ms=self._clock_ms,
            max_bytes=metadata.metadata_log_max_record_bytes_between_snapshots,
            max_interval_ms=metadata.metadata_log_max_snapshot_interval_ms,
        )
        offset = self._load_snapshot(log)
        for batch in log.read(offset):
            self._load_batch(batch, offset)
        self._check_metadata_version()
        self._machine = QuorumMachine(self._local, self._voters, log.load_election())
        # Loaded but not committed yet: a single voter's election commits all of it at once, and
        # only then is anything published.
        self._controller = Controller(
            self._controller_config(),
            self._rules,
            self._random,
            self.image.copy(),
            next_offset=log.end_offset,
        )

    def _load_snapshot(self, log: RaftLog) -> int:
        found = log.latest_snapshot()
        if found is None:
            return log.start_offset
        snapshot_id, snapshot = found
        self.image.replay_all(snapshot.records)
        self.kraft_version = snapshot.kraft_version
        if snapshot.voters is not None:
            self._voters = snapshot.voters
        if self._snapshotter is not None:
            self._snapshotter.on_loaded(snapshot_id, snapshot.last_contained_log_timestamp)
        return snapshot_id.end_offset

    def _load_batch(self, batch: MetadataBatch, from_offset: int) -> None:
        skipped = max(0, from_offset - batch.base_offset)
        try:
            self.image.replay_all(batch.records[skipped:])
        except MetadataError as error:
            raise MetadataError(
                f"{self.raft_log.directory}: batch at offset {batch.base_offset}: {error}"
            ) from error
        for control in batch.controls:
            if isinstance(control, KRaftVersionRecord):
                self.kraft_version = control.kraft_version
            elif isinstance(control, VotersRecord):
                self._voters = VoterSet.from_record(control)
        if self._snapshotter is not None:
            self._snapshotter.on_committed(batch)

    def _check_metadata_version(self) -> None:
        level = self.image.features.get(METADATA_VERSION)
        if level is not None and level not in SUPPORTED_FEATURES[METADATA_VERSION]:
            raise MetadataError(
                f"{self.raft_log.directory} has metadata.version {level}, but this version of"
                f" Moldau knows levels up to {LATEST_METADATA_VERSION}"
                f" ({METADATA_VERSION_NAMES[LATEST_METADATA_VERSION]}); start it with a newer one"
            )

    def _static_voters(self) -> VoterSet:
        configured = self._config.quorum.controller_quorum_voters
        name = (self._config.controller_listener_names or ("",))[0]
        return VoterSet.of(
            Voter(
                key=ReplicaKey(item.node_id),
                endpoints=(VoterEndpoint(name=name, host=item.host, port=item.port),),
            )
            for item in configured
        )

    def _controller_config(self) -> ControllerConfig:
        topics = self._config.topics
        return ControllerConfig(
            node_id=self._local.id,
            cluster_id=self.cluster_id,
            num_partitions=topics.num_partitions,
            default_replication_factor=topics.default_replication_factor,
            delete_topic_enable=topics.delete_topic_enable,
            min_insync_replicas=topics.min_insync_replicas,
            unclean_leader_election_enable=topics.unclean_leader_election_enable,
        )

    def _bootstrap_records(self) -> tuple[Any, ...]:
        path = f"{self._config.metadata.metadata_log_dir}/{BOOTSTRAP_FILE}"
        if not self._disk.exists(path):
            return tuple(default_bootstrap_records())
        return read_snapshot(self._disk, path).records

    def _snapshot_source(self) -> tuple[MetadataImage, int, VoterSet]:
        return self.image.copy(), self.kraft_version, self._voters


def _batches_of(decision: Decision[Any]) -> Iterator[tuple[Any, ...]]:
    records = decision.records
    for start in range(0, len(records), RECORDS_PER_BATCH_MAX):
        yield records[start : start + RECORDS_PER_BATCH_MAX]


def _whole_image_delta(image: MetadataImage) -> MetadataDelta:
    """Everything in `image`, told to a listener that knows nothing yet."""
    delta = MetadataDelta(from_snapshot=True)
    for topic in image.topics_by_id.values():
        delta.on_topic_created(topic)
        for index in topic.partitions:
            delta.on_partition_changed(topic, index, None)
    for broker_id in image.brokers:
        delta.on_broker_changed(broker_id, None)
    for resource, values in image.configs.items():
        for name in values:
            delta.on_config_changed(resource, name)
    delta.features.update(image.features)
    delta.producer_ids_changed = delta.quotas_changed = delta.acls_changed = True
    delta.scram_changed = delta.tokens_changed = delta.controllers_changed = True
    return delta
