"""Whatever transactions do to each other, a read_committed reader sees what was committed.

The reader is a consumer's: it fetches piece by piece and drops what each answer says was aborted.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.broker.replication import reading
from moldau.broker.replication.coordinator_appends import append_marker
from moldau.broker.replication.partition import Partition
from moldau.wire.records import ControlType, decode_batch, decode_control_type, iterate_headers
from support.examples import examples
from support.hosting import Host

PRODUCERS = 4


class Model:
    """What was written to one partition, by whom, and what became of it."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.written: list[tuple[bytes, int | None]] = []  # value and transaction, in order
        self.open: dict[int, int] = {}  # producer -> transaction
        self.committed: set[int] = set()
        self.aborted: set[int] = set()
        self.sequences = [0] * PRODUCERS
        self._count = 0

    def write(self, producer: int | None) -> None:
        self._count += 1
        value = b"%d" % self._count
        if producer is None:
            self.written.append((value, None))
            self.host.append("t", value)
            return
        transaction = self.open.setdefault(producer, self._count)
        self.written.append((value, transaction))
        self.host.append(
            "t",
            value,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=self.sequences[producer],
            is_transactional=True,
        )
        self.sequences[producer] += 1

    def end(self, producer: int, committed: bool) -> None:
        append_marker(
            self.host.partition("t"),
            producer_id=producer,
            producer_epoch=0,
            coordinator_epoch=0,
            committed=committed,
            transaction_version=1,
            now_ms=self.host.loop.now_ms,
        )
        transaction = self.open.pop(producer, None)
        if transaction is not None:
            (self.committed if committed else self.aborted).add(transaction)

    def visible(self) -> list[bytes]:
        """Up to the first record of a transaction that is still open."""
        values = []
        undecided = set(self.open.values())
        for value, transaction in self.written:
            if transaction in undecided:
                break
            if transaction is None or transaction in self.committed:
                values.append(value)
        return values


def read_committed(partition: Partition, max_bytes: int) -> tuple[list[bytes], int]:
    """The values, and the longest list of aborted transactions in one answer."""
    values: list[bytes] = []
    offset = longest = 0
    while True:
        found = reading.read(
            partition.log, offset, max_bytes, min_one_batch=True, read_committed=True
        )
        if not found.size:
            return values, longest
        waiting = sorted(((first, who) for who, first in found.aborted_transactions or ()))
        longest = max(longest, len(waiting))
        dropping: set[int] = set()
        data = b"".join(found.buffers)
        for position, header in iterate_headers(data):
            while waiting and waiting[0][0] <= header.last_offset:
                dropping.add(waiting.pop(0)[1])
            for record in decode_batch(data, position):
                if header.is_control:
                    if decode_control_type(record.key) == ControlType.ABORT:
                        dropping.discard(header.producer_id)
                elif header.producer_id not in dropping and record.offset >= offset:
                    values.append(record.value or b"")
            offset = header.next_offset


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, PRODUCERS - 1), st.just(True)),
        st.tuples(st.just("end"), st.integers(0, PRODUCERS - 1), st.booleans()),
        st.tuples(st.just("plain"), st.just(0), st.just(True)),
        st.tuples(st.just("roll"), st.just(0), st.just(True)),
    ),
    max_size=80,
)


def play(host: Host, steps: list[tuple[str, int, bool]]) -> Model:
    host.create_topic("t")
    model = Model(host)
    for what, producer, committed in steps:
        if what == "end":
            model.end(producer, committed)
        elif what == "roll":
            host.partition("t").log.roll(host.loop.now_ms)
        else:
            model.write(producer if what == "write" else None)
    return model


@settings(max_examples=examples(60))
@given(steps=STEPS, max_bytes=st.sampled_from([1, 200, 1000, 10**6]))
def test_a_reader_sees_what_was_committed(
    steps: list[tuple[str, int, bool]], max_bytes: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        host = Host(Path(folder))
        model = play(host, steps)
        assert read_committed(host.partition("t"), max_bytes)[0] == model.visible()
        again = host.restarted(Path(folder))
        assert read_committed(again.partition("t"), max_bytes)[0] == model.visible()
        again.logs.close()


def test_an_answer_names_the_aborted_transactions_of_its_own_records(tmp_path: Path) -> None:
    host = Host(tmp_path)
    steps = [
        step
        for number in range(300)
        for step in (("write", number % PRODUCERS, True), ("end", number % PRODUCERS, False))
    ]
    model = play(host, [*steps[:300], ("roll", 0, True), *steps[300:], ("plain", 0, True)])
    values, longest = read_committed(host.partition("t"), 1000)
    assert values == model.visible()
    assert len(values) == 1
    assert 0 < longest < 20
