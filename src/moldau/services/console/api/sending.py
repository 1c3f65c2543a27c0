"""Sending: produce records, send records again, copy them to another topic."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable
from dataclasses import asdict
from typing import Any, Final

from moldau.client.topics import TopicPartition
from moldau.http.machine.json_text import dump_json
from moldau.http.machine.routes import Route
from moldau.http.request import Answer, Request
from moldau.services.console.api.bodies import Body, body_of
from moldau.services.console.api.messages import scan_request
from moldau.services.console.api.routing import CLUSTER, NDJSON, api, fields
from moldau.services.console.backend import Backend, Call
from moldau.services.console.machine.errors import bad_request, console_error
from moldau.services.console.machine.masks import hides_less, rules_for
from moldau.services.console.scanning import Pace, Raw, Scan, ScanRequest

__all__ = ["SendingHandlers", "encoded_record", "keep_hidden", "read_records", "require_topic"]

TOPIC: Final = CLUSTER + "/topics/{topic}"
RECORDS_MAX: Final = 1000
READ_S: Final = 20.0


class SendingHandlers:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        tag = "messages"
        return [
            api("POST", f"{TOPIC}/records", self.produce, "Send records", tag=tag,
                body=fields("records", records="array", key_format="string",
                            value_format="string", key_schema_id="integer",
                            value_schema_id="integer")),
            api("POST", f"{TOPIC}/resend", self.resend,
                "Send records of the topic again, to it or to another, byte for byte", tag=tag,
                body=fields("records", records="array", to="string")),
            api("POST", f"{TOPIC}/copy", self.copy, "Copy records that a search finds", tag=tag,
                body=fields("to", to="string", start="string", contains="string",
                            expression="string", limit="integer", keep_partition="boolean"),
                produces=(NDJSON,), timeout_ms=0),
        ]  # fmt: skip

    async def produce(self, request: Request) -> dict[str, Any]:
        body = await body_of(request)
        topic = request.path["topic"]
        wanted = body.objects("records")
        if not 1 <= len(wanted) <= RECORDS_MAX:
            raise bad_request(f"Send between 1 and {RECORDS_MAX} records.")
        async with self._backend.change(
            request, "produce", topic, {"records": len(wanted)}
        ) as call:
            await require_topic(call, topic)
            futures = []
            for each in wanted:
                key, value, headers = await encoded_record(call, topic, each, body)
                futures.append(
                    await call.clients.producer.send(
                        topic,
                        value,
                        key,
                        partition=each.optional_integer("partition"),
                        timestamp=each.optional_integer("timestamp"),
                        headers=headers,
                    )
                )
            stored = await asyncio.gather(*futures)
            return {"data": [{"partition": at.partition, "offset": at.offset} for at in stored]}

    async def resend(self, request: Request) -> dict[str, Any]:
        body = await body_of(request)
        topic = request.path["topic"]
        to = body.text("to", topic)
        places = _places(topic, body)
        async with self._backend.change(request, "resend", f"{topic} to {to}", body.fields) as call:
            keep_hidden(self._backend, call, topic, to)
            await require_topic(call, to)
            records = await read_records(call, places)
            futures = [
                await call.clients.producer.send(
                    to, each.value, each.key, headers=list(each.headers)
                )
                for each in records
            ]
            stored = await asyncio.gather(*futures)
            return {"data": [{"partition": at.partition, "offset": at.offset} for at in stored]}

    async def copy(self, request: Request) -> Answer:
        body = await body_of(request)
        topic, to = request.path["topic"], body.text("to")
        if to == topic:
            raise bad_request("Copy to another topic: copied to itself, a search has no end.")
        wanted = scan_request(self._backend, body, default_limit=2**62, limited=False)
        self._backend.admit(request)

        async def chunks() -> AsyncGenerator[bytes, None]:
            with self._backend.streaming():
                async for chunk in self._copied(request, wanted, body, to):
                    yield chunk

        return Answer(chunks=chunks(), media_type=NDJSON)

    async def _copied(
        self, request: Request, wanted: ScanRequest, body: Body, to: str
    ) -> AsyncGenerator[bytes, None]:
        topic, keep = request.path["topic"], body.flag("keep_partition")
        gone = asyncio.create_task(request.disconnected())
        try:
            async with self._backend.change(
                request, "copy", f"{topic} to {to}", body.fields
            ) as call:
                # Fields that are hidden from the user stay hidden from the filter, too.
                masks = rules_for(self._backend.config.masks, topic, call.user)
                scan, pace, copied = Scan(call, topic, wanted, masks), Pace(), 0
                if masks:
                    raise bad_request(f"Fields of {topic} are hidden: it cannot be copied.")
                await require_topic(call, to)
                async with contextlib.aclosing(
                    scan.run(lambda: gone.done() or request.stopping.is_set())
                ) as rounds:
                    async for batch in rounds:
                        futures = [
                            await call.clients.producer.send(
                                to,
                                each.raw.value,
                                each.raw.key,
                                partition=each.raw.partition if keep else None,
                                timestamp=each.raw.timestamp,
                                headers=list(each.raw.headers),
                            )
                            for each in batch
                        ]
                        if futures:
                            await asyncio.gather(*futures)
                        copied += len(futures)
                        if pace.is_due():
                            yield _line({"progress": asdict(scan.progress), "copied": copied})
            yield _line({"progress": asdict(scan.progress), "copied": copied, "done": True})
        except Exception as error:
            refused = console_error(error)
            if refused is None and not hasattr(error, "status"):
                raise
            yield _line({"error": str(refused or error), "done": True})
        finally:
            gone.cancel()


async def require_topic(call: Call, topic: str) -> None:
    """A producer would wait for a topic that is not there. Raises KafkaError."""
    await call.admin.describe_topics([topic])


def keep_hidden(backend: Backend, call: Call, source: str, target: str) -> None:
    """Records go byte for byte, so nobody may send them where hidden fields are not hidden. Raises
    HttpError."""
    if hides_less(backend.config.masks, source, target, call.user):
        raise bad_request(
            f"Fields of {source} are hidden and would be visible in {target}: send to a topic "
            "that has the same rules."
        )


def _line(found: dict[str, Any]) -> bytes:
    return dump_json(found) + b"\n"


def _places(topic: str, body: Body) -> list[tuple[TopicPartition, int]]:
    wanted = body.objects("records")
    if not 1 <= len(wanted) <= RECORDS_MAX:
        raise bad_request(f"Choose between 1 and {RECORDS_MAX} records.")
    return [
        (TopicPartition(topic, each.integer("partition")), each.integer("offset"))
        for each in wanted
    ]


async def encoded_record(
    call: Call, topic: str, record: Body, formats: Body
) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]:
    """Raises HttpError for values that do not have their format."""
    try:
        key = await call.values.encode(
            topic,
            formats.text("key_format", "string"),
            record.fields.get("key"),
            is_key=True,
            schema_id=formats.optional_integer("key_schema_id"),
        )
        value = await call.values.encode(
            topic,
            formats.text("value_format", "string"),
            record.fields.get("value"),
            is_key=False,
            schema_id=formats.optional_integer("value_schema_id"),
        )
    except ValueError as error:
        raise bad_request(str(error)) from None
    return key, value, _headers(record)


def _headers(record: Body) -> list[tuple[str, bytes | None]]:
    found: list[tuple[str, bytes | None]] = []
    for each in record.items("headers", []):
        if not (isinstance(each, list) and len(each) == 2 and isinstance(each[0], str)):
            raise bad_request('headers must be a list of pairs: [["name", "text"], ...]')
        found.append((each[0], None if each[1] is None else str(each[1]).encode()))
    return found


async def read_records(call: Call, places: Iterable[tuple[TopicPartition, int]]) -> list[Raw]:
    """Exactly these records, in the order given. Raises HttpError if one is not there any more."""
    wanted = list(places)
    found: dict[tuple[TopicPartition, int], Raw] = {}
    try:
        async with (
            asyncio.timeout(READ_S),
            call.clients.consumer(max_poll_records="1", auto_offset_reset="none") as consumer,
        ):
            for place, offset in wanted:
                consumer.assign([place])
                consumer.seek(place, offset)
                record = None
                while record is None:
                    record = next(iter(await consumer.poll(1.0)), None)
                if record.offset != offset:
                    raise bad_request(f"{place} has no record at offset {offset} any more.")
                found[(place, offset)] = record
    except TimeoutError:
        raise bad_request("Some of the records cannot be read any more.") from None
    return [found[each] for each in wanted]
