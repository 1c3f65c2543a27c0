"""The connectors of a worker group, read from its topics: for lists that ask no worker."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from moldau.client import Admin, Consumer, KafkaError, TopicPartition
from moldau.connect.api import ConnectError
from moldau.connect.machine.config_state import ConfigState
from moldau.connect.machine.status_state import StatusState

__all__ = ["ListedConnector", "connectors_in"]

_POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class ListedConnector:
    name: str
    class_name: str
    state: str
    #: How many tasks are in which state.
    tasks: Mapping[str, int] = field(default_factory=dict)
    trace: str | None = None


def connectors_in(
    client: Mapping[str, str], config_topic: str, status_topic: str, *, timeout_s: float = 10.0
) -> list[ListedConnector]:
    """All connectors by name; none if there is no such group. Raises ConnectError."""
    configs, statuses = ConfigState(), StatusState()
    deadline = time.monotonic() + timeout_s
    try:
        with Admin(client) as admin:
            if not {config_topic, status_topic} <= set(admin.list_topics()):
                return []
        _read(client, config_topic, deadline, lambda k, v, at: configs.replay(k, v, at))
        _read(client, status_topic, deadline, lambda k, v, _: statuses.replay(k, v))
    except KafkaError as error:
        raise ConnectError(f"The connectors of {config_topic} cannot be read: {error}") from error
    return [_listed(name, configs, statuses) for name in sorted(configs.connectors)]


def _read(
    client: Mapping[str, str],
    topic: str,
    deadline: float,
    apply: Callable[[str | None, bytes | None, int], object],
) -> None:
    settings = {**client, "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    with Consumer(settings) as consumer:
        places = [TopicPartition(topic, each.partition) for each in consumer.partitions_for(topic)]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        consumer.seek_to_beginning(places)
        while any(consumer.position(each) < ends[each] for each in places):
            if time.monotonic() > deadline:
                raise ConnectError(f"The topic {topic} was not read in time. Try again")
            for record in consumer.poll(_POLL_S):
                key = None if record.key is None else record.key.decode()
                apply(key, record.value, record.offset)


def _listed(name: str, configs: ConfigState, statuses: StatusState) -> ListedConnector:
    status = statuses.connectors.get(name)
    wanted = set(configs.task_ids(name))
    tasks: dict[str, int] = {}
    trace = None if status is None else status.trace
    for id, each in statuses.tasks_of(name):
        if id in wanted:
            tasks[each.state.value] = tasks.get(each.state.value, 0) + 1
            trace = trace or each.trace
    return ListedConnector(
        name,
        configs.connectors[name].get("connector.class") or "",
        "UNASSIGNED" if status is None else status.state.value,
        tasks,
        trace,
    )
