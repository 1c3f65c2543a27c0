"""A log against the plainest model of one: a list of batches."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from moldau.broker.config import LogConfig
from moldau.broker.log.context import AppendOrigin
from moldau.wire.errors import ErrorCode
from moldau.wire.records import Compression, decode_batches, encode_end_txn_marker
from support.examples import examples
from support.log_folder import NOW_MS, LogFolder, batch_of, read_all, values_of


@dataclass
class ModelBatch:
    base_offset: int
    values: list[bytes | None]
    epoch: int
    timestamp: int

    @property
    def next_offset(self) -> int:
        return self.base_offset + len(self.values)


@dataclass
class Model:
    batches: list[ModelBatch] = field(default_factory=list)
    start: int = 0
    end: int = 0
    flushed: int = 0

    def records(self) -> list[tuple[int, bytes | None]]:
        return [
            (batch.base_offset + index, value)
            for batch in self.batches
            for index, value in enumerate(batch.values)
            if batch.base_offset + index >= self.start
        ]


class LogMachine(RuleBasedStateMachine):
    @initialize(index_interval=st.sampled_from([0, 50, 400]), segment=st.sampled_from([300, 900]))
    def create(self, index_interval: int, segment: int) -> None:
        self.root = tempfile.mkdtemp(prefix="log-model")
        self.folder = LogFolder(
            Path(self.root),
            LogConfig(
                segment_bytes=segment,
                index_interval_bytes=index_interval,
                segment_index_bytes=400,
                file_delete_delay_ms=0,
                retention_ms=-1,
                cleanup_policy=frozenset({"delete"}),
            ),
        )
        self.log = self.folder.open()
        self.model = Model()
        self.epoch = 0
        self.clock = NOW_MS

    @rule(
        values=st.lists(st.binary(max_size=60), min_size=1, max_size=4),
        codec=st.sampled_from([Compression.NONE, Compression.GZIP]),
        pause_ms=st.integers(0, 50),
    )
    def append(self, values: list[bytes], codec: Compression, pause_ms: int) -> None:
        self.clock += pause_ms
        info = self.log.append_as_leader(
            batch_of(*values, timestamp=self.clock, compression=codec),
            leader_epoch=self.epoch,
            now_ms=NOW_MS,
        )
        assert info.base_offset == self.model.end
        self.model.batches.append(ModelBatch(self.model.end, list(values), self.epoch, self.clock))
        self.model.end += len(values)
        self.log.set_high_watermark(self.log.log_end_offset)

    @rule()
    def append_marker(self) -> None:
        marker = encode_end_txn_marker(
            producer_id=1, producer_epoch=0, committed=True, coordinator_epoch=0,
            timestamp=self.clock,
        )  # fmt: skip
        self.log.append_as_leader(
            bytearray(marker),
            leader_epoch=self.epoch,
            now_ms=NOW_MS,
            origin=AppendOrigin.COORDINATOR,
        )
        value = (0).to_bytes(6, "big")
        self.model.batches.append(ModelBatch(self.model.end, [value], self.epoch, self.clock))
        self.model.end += 1
        self.log.set_high_watermark(self.log.log_end_offset)

    @rule()
    def roll(self) -> None:
        if self.log.segments.active.size:
            self.log.roll(NOW_MS)

    @rule()
    def next_epoch(self) -> None:
        self.epoch += 1

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.model.flushed = self.model.end

    @rule()
    def restart(self) -> None:
        self.log = self.folder.restart(
            log_start_offset=self.model.start, high_watermark=self.model.end
        )
        self.model.flushed = self.model.end

    @rule(lost_indexes=st.booleans())
    def crash(self, lost_indexes: bool) -> None:
        """Killed, but the page cache survives: everything written is still there."""
        if lost_indexes:
            for path in self.folder.path.glob("*.*index"):
                path.unlink()
        self.log = self.folder.crash(
            recovery_point=self.model.flushed,
            log_start_offset=self.model.start,
            high_watermark=self.model.end,
        )

    @precondition(lambda self: self.model.batches)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        batch = data.draw(st.sampled_from(self.model.batches))
        offset = batch.base_offset
        assert self.log.truncate_to(offset, now_ms=NOW_MS)
        self.model.batches = [b for b in self.model.batches if b.base_offset < offset]
        self.model.end = offset
        self.model.start = min(self.model.start, offset)
        self.model.flushed = min(self.model.flushed, offset)

    @rule(fraction=st.floats(0, 1))
    def delete_records(self, fraction: float) -> None:
        offset = self.model.start + int((self.model.end - self.model.start) * fraction)
        assert self.log.advance_log_start_offset(offset) == (offset > self.model.start)
        self.model.start = max(self.model.start, offset)

    @rule()
    def apply_retention(self) -> None:
        self.log.delete_old_segments(NOW_MS)
        first = self.log.segments.first.base_offset
        assert first <= self.model.start
        self.model.batches = [b for b in self.model.batches if b.next_offset > first]

    @rule(jump=st.integers(0, 5))
    def start_over(self, jump: int) -> None:
        offset = self.model.end + jump
        self.log.truncate_fully_and_start_at(offset, now_ms=NOW_MS)
        self.model = Model(start=offset, end=offset, flushed=offset)

    @rule(data=st.data())
    def read_somewhere(self, data: st.DataObject) -> None:
        model = self.model
        offset = data.draw(st.integers(model.start, model.end))
        upper = data.draw(st.sampled_from([b.base_offset for b in model.batches] + [model.end]))
        max_bytes = data.draw(st.sampled_from([0, 1, 100, 500, 10_000]))
        result = self.log.read(offset, max_bytes, upper_offset=upper, min_one_batch=True)
        expected = b"".join(bytes(buffer) for buffer in result.buffers)
        assert len(expected) == result.size
        wanted = [b for b in model.batches if b.next_offset > offset and b.base_offset < upper]
        if offset >= upper or not wanted:
            assert result.size == 0
            return
        seen = [header.base_offset for header, _ in decode_batches(expected)]
        assert seen == [b.base_offset for b in wanted][: len(seen)]
        assert seen  # one whole batch at least
        assert result.size <= max(max_bytes, self._size_of(seen[0]))

    def _size_of(self, base_offset: int) -> int:
        place = self.log.segments[self.log.segments.index_for(base_offset)].locate(base_offset)
        assert place is not None
        return place.size

    @rule(data=st.data())
    def find_timestamp(self, data: st.DataObject) -> None:
        timestamp = data.draw(st.integers(NOW_MS - 1, self.clock + 10))
        found = self.log.offset_for_timestamp(timestamp)
        expected = next(
            (
                (batch.base_offset + index, batch.timestamp + index)
                for batch in self.model.batches
                for index in range(len(batch.values))
                if batch.timestamp + index >= timestamp
                and batch.base_offset + index >= self.model.start
            ),
            None,
        )
        assert (None if found is None else (found.offset, found.timestamp)) == expected

    @invariant()
    def same_records(self) -> None:
        if not hasattr(self, "log"):
            return
        assert self.log.log_end_offset == self.model.end
        assert self.log.log_start_offset == self.model.start
        assert values_of(read_all(self.log)) == self.model.records()

    @invariant()
    def same_epochs(self) -> None:
        if not hasattr(self, "log"):
            return
        for batch in self.model.batches:
            if batch.next_offset > self.model.start:
                offset = max(batch.base_offset, self.model.start)
                assert self.log.leader_epochs.epoch_for_offset(offset) == batch.epoch

    @invariant()
    def tidy_directory(self) -> None:
        if not hasattr(self, "log"):
            return
        assert not self.folder.files(".deleted")
        names = {name.partition(".")[0] for name in self.folder.files(".log")}
        assert len(names) == len(self.log.segments)
        assert {n.partition(".")[0] for n in self.folder.files("index")} <= names

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.close(clean=False)
            assert self.log.dir_state.failure is None, ErrorCode.KAFKA_STORAGE_ERROR
            shutil.rmtree(self.root)


LogMachine.TestCase.settings = settings(
    max_examples=examples(80), stateful_step_count=40, deadline=None
)
TestLogAgainstModel = LogMachine.TestCase
