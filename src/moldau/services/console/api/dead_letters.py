"""Dead letters: topics, reasons, and sending records back exactly once.

A record that is sent back and the marker that says so are written in one transaction. The
transactional id belongs to the dead-letter topic, so a second redrive of it fences the first;
markers are read after that, so a record is never sent back twice, also if somebody clicks twice or
the console dies in between. The markers are in the compacted topic `_console-redrives`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from typing import Any, Final

from moldau.client import NewTopic, OffsetSpec
from moldau.client.errors import TopicExistsError
from moldau.client.topics import TopicPartition
from moldau.http.machine.routes import Route
from moldau.http.request import Request
from moldau.services.console.api.bodies import Body, body_of
from moldau.services.console.api.routing import CLUSTER, api, fields, number
from moldau.services.console.api.sending import (
    encoded_record,
    keep_hidden,
    read_records,
    require_topic,
)
from moldau.services.console.backend import Backend, Call
from moldau.services.console.lists import topic_names
from moldau.services.console.machine.dead_letters import (
    Reason,
    is_dead_letter_name,
    marker_key,
    original_topic,
    reason_of,
    redriven_headers,
)
from moldau.services.console.machine.errors import bad_request
from moldau.services.console.machine.masks import rules_for
from moldau.services.console.scanning import Raw, Scan, ScanRequest

__all__ = ["DeadLetterHandlers"]

MARKERS: Final = "_console-redrives"
READ_MAX: Final = 10_000
CHOSEN_MAX: Final = 1000
EXAMPLES_MAX: Final = 200
SHOWN_BYTES_MAX: Final = 2_000
"""Of the value of each of them; the page reads a record whole before it is edited."""
MARKERS_S: Final = 30.0


class DeadLetterHandlers:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        tag = "dead letters"
        path = CLUSTER + "/dead-letters"
        return [
            api("GET", path, self.list, "Topics that look like dead-letter topics", tag=tag),
            api("GET", f"{path}/{{topic}}", self.show, "Reasons of the last records, grouped",
                tag=tag, parameters=(number("limit", "records to read, 1,000"),)),
            api("POST", f"{path}/{{topic}}/redrive", self.redrive,
                "Send chosen records back, each exactly once; a record may have a new key, value "
                "or headers", tag=tag,
                body=fields("records", records="array", to="string", key_format="string",
                            value_format="string")),
        ]  # fmt: skip

    async def list(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            names = [name for name in await topic_names(call) if is_dead_letter_name(name)]
            facts = call.watcher.snapshot.topics
            return {
                "data": [
                    {
                        "topic": name,
                        "records": facts[name].records if name in facts else None,
                        "rate": facts[name].rate if name in facts else None,
                    }
                    for name in sorted(names)
                ]
            }

    async def show(self, request: Request) -> dict[str, Any]:
        topic = request.path["topic"]
        limit = min(READ_MAX, request.number("limit", 1000) or 1000)
        with self._backend.call(request) as call:
            masks = rules_for(self._backend.config.masks, topic, call.user)
            scan = Scan(
                call, topic, ScanRequest(start="newest", limit=limit), masks, SHOWN_BYTES_MAX
            )
            done = await _markers(call, topic)
            reasons: Counter[Reason] = Counter()
            examples: dict[Reason, list[dict[str, Any]]] = {}
            plain = sent = 0
            async with contextlib.aclosing(scan.run()) as rounds:
                async for batch in rounds:
                    for each in batch:
                        reason = reason_of(each.raw.headers)
                        if reason is None:
                            plain += 1
                            reason = Reason("", "no error headers", "", "", "")
                        reasons[reason] += 1
                        is_sent = _key(topic, each.raw) in done
                        sent += is_sent
                        kept = examples.setdefault(reason, [])
                        kept.append({**each.shown, "redriven": is_sent})
                        del kept[:-EXAMPLES_MAX]
            return {
                "topic": topic,
                "read": scan.progress.scanned,
                "without_headers": plain,
                "redriven": sent,
                "data": [
                    {**reason.shown(), "count": count, "records": examples[reason]}
                    for reason, count in reasons.most_common()
                ],
            }

    async def redrive(self, request: Request) -> dict[str, Any]:
        body = await body_of(request)
        topic = request.path["topic"]
        wanted = body.objects("records")
        if not 1 <= len(wanted) <= CHOSEN_MAX:
            raise bad_request(f"Choose between 1 and {CHOSEN_MAX} records.")
        places = [
            (TopicPartition(topic, each.integer("partition")), each.integer("offset"))
            for each in wanted
        ]
        chosen = {"records": [[place.partition, offset] for place, offset in places]}
        async with self._backend.change(request, "redrive", topic, chosen) as call:
            await _make_markers(call)
            records = await read_records(call, places)
            async with call.clients.transactional_producer(
                f"moldau-console-redrive-{topic}"
            ) as producer:
                # After init_transactions: nobody else is in the middle of a redrive now.
                done = await _markers(call, topic)
                results = []
                known: set[str] = set()
                async with producer.transaction():
                    for each, record in zip(wanted, records, strict=True):
                        marker = _key(topic, record)
                        row = {"partition": record.partition, "offset": record.offset}
                        if marker in done:
                            results.append({**row, "result": "already sent back"})
                            continue
                        to = body.text("to", "") or original_topic(record.headers)
                        if not to:
                            raise bad_request(
                                f"Partition {record.partition} offset {record.offset} does not say "
                                "which topic it is from: fill in to."
                            )
                        keep_hidden(self._backend, call, topic, to)
                        if to not in known:
                            await require_topic(call, to)
                            known.add(to)
                        key, value, headers = await _edited(call, to, each, body, record)
                        await producer.send(to, value, key, headers=headers)
                        await producer.send(MARKERS, to.encode(), marker)
                        done.add(marker)
                        results.append({**row, "result": "sent back", "to": to})
                return {"data": results}


async def _edited(
    call: Call, to: str, chosen: Body, formats: Body, record: Raw
) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]:
    """The record's own bytes, and what the request has instead."""
    key, value = record.key, record.value
    headers = redriven_headers(record.headers)
    new_key, new_value, new_headers = await encoded_record(call, to, chosen, formats)
    if "key" in chosen.fields:
        key = new_key
    if "value" in chosen.fields:
        value = new_value
    if "headers" in chosen.fields:
        headers = redriven_headers(new_headers)
    return key, value, headers


def _key(topic: str, record: Raw) -> bytes:
    return marker_key(topic, record.partition, record.offset)


async def _make_markers(call: Call) -> None:
    with contextlib.suppress(TopicExistsError):
        await call.admin.create_topics(
            [NewTopic(MARKERS, 1, configs={"cleanup.policy": "compact"})]
        )


async def _markers(call: Call, topic: str) -> set[bytes]:
    """The records of the topic that have been sent back."""
    place = TopicPartition(MARKERS, 0)
    found: set[bytes] = set()
    start = topic.encode() + b"|"
    if MARKERS in (await call.admin.describe_topics([MARKERS], check=False)).errors:
        # Nothing has been sent back yet.
        return found
    ends = await call.admin.list_offsets(
        {place: OffsetSpec.latest()}, isolation_level="read_committed"
    )
    async with (
        asyncio.timeout(MARKERS_S),
        call.clients.consumer(isolation_level="read_committed") as consumer,
    ):
        consumer.assign([place])
        consumer.seek_to_beginning()
        while await consumer.position(place) < ends[place].offset:
            for record in await consumer.poll(0.5):
                if record.key is not None and record.key.startswith(start):
                    found.add(record.key)
    return found
