"""Event sourcing: accounts are what their events make of them, with snapshots and replays.

Events are never changed. A snapshot is the state at an offset: what follows is replayed from there.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

from stage import Stage

from moldau.client import Consumer, TopicPartition

EVENTS, SNAPSHOTS = TopicPartition("account-events", 0), "account-snapshots"
BEGIN = 1_773_316_800_000
SNAPSHOT_EVERY = 100


@dataclass
class Accounts:
    offset: int = 0
    balances: dict[str, int] = field(default_factory=dict)
    refused: int = 0

    def apply(self, event: dict[str, Any]) -> None:
        """The only place where state changes, live and in a replay."""
        account, amount = event["account"], event["amount"]
        balance = self.balances.get(account, 0)
        if event["kind"] == "deposited":
            self.balances[account] = balance + amount
        elif balance >= amount:
            self.balances[account] = balance - amount
        else:
            self.refused += 1


def replay(bootstrap: str, state: Accounts, *, until_ms: int | None = None) -> tuple[Accounts, int]:
    """The state after all events, or after those before a time; and how many were replayed."""
    with Consumer(bootstrap_servers=bootstrap, value_deserializer="json") as consumer:
        consumer.assign([EVENTS])
        consumer.seek(EVENTS, state.offset)
        end = consumer.end_offsets([EVENTS])[EVENTS]
        if until_ms is not None and (
            found := consumer.offsets_for_times({EVENTS: until_ms})[EVENTS]
        ):
            end = found.offset
        count = 0
        while state.offset < end:
            for record in consumer.poll(1.0):
                if record.offset < end:
                    state.apply(record.value)
                    count += 1
                    state.offset = record.offset + 1
    return state, count


with Stage(__doc__) as stage:
    stage.topics(EVENTS.topic)
    stage.topics(SNAPSHOTS, cleanup_policy="compact")
    events = 1040 if stage.short else 20_040
    live = Accounts()
    at_noon = Accounts()
    stage.fact("events", lambda: live.offset)
    stage.fact("accounts", lambda: len(live.balances))
    for number in range(events):
        kind = "withdrawn" if number % 3 == 2 else "deposited"
        event = {"kind": kind, "account": f"account-{number % 7}", "amount": number % 40}
        stage.send(EVENTS.topic, event["account"], event, timestamp=BEGIN + number * 1000)
        live.apply(event)
        live.offset += 1
        if number == events // 2 - 1:
            at_noon = Accounts(live.offset, dict(live.balances), live.refused)
        if live.offset % SNAPSHOT_EVERY == 0:
            stage.send(SNAPSHOTS, "accounts", asdict(live))
    stage.producer.flush()

    everything, count = replay(stage.bootstrap, Accounts())
    stage.check(f"a replay of all {count} events gives the state", everything == live)
    snapshot = Accounts(**dict(stage.read(SNAPSHOTS))["accounts"])
    restored, count = replay(stage.bootstrap, snapshot)
    stage.check(f"a snapshot and {count} events give the same", restored == live and count < 100)
    past, _ = replay(stage.bootstrap, Accounts(), until_ms=BEGIN + events // 2 * 1000)
    stage.check("a replay to an earlier time gives the state of that time", past == at_noon)
    stage.check("money that was not there was not withdrawn", min(live.balances.values()) >= 0)
