"""What clients did and saw, and what must hold of it.

Every check here is by what clients know themselves: what they were answered, and what they read.
A request without an answer leaves both possible.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from moldau.sim.world import Invariant, Violation, World, require

TopicPartition = tuple[str, int]


class Outcome(Enum):
    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    IN_DOUBT = "in doubt"


@dataclass(slots=True, eq=False)
class Transaction:
    """One transaction as its producer knows it."""

    name: str
    records: list[bytes] = field(default_factory=list)
    outcome: Outcome = Outcome.OPEN
    commit_sent: bool = False
    seen: set[bytes] = field(default_factory=set)

    def give_up(self) -> None:
        """The producer does not know more, nor ever will."""
        if self.outcome is Outcome.OPEN:
            self.outcome = Outcome.IN_DOUBT if self.commit_sent else Outcome.ABORTED


class History:
    """Shared by all clients of one run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.stopping = False
        self.lossy = False
        """Whether a power failure may take what was acknowledged and not synced."""
        self.power_fails = False
        """Whether what was read but not acknowledged may be gone later."""
        self.derived: frozenset[str] = frozenset()
        """Topics that applications write."""
        self.at: dict[TopicPartition, dict[int, bytes]] = {}
        self.acknowledged: dict[TopicPartition, dict[int, bytes]] = {}
        # Acknowledged as duplicates: at an offset that was not returned.
        self.acknowledged_somewhere: dict[TopicPartition, set[bytes]] = {}
        self.sent: dict[bytes, TopicPartition] = {}
        self.transactions: list[Transaction] = []
        self._transaction_of: dict[bytes, Transaction] = {}
        self._offsets: dict[tuple[str, TopicPartition], int] = {}
        self._doubtful: dict[tuple[str, TopicPartition], set[int]] = {}

    def note(self, text: str) -> None:
        self._world.note(text)

    # Writing.

    def begin(self, name: str) -> Transaction:
        transaction = Transaction(name)
        self.transactions.append(transaction)
        return transaction

    def on_sending(
        self, where: TopicPartition, values: Iterable[bytes], transaction: Transaction | None = None
    ) -> None:
        for value in values:
            self.sent[value] = where
            if transaction is not None:
                transaction.records.append(value)
                self._transaction_of[value] = transaction

    def on_acknowledged(self, where: TopicPartition, base: int, values: list[bytes]) -> None:
        if base < 0:
            self.acknowledged_somewhere.setdefault(where, set()).update(values)
            return
        acknowledged = self.acknowledged.setdefault(where, {})
        for number, value in enumerate(values):
            self._agree(where, base + number, value)
            acknowledged[base + number] = value

    def on_power_failure(self, ends: dict[TopicPartition, int]) -> None:
        """Logs end here now. What was not acknowledged may be gone in any run; in a lossy one
        also what was acknowledged."""
        for where, records in self.at.items():
            known = self.acknowledged.get(where, {})
            for offset in [offset for offset in records if offset >= ends.get(where, 0)]:
                if self.lossy:
                    known.pop(offset, None)
                if offset not in known:
                    del records[offset]
        if self.lossy:
            self.acknowledged_somewhere.clear()

    # Reading.

    def _agree(self, where: TopicPartition, offset: int, value: bytes) -> None:
        known = self.at.setdefault(where, {}).setdefault(offset, value)
        require(
            known == value,
            Invariant.READERS_AGREE,
            lambda: f"{_name(where)} offset {offset} is {value!r}, was {known!r}",
        )

    def on_read(
        self,
        where: TopicPartition,
        first: int,
        next_offset: int,
        records: dict[int, bytes],
        *,
        committed: bool,
    ) -> None:
        """A reader went from `first` to `next_offset` and was given these records."""
        for offset, value in records.items():
            require(
                self.sent.get(value) == where or where[0] in self.derived,
                Invariant.READERS_AGREE,
                lambda offset=offset, value=value: (  # type: ignore[misc]
                    f"{_name(where)} has {value!r} at {offset}, which was never sent there"
                ),
            )
            self._agree(where, offset, value)
            if committed:
                self._on_seen_committed(where, offset, value)
        acknowledged = self.acknowledged.get(where, {})
        for offset in range(first, next_offset):
            if offset not in acknowledged or offset in records:
                continue
            value = acknowledged[offset]
            transaction = self._transaction_of.get(value)
            if committed and transaction is not None:
                require(
                    transaction.outcome is not Outcome.COMMITTED,
                    Invariant.TRANSACTIONS_ATOMIC,
                    lambda offset=offset, value=value: (  # type: ignore[misc]
                        f"{value!r} was committed, but a committed reader finds nothing at"
                        f" {_name(where)} offset {offset}"
                    ),
                )
                continue
            raise Violation(
                Invariant.ACKNOWLEDGED_SURVIVES,
                f"{value!r} was acknowledged at {_name(where)} offset {offset}, not read there",
            )

    def _on_seen_committed(self, where: TopicPartition, offset: int, value: bytes) -> None:
        transaction = self._transaction_of.get(value)
        if transaction is None:
            return
        what = f"{value!r} of {transaction.name} at {_name(where)} offset {offset}"
        require(
            transaction.commit_sent,
            Invariant.TRANSACTIONS_ATOMIC,
            lambda: f"{what} is visible, but its commit was not requested",
        )
        require(
            transaction.outcome is not Outcome.ABORTED,
            Invariant.TRANSACTIONS_ATOMIC,
            lambda: f"{what} is visible, but it was aborted",
        )
        transaction.seen.add(value)

    # Offsets of groups.

    def on_commit_sent(self, group: str, where: TopicPartition, offset: int) -> None:
        self._doubtful.setdefault((group, where), set()).add(offset)

    def on_committed(self, group: str, where: TopicPartition, offset: int) -> None:
        """The answer came, so this commit is carried out and comes no more."""
        key = (group, where)
        self._doubtful.get(key, set()).discard(offset)
        self._offsets[key] = max(offset, self._offsets.get(key, -1))

    def on_offset_fetched(
        self, group: str, where: TopicPartition, offset: int, known_before: int
    ) -> None:
        """`known_before` is what `committed` gave when the question was sent."""
        doubtful = self._doubtful.get((group, where), set())
        require(
            offset >= known_before or offset in doubtful,
            Invariant.OFFSETS_KEPT,
            lambda: f"group {group} is at {offset} of {_name(where)}, {known_before} was committed",
        )
        if offset < known_before:
            self._offsets[group, where] = offset

    def committed(self, group: str, where: TopicPartition) -> int:
        return self._offsets.get((group, where), -1)

    # The end.

    def check_all(self, where: TopicPartition, everything: dict[int, bytes]) -> None:
        """A reader of everything has read the whole partition."""
        values = list(everything.values())
        require(
            len(set(values)) == len(values),
            Invariant.NO_DUPLICATES,
            lambda: (
                f"{_name(where)} holds twice: {sorted({v for v in values if values.count(v) > 1})}"
            ),
        )
        missing = self.acknowledged_somewhere.get(where, set()) - set(values)
        require(
            not missing,
            Invariant.ACKNOWLEDGED_SURVIVES,
            lambda: f"{_name(where)} does not hold {sorted(missing)}",
        )
        last: dict[bytes, int] = {}
        for value in values:
            producer, _, number = value.rpartition(b"/")
            require(
                int(number) > last.get(producer, -1),
                Invariant.NO_DUPLICATES,
                lambda value=value: f"{_name(where)}: {value!r} comes after a later one",  # type: ignore[misc]
            )
            last[producer] = int(number)

    def check_transactions(self, visible: set[bytes]) -> None:
        """`visible` is what committed readers see in the end."""
        for transaction in self.transactions:
            records = set(transaction.records)
            shown = records & visible
            what = f"{transaction.name} ({transaction.outcome.value})"
            if transaction.outcome is Outcome.COMMITTED:
                wanted = shown == records
            elif transaction.outcome is Outcome.ABORTED:
                wanted = not shown
            else:
                wanted = not shown or shown == records
            require(
                wanted,
                Invariant.TRANSACTIONS_ATOMIC,
                lambda what=what, shown=shown, records=records: (  # type: ignore[misc]
                    f"{what}: visible are {sorted(shown)} of {sorted(records)}"
                ),
            )
            require(
                transaction.seen <= visible,
                Invariant.READERS_AGREE,
                lambda what=what: f"{what}: was visible before and is not any more",  # type: ignore[misc]
            )


def _name(where: TopicPartition) -> str:
    return f"{where[0]}-{where[1]}"
