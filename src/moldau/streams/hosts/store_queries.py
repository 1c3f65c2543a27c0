"""Runs queries that are objects (KIP-796) on the partitions of a store that this instance has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from moldau.streams.errors import StreamsNotStartedError, StreamsStoppedError
from moldau.streams.hosts.hosted_task import HostedTask, Stage
from moldau.streams.hosts.queries import QUERY_TIMEOUT_S, Queries
from moldau.streams.hosts.stream_thread import StreamThread
from moldau.streams.machine.lifecycle import NOT_STARTED, State
from moldau.streams.machine.position import Position
from moldau.streams.machine.store_queries import (
    FailureReason,
    PositionBound,
    QueryResult,
    StateQueryRequest,
    StateQueryResult,
    answer,
)


def run_query(queries: Queries, request: StateQueryRequest) -> StateQueryResult:
    """Ask the partitions that are here; raises InvalidStateStoreError for an unknown store."""
    host = queries.host
    subtopology = queries.subtopology(request.store)
    if host.state is State.CREATED:
        raise StreamsNotStartedError(f"{NOT_STARTED}.")
    if not host.state.is_running_or_rebalancing:
        raise StreamsStoppedError(
            f"KafkaStreams has been stopped ({host.state.name}). This instance can no longer serve "
            f"queries."
        )
    if subtopology is None:
        store = host.global_stores[request.store]
        return StateQueryResult(
            global_result=answer(request.query, store, 0, Position(), PositionBound())
        )
    results: dict[int, QueryResult[Any]] = {}
    for thread in host.threads:

        def on_thread(thread: StreamThread = thread) -> dict[int, QueryResult[Any]]:
            return _answers(thread, subtopology.number, request)

        for partition, result in thread.call(on_thread, QUERY_TIMEOUT_S).items():
            # Of an active task and a standby in another thread the active one counts.
            if partition not in results or result.is_success:
                results[partition] = result
    count = queries.partition_count(request.store)
    for partition in request.partitions or ():
        if partition not in results:
            results[partition] = _absent(partition, count)
    return StateQueryResult(partition_results=dict(sorted(results.items())))


def _answers(
    thread: StreamThread, subtopology: int, request: StateQueryRequest
) -> dict[int, QueryResult[Any]]:
    tasks = thread.tasks
    found: dict[int, QueryResult[Any]] = {}
    for task in (*tasks.standbys.values(), *tasks.active.values()):
        partition = task.id.partition
        if task.id.subtopology == subtopology and (
            request.partitions is None or partition in request.partitions
        ):
            found[partition] = _answer(task, thread.name, request)
    return found


def _answer(task: HostedTask, thread: str, request: StateQueryRequest) -> QueryResult[Any]:
    is_active = task.stage is Stage.RUNNING
    if request.require_active and not is_active:
        return QueryResult.failure(
            FailureReason.NOT_ACTIVE,
            f"Query requires a running active task, but partition {task.id.partition} was not "
            f"active",
        )
    store = task.task.stores[request.store]
    partition = task.id.partition
    result = answer(request.query, store, partition, task.position, request.position_bound)
    if request.execution_info:
        kind = "active" if is_active else "standby or restoring"
        result = replace(result, execution_info=(f"{kind} task {task.id} in {thread}",))
    return result


def _absent(partition: int, count: int) -> QueryResult[Any]:
    if partition >= count:
        return QueryResult.failure(
            FailureReason.DOES_NOT_EXIST,
            f"The store has {count} partitions, and partition {partition} is none of them",
        )
    return QueryResult.failure(
        FailureReason.NOT_PRESENT,
        f"Partition {partition} is not in this instance: query_metadata_for_key says which has it",
    )
