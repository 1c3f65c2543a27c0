"""A node's logs through one seed: partitions are used in every way while things go wrong.

Each step is drawn by weight and changes the real node and the model alike; then the invariants
are checked. Steps that a crash or a failed folder interrupts leave the model in doubt between
what was and what was about to be, which the next restart settles.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from moldau.broker.config import LogConfig
from moldau.broker.log.context import AppendInfo, AppendOrigin, LogDirFailure
from moldau.broker.log.log import Log
from moldau.broker.log.moves import copy_step
from moldau.sim.disk import Stopped
from moldau.sim.logs.checks import Checker
from moldau.sim.logs.model import CLEAN, KILL, POWER, ModelBatch, ModelPartition
from moldau.sim.logs.node import Node
from moldau.sim.logs.restarts import CLEAN_WITHOUT_POWER, Restarts
from moldau.sim.logs.workload import Workload, random_config, unstamped
from moldau.sim.world import Invariant, Violation, World, require
from moldau.times import WallMs
from moldau.wire.errors import ApiError

STEPS_MIN = 60
STEPS_MAX = 160
# Longer than any system call in the background takes here, checkpoints that wait included.
SETTLE_S = 25.0

Step = Callable[[], Awaitable[None] | None]


class LogScenario:
    def __init__(self, world: World) -> None:
        self.world = world
        self._random = world.random
        self._workload = Workload(world.random)
        self._checker = Checker(world.random)
        self._paths = [f"/data{n}" for n in range(1, self._random.randint(2, 4))]
        self._partitions: dict[tuple[str, int], ModelPartition] = {}
        self._configs: dict[str, LogConfig] = {}
        self._broken: set[str] = set()
        self._crash = KILL
        self._restarts = Restarts(world, self._checker, self._partitions, self._configs)
        self.node = Node(world, self._paths)
        steps: list[tuple[float, Step]] = [
            (40, self._append),
            (4, self._repeat),
            (5, self._read),
            (4, self._move_high_watermark),
            (3, self._roll),
            (7, self._flush),
            (2, self._flush_now),
            (2, self._flush_overdue),
            (4, self._checkpoint),
            (3, self._retain),
            (3, self._delete_records),
            (3, self._truncate),
            (0.5, self._truncate_fully),
            (2, self._new_leader_epoch),
            (4, self._move),
            (3, self._clean),
            (1, self._recreate),
            (1, self._reconfigure),
            (2, self._remove_files),
            (4, self._wait),
            (0.6, self._fill_folder),
            (0.6, self._break_folder),
            (2, self._arm_crash),
            (1.5, self._stop_cleanly),
            (1, self._kill),
            (2, self._lose_power),
        ]
        self._weights = [weight for weight, _ in steps]
        self._steps = [step for _, step in steps]

    # Running --------------------------------------------------------------------------

    async def run(self) -> None:
        self.node.start(self._config_for)
        for number in range(self._random.randint(1, 4)):
            self._create(f"topic{number}", 0)
        for _ in range(self._random.randint(STEPS_MIN, STEPS_MAX)):
            self.world.steps += 1
            await self._step()
        self._crash = POWER
        await self._restart("the end")

    async def _step(self) -> None:
        step = self._random.choices(self._steps, self._weights)[0]
        try:
            outcome = step()
            if outcome is not None:
                await outcome
            # Callbacks and background work come in between steps.
            await asyncio.sleep(self._random.choice((0.0, 0.0, 0.001, 0.01, 1.0)))
        except Stopped:
            pass
        if not self.node.alive:
            await self._restart("stopped in the middle")
            return
        self._check()

    def _check(self) -> None:
        self.world.check_errors()
        self.node.check_tasks()
        for directory in self.node.manager.offline_dirs:
            require(
                directory.path in self._broken,
                Invariant.FAILURES_CONTAINED,
                lambda d=directory: f"{d.path} went offline: {d.failure}",  # type: ignore[misc]
            )
        for partition in self._partitions.values():
            log = self._log(partition)
            if log is not None and not log.offline:
                self._guarded(partition, lambda p=partition, log=log: self._look(p, log))  # type: ignore[misc]

    def _look(self, partition: ModelPartition, log: Log) -> None:
        self._checker.check_offsets(partition, log)
        if self._random.random() < 0.3:
            self._checker.check(partition, log, thorough=self._random.random() < 0.1)

    def _config_for(self, topic: str) -> LogConfig:
        return self._configs[topic]

    def _log(self, partition: ModelPartition) -> Log | None:
        return self.node.manager.get_log(partition.topic, partition.index)

    def _pick(self) -> tuple[ModelPartition, Log] | None:
        """Some partition that is there to be used."""
        if not self._partitions:
            return None
        partition = self._random.choice(list(self._partitions.values()))
        log = self._log(partition)
        if log is None or partition.offline:
            return None
        if log.offline:
            self._expect_refusal(partition, log)
            return None
        return partition, log

    def _expect_refusal(self, partition: ModelPartition, log: Log) -> None:
        try:
            log.read(log.log_start_offset, 1, upper_offset=log.log_end_offset, min_one_batch=False)
        except LogDirFailure:
            return
        raise Violation(Invariant.FAILURES_CONTAINED, f"{partition.name} reads a failed folder")

    def _guarded(
        self,
        partition: ModelPartition,
        operation: Callable[[], object],
        in_doubt: Sequence[list[ModelBatch]] = (),
    ) -> bool:
        """Run it; False when a failed folder kept it from ending, with the outcome in doubt."""
        try:
            operation()
        except Stopped:
            partition.in_doubt += in_doubt
            raise
        except LogDirFailure as failure:
            partition.in_doubt += in_doubt
            told = f"{partition.name}: {failure.message}"
            require(failure.directory in self._broken, Invariant.FAILURES_CONTAINED, lambda: told)
            self.world.note(told)
            return False
        return True

    # Appending ------------------------------------------------------------------------

    def _append(self) -> None:
        picked = self._pick()
        if picked is None:
            return
        partition, log = picked
        kind = self._random.choice(("plain", "plain", "follower", "producer", "txn", "txn"))
        now_ms = self.world.now_ms()
        if kind == "follower":
            self._append_as_follower(partition, log, now_ms)
            return
        if kind == "plain":
            batch = self._workload.plain(partition, now_ms, partition.end)
        elif kind == "producer":
            batch = self._workload.idempotent(partition, now_ms, log.producers.entries)
        else:
            marker = self._workload.marker(partition, now_ms) if self.world.chance(0.4) else None
            batch = marker or self._workload.transactional(partition, now_ms, log.producers.entries)
        self._append_as_leader(partition, log, batch)

    def _append_as_leader(self, partition: ModelPartition, log: Log, batch: ModelBatch) -> None:
        now_ms = self.world.now_ms()
        origin = AppendOrigin.CLIENT if batch.control is None else AppendOrigin.COORDINATOR
        self.world.note(
            f"{partition.name}: append {batch.control or 'data'} {batch.base_offset}.."
            f"{batch.last_offset} producer {batch.producer_id} sequence {batch.base_sequence}"
        )
        infos: list[AppendInfo] = []

        def append() -> None:
            infos.append(
                log.append_as_leader(
                    unstamped(batch), leader_epoch=partition.epoch, now_ms=now_ms, origin=origin
                )
            )

        try:
            done = self._guarded(partition, append, [[*partition.batches, batch]])
        except ApiError as error:
            raise Violation(
                Invariant.PRODUCERS_KNOWN, f"{partition.name}: refused: {error.message}"
            ) from error
        if not done:
            return
        info = infos[0]
        require(
            not info.duplicate
            and (info.base_offset, info.last_offset) == (batch.base_offset, batch.last_offset),
            Invariant.PRODUCERS_KNOWN,
            lambda: f"{partition.name}: {info} for the batch at {batch.base_offset}",
        )
        partition.append(batch)
        self._appended(partition, log, info)

    def _appended(self, partition: ModelPartition, log: Log, info: AppendInfo) -> None:
        if self.world.chance(0.8):
            partition.high_watermark = log.set_high_watermark(log.log_end_offset)
        if info.flush_due:
            self._request_flush(partition, log, partition.end)

    def _append_as_follower(self, partition: ModelPartition, log: Log, now_ms: WallMs) -> None:
        batches: list[ModelBatch] = []
        end = partition.end
        for _ in range(self._random.randint(1, 3)):
            batches.append(self._workload.plain(partition, now_ms, end))
            end = batches[-1].next_offset
        self.world.note(f"{partition.name}: follow {partition.end}..{end - 1}")
        data = b"".join(batch.data for batch in batches)
        infos: list[AppendInfo] = []
        done = self._guarded(
            partition,
            lambda: infos.append(log.append_as_follower(data, now_ms=now_ms)),
            [[*partition.batches, *batches[: n + 1]] for n in range(len(batches))],
        )
        if done:
            for batch in batches:
                partition.append(batch)
            self._appended(partition, log, infos[0])

    def _repeat(self) -> None:
        """A client that did not get its answer sends its last batch again."""
        picked = self._pick()
        if picked is None:
            return
        partition, log = picked
        known = partition.history.producers
        repeatable = [
            producer.last
            for producer in known.values()
            if producer.last is not None and producer.last.base_offset >= partition.start_max
        ]
        if not repeatable:
            return
        batch = self._random.choice(repeatable)
        self.world.note(f"{partition.name}: repeat {batch.base_offset}")
        infos: list[AppendInfo] = []
        if not self._guarded(
            partition,
            lambda: infos.append(
                log.append_as_leader(
                    unstamped(batch), leader_epoch=partition.epoch, now_ms=self.world.now_ms()
                )
            ),
        ):
            return
        require(
            infos[0].duplicate and infos[0].base_offset == batch.base_offset,
            Invariant.PRODUCERS_KNOWN,
            lambda: f"{partition.name}: the repeated batch at {batch.base_offset} got {infos[0]}",
        )

    def _read(self) -> None:
        picked = self._pick()
        if picked is not None:
            partition, log = picked
            self._guarded(
                partition,
                lambda: self._checker.check(partition, log, thorough=self.world.chance(0.5)),
            )

    def _move_high_watermark(self) -> None:
        picked = self._pick()
        if picked is not None:
            partition, log = picked
            partition.high_watermark = log.set_high_watermark(log.log_end_offset)

    def _new_leader_epoch(self) -> None:
        picked = self._pick()
        if picked is None:
            return
        partition, log = picked
        partition.epoch += 1
        self.world.note(f"{partition.name}: leader epoch {partition.epoch}")
        if self.world.chance(0.5):
            self._guarded(partition, lambda: log.assign_epoch(partition.epoch, log.log_end_offset))

    # Segments -------------------------------------------------------------------------

    def _roll(self) -> None:
        picked = self._pick()
        if picked is not None and picked[1].segments.active.size:
            partition, log = picked
            self.world.note(f"{partition.name}: roll at {partition.end}")
            self._guarded(partition, lambda: log.roll(self.world.now_ms()))

    def _retain(self) -> None:
        try:
            self.node.manager.delete_old_segments()
        finally:
            self._note_retention()

    def _note_retention(self) -> None:
        for partition in self._partitions.values():
            log = self._log(partition)
            if log is None or log.log_start_offset == partition.start:
                continue
            if log.offline:
                # It may have come as far as to forget the epochs of what was to go.
                partition.start_max = max(partition.start_max, log.log_start_offset)
                continue
            self.world.note(f"{partition.name}: retention moves start to {log.log_start_offset}")
            require(
                partition.start < log.log_start_offset <= partition.high_watermark,
                Invariant.START_NOT_BACK,
                lambda p=partition, log=log: (  # type: ignore[misc]
                    f"{p.name}: retention moved {p.start} to {log.log_start_offset}, high "
                    f"watermark {p.high_watermark}"
                ),
            )
            partition.set_start(log.log_start_offset)

    def _delete_records(self) -> None:
        picked = self._pick()
        if picked is None:
            return
        partition, log = picked
        offset = self._random.randint(partition.start, partition.high_watermark)
        self.world.note(f"{partition.name}: delete records below {offset}")
        self._guarded(partition, lambda: log.advance_log_start_offset(offset))
        partition.set_start(log.log_start_offset)

    def _truncate(self) -> None:
        picked = self._pick()
        if picked is None:
            return
        partition, log = picked
        # What cleaning has gone by (the outcome of transactions, what producers sent last) is
        # not cut here: it would have been committed.
        floor = max(partition.start, min(partition.clean_end, partition.end))
        offsets = [b.base_offset for b in partition.batches if b.base_offset >= floor]
        if not offsets or self._future(partition) is not None:
            return
        offset = self._random.choice(offsets[-8:])
        self.world.note(f"{partition.name}: truncate to {offset}")
        # Whole segments go one by one, so a crash may leave anything in between.
        batches = partition.batches
        in_doubt = [batches[:n] for n in range(len(batches)) if batches[n].base_offset >= offset]
        in_doubt.append(list(batches))
        # Followers cut what another leader has not.
        partition.epoch += 1
        partition.generation += 1
        partition.cutting_at = offset
        partition.durable = min(partition.durable, offset)
        if self._guarded(
            partition, lambda: log.truncate_to(offset, now_ms=self.world.now_ms()), in_doubt
        ):
            partition.cut(offset)

    def _truncate_fully(self) -> None:
        """A follower that was away for too long starts over at the leader's log start."""
        picked = self._pick()
        if picked is None or self._future(picked[0]) is not None:
            return
        partition, log = picked
        offset = partition.end + self._random.randint(0, 20)
        self.world.note(f"{partition.name}: start over at {offset}")
        partition.epoch += 1
        partition.generation += 1
        partition.end_in_doubt = True
        partition.cutting_at = partition.durable = 0
        if self._guarded(
            partition,
            lambda: log.truncate_fully_and_start_at(offset, now_ms=self.world.now_ms()),
            [[]],
        ):
            partition.cut(offset)
            partition.replace([])
            partition.set_start(offset)
            partition.high_watermark = offset

    # Durability -----------------------------------------------------------------------

    def _flush(self) -> None:
        picked = self._pick()
        if picked is not None:
            partition, log = picked
            self.world.note(f"{partition.name}: flush up to {partition.end}")
            self._request_flush(partition, log, partition.end)

    def _request_flush(self, partition: ModelPartition, log: Log, up_to: int) -> None:
        generation = partition.generation

        def acknowledged(error: BaseException | None) -> None:
            if error is None and self._log(partition) is log:
                self.world.note(f"{partition.name}: flushed up to {up_to}")
                partition.note_durable(up_to, generation)

        log.flusher.request(up_to, self.world.now_ms(), acknowledged)

    def _flush_now(self) -> None:
        picked = self._pick()
        if picked is None:
            return
        partition, log = picked
        self.world.note(f"{partition.name}: flush in place")
        if self._guarded(partition, lambda: log.flush(now_ms=self.world.now_ms())):
            partition.note_durable(partition.end, partition.generation)

    def _flush_overdue(self) -> None:
        self.node.manager.flush_overdue()

    async def _checkpoint(self) -> None:
        manager = self.node.manager
        starts = [(p, p.start, p.generation) for p in self._partitions.values()]
        self.world.note("checkpoint")
        manager.checkpoint_recovery_points()
        manager.checkpoint_log_starts()
        manager.checkpoint_high_watermarks()
        if not self.world.chance(0.5):
            return
        await asyncio.sleep(SETTLE_S)
        for partition, start, generation in starts:
            log = self._log(partition)
            if (
                self.node.alive
                and log is not None
                and not log.offline
                and self._partitions.get((partition.topic, partition.index)) is partition
                and partition.generation == generation
            ):
                partition.start_durable = max(partition.start_durable, start)

    # Folders --------------------------------------------------------------------------

    def _create(self, topic: str, index: int) -> None:
        config = self._configs.setdefault(topic, random_config(self._random))
        topic_id = UUID(bytes=self.world.bytes_random.randbytes(16), version=4)
        partition = ModelPartition(topic, index, topic_id, config)
        self._partitions[topic, index] = partition
        self.world.note(f"{partition.name}: create")
        self._guarded(partition, lambda: self._open(partition))

    def _open(self, partition: ModelPartition) -> None:
        self.node.manager.create_log(
            partition.topic, partition.index, partition.config, topic_id=partition.topic_id
        )

    def _recreate(self) -> None:
        """Delete a topic, mostly to make another of its name."""
        picked = self._pick()
        if picked is None:
            return
        partition, _ = picked
        self.world.note(f"{partition.name}: delete")
        del self._partitions[partition.topic, partition.index]
        done = self._guarded(
            partition, lambda: self.node.manager.delete_log(partition.topic, partition.index)
        )
        if done and self.node.manager.live_dirs:
            if self.world.chance(0.5):
                self._configs[partition.topic] = random_config(self._random)
            self._create(partition.topic, partition.index)

    def _reconfigure(self) -> None:
        picked = self._pick()
        if picked is None:
            return
        partition, _ = picked
        config = random_config(self._random)
        if config.compact != partition.config.compact:
            # Only a topic that never was compacted can tell a gap from a loss.
            config = config.replace(cleanup_policy=partition.config.cleanup_policy)
        self.world.note(f"{partition.name}: new configuration")
        self._configs[partition.topic] = partition.config = config
        self.node.manager.update_config(partition.topic, config)

    def _future(self, partition: ModelPartition) -> Log | None:
        return self.node.manager.get_future_log(partition.topic, partition.index)

    def _move(self) -> None:
        picked = self._pick()
        if picked is None or len(self.node.manager.live_dirs) < 2:
            return
        partition, log = picked
        self._guarded(partition, lambda: self._move_on(partition, log))

    def _move_on(self, partition: ModelPartition, log: Log) -> None:
        manager = self.node.manager
        topic, index = partition.topic, partition.index
        future = self._future(partition)
        if future is not None and (future.offline or self.world.chance(0.1)):
            self.world.note(f"{partition.name}: give the move up")
            manager.drop_future_log(topic, index)
        elif future is None:
            target = self._random.choice([d for d in manager.live_dirs if d is not log.dir_state])
            self.world.note(f"{partition.name}: move to {target.path}")
            manager.create_future_log(topic, index, target)
        elif self.world.chance(0.5):
            copy_step(log, future, now_ms=self.world.now_ms(), max_bytes=500)
        else:
            self.world.note(f"{partition.name}: moved")
            start = manager.replace_by_future_log(topic, index).log_start_offset
            # A crash may have undone a deletion of records that the copy has seen.
            if partition.start < start <= partition.start_max:
                partition.set_start(start)

    def _clean(self) -> None:
        picked = self._pick()
        if picked is None or not picked[0].config.compact:
            return
        partition, log = picked
        partition.clean_below = max(partition.clean_below, log.segments.active.base_offset)
        partition.clean_end = partition.end
        self.world.note(f"{partition.name}: compact below {partition.clean_below}")
        self.node.clean_later(partition.topic, partition.index)

    def _remove_files(self) -> None:
        self.node.manager.removals.run_due()

    async def _wait(self) -> None:
        seconds = self._random.choice((1.0, 30.0, 1800.0, 20_000.0))
        self.world.note(f"wait {seconds:g} s")
        await asyncio.sleep(seconds)

    # Faults ---------------------------------------------------------------------------

    def _fill_folder(self) -> None:
        path = self._random.choice(self._paths)
        self.world.fault("disk full")
        self.world.note(f"{path} fills up")
        self._broken.add(path)
        self.world.platter.fill_folder(path + "/", self._random.choice((0, 50, 300, 2000)))

    def _break_folder(self) -> None:
        path = self._random.choice(self._paths)
        self.world.fault("I/O error")
        self.world.note(f"{path} breaks")
        self._broken.add(path)
        self.world.platter.break_folder(path + "/", self._random.randint(0, 60))

    def _arm_crash(self) -> None:
        """Let the crash come in the middle of whatever is done then."""
        self._crash = self._random.choice((KILL, POWER, POWER))
        self.world.platter.stop_after(self._random.choice((0, 1, 2, 3, 5, 8, 13, 30)))

    async def _stop_cleanly(self) -> None:
        self._crash = KILL
        await self.node.stop()
        self.world.platter.stop()
        self._crash = CLEAN
        self.world.fault("clean stop")
        if self.world.chance(0.3):
            self._crash = CLEAN_WITHOUT_POWER
        await self._restart("stopped cleanly")

    async def _kill(self) -> None:
        self._crash = KILL
        self.world.platter.stop()
        await self._restart("killed")

    async def _lose_power(self) -> None:
        self._crash = POWER
        self.world.platter.stop()
        await self._restart("power fails")

    async def _restart(self, why: str) -> None:
        crash, self._crash = self._crash, KILL
        self.node = await self._restarts.restart(self.node, self._paths, self._broken, crash, why)
