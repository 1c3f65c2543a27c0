"""Tasks with state move to another instance when it has their state."""

from __future__ import annotations

from typing import Any

from moldau.streams import KafkaStreams, State, StreamsBuilder
from moldau.streams.machine.subtopologies import TaskId
from moldau.streams.topology.topology import Topology
from support.streams_embedded import Stage
from support.waiting import eventually

KEYS = [f"key{number}" for number in range(40)]


def counting(prefix: str) -> Topology:
    builder = StreamsBuilder()
    builder.stream(f"{prefix}in", key_serde="string", value_serde="string").group_by_key().count(
        store="counts"
    )
    return builder.build()


def instance(stage: Stage, prefix: str, number: int) -> KafkaStreams:
    made = KafkaStreams(
        counting(prefix),
        application_id=f"{prefix}app",
        bootstrap_servers=stage.bootstrap,
        state_dir=str(stage.folder / f"{prefix}{number}"),
        group_protocol="classic",
        heartbeat_interval_ms=200,
        acceptable_recovery_lag=0,
        max_warmup_replicas=1,
    )
    # Kafka's smallest interval is a minute.
    made.instance.settings = made.settings.replace(probing_rebalance_interval_ms=500)
    return made


def tasks(made: KafkaStreams, kind: str) -> set[TaskId]:
    return {task for thread in made.threads for task in getattr(thread.tasks, kind)}


def test_a_new_instance_gets_copies_first_and_then_the_tasks(stage: Stage) -> None:
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}in"], partitions=4)
    for key in KEYS:
        stage.producer.send(f"{prefix}in", b"x", key.encode())
    stage.producer.flush()
    with instance(stage, prefix, 1) as one:
        eventually(lambda: stored(one) == dict.fromkeys(KEYS, 1), what="all is counted")
        with instance(stage, prefix, 2) as two:
            assert two.wait_for(State.RUNNING, 30)
            seen = set()

            def shared() -> bool:
                seen.update(tasks(two, "standbys"))
                return len(tasks(one, "active")) == len(tasks(two, "active")) == 2

            eventually(shared, what="each instance has two tasks")
            # The tasks were copied before they moved, and each of the copies was its own round.
            assert tasks(two, "active") <= seen
            eventually(
                lambda: stored(one) | stored(two) == dict.fromkeys(KEYS, 1),
                what="the state is the same",
            )


def stored(made: KafkaStreams) -> dict[str, Any]:
    if not made.state.is_running_or_rebalancing or not tasks(made, "active"):
        return {}
    return {key: kept[0] for key, kept in made.store("counts", stale=True).all()}
