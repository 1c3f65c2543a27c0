"""Transactions: those that coordinators know, hanging ones, and their end."""

from __future__ import annotations

import time
from typing import Any, Final

from moldau.client.admin import AbortTransactionSpec, TransactionState
from moldau.client.topics import TopicPartition
from moldau.http.machine.routes import Route
from moldau.http.request import Request
from moldau.services.console.api.bodies import body_of, paging_of
from moldau.services.console.api.routing import CLUSTER, PAGING, api, fields, number, text
from moldau.services.console.backend import Backend, Call
from moldau.services.console.lists import forget_topics, topic_names
from moldau.services.console.machine.errors import missing
from moldau.services.console.machine.paging import page_of

__all__ = ["TransactionHandlers"]

#: The broker's transaction.max.timeout.ms unless it is set: what is older than that is hanging.
TIMEOUT_MS: Final = 900_000
TOPICS_AT_ONCE: Final = 200


class TransactionHandlers:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        tag = "transactions"
        path = f"{CLUSTER}/transactions"
        return [
            api("GET", path, self.list, "A page of the transactional ids", tag=tag,
                parameters=PAGING),
            api("GET", f"{path}/hanging", self.hanging,
                "Transactions that stay open in partitions though no coordinator has them", tag=tag,
                parameters=(text("topic", "only this topic"),
                            number("older_ms", "open for longer than this, 15 minutes"))),
            api("POST", f"{path}/abort", self.abort, "Abort a transaction in one partition",
                tag=tag, body=fields("topic", "partition", "producer_id", "producer_epoch",
                                     topic="string", partition="integer", producer_id="integer",
                                     producer_epoch="integer", coordinator_epoch="integer")),
            api("POST", f"{path}/{{id}}/terminate", self.terminate,
                "End the open transaction of a transactional id and fence its producer", tag=tag,
                body=fields()),
        ]  # fmt: skip

    async def list(self, request: Request) -> dict[str, Any]:
        paging = paging_of(request)
        with self._backend.call(request) as call:
            listed = await call.admin.list_transactions(check=False)
            columns = {
                "state": lambda each: each.state.value,
                "producer": lambda each: each.producer_id,
            }
            shown, counts = page_of(
                listed, paging, name=lambda each: each.transactional_id, columns=columns
            )
            described = await call.admin.describe_transactions(
                [each.transactional_id for each in shown], check=False
            )
            rows = []
            for each in shown:
                row: dict[str, Any] = {
                    "id": each.transactional_id,
                    "producer": each.producer_id,
                    "state": each.state.value,
                    "coordinator": each.coordinator_id,
                }
                found = described.values_by_key.get(each.transactional_id)
                if found is not None:
                    row.update(
                        epoch=found.producer_epoch,
                        timeout_ms=found.transaction_timeout_ms,
                        started_ms=found.transaction_start_time_ms,
                        partitions=[str(place) for place in sorted(found.topic_partitions)],
                    )
                rows.append(row)
            return {"data": rows, **counts}

    async def hanging(self, request: Request) -> dict[str, Any]:
        older_ms = request.number("older_ms", TIMEOUT_MS, kind="long") or 0
        topic = request.text("topic")
        with self._backend.call(request) as call:
            # Of all topics that there are now: the question is asked seldom, and must miss none.
            forget_topics(call)
            names = [topic] if topic else sorted(await topic_names(call))
            known = await _open_partitions(call)
            now_ms = int(time.time() * 1000)
            rows = []
            for start in range(0, len(names), TOPICS_AT_ONCE):
                chunk = names[start : start + TOPICS_AT_ONCE]
                described = await call.admin.describe_topics(chunk, check=bool(topic))
                places = [
                    TopicPartition(each.name, partition.partition)
                    for each in described.values_by_key.values()
                    for partition in each.partitions
                    if partition.leader is not None
                ]
                found = await call.admin.describe_producers(places, check=False)
                for place, states in found.values_by_key.items():
                    for state in states.active_producers:
                        began = state.current_transaction_start_offset
                        if began is None or began < 0:
                            continue
                        age_ms = now_ms - state.last_timestamp
                        if place in known.get(state.producer_id, ()) or age_ms < older_ms:
                            continue
                        rows.append(
                            {
                                "topic": place.topic,
                                "partition": place.partition,
                                "producer_id": state.producer_id,
                                "producer_epoch": state.producer_epoch,
                                "coordinator_epoch": state.coordinator_epoch,
                                "start_offset": began,
                                "last_ms": state.last_timestamp,
                            }
                        )
            return {"data": rows}

    async def abort(self, request: Request) -> dict[str, Any]:
        body = await body_of(request)
        place = TopicPartition(body.text("topic"), body.integer("partition"))
        spec = AbortTransactionSpec(
            place,
            body.integer("producer_id"),
            body.integer("producer_epoch"),
            body.optional_integer("coordinator_epoch") or 0,
        )
        async with self._backend.change(
            request, "abort-transaction", str(place), body.fields
        ) as call:
            described = (await call.admin.describe_topics([place.topic]))[place.topic]
            if place.partition not in {each.partition for each in described.partitions}:
                raise missing("partition", place)
            await call.admin.abort_transaction(spec)
            return {"aborted": str(place)}

    async def terminate(self, request: Request) -> dict[str, Any]:
        transactional_id = request.path["id"]
        async with self._backend.change(request, "terminate-transaction", transactional_id) as call:
            await call.admin.force_terminate_transaction(transactional_id)
            return {"terminated": transactional_id}


async def _open_partitions(call: Call) -> dict[int, frozenset[TopicPartition]]:
    """What coordinators have open, by producer id: a partition that is not in it was forgotten."""
    listed = await call.admin.list_transactions(
        filtered_states=[
            TransactionState.ONGOING,
            TransactionState.PREPARE_COMMIT,
            TransactionState.PREPARE_ABORT,
        ],
        check=False,
    )
    described = await call.admin.describe_transactions(
        [each.transactional_id for each in listed], check=False
    )
    return {each.producer_id: each.topic_partitions for each in described.values_by_key.values()}
