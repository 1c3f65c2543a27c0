"""One session by each client: what alice writes and reads, and what she is denied.

A session returns what its user sees, with the error codes that Kafka gives to what is denied.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AioTokenProvider
from aiokafka.errors import BrokerResponseError as AioError
from aiokafka.helpers import create_ssl_context
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import KafkaException
from confluent_kafka import Producer as ConfluentProducer
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import BrokerResponseError
from kafka.net.sasl.oauth import AbstractTokenProvider

from moldau.client import AsyncConsumer, AsyncProducer, Consumer, Producer
from moldau.client.errors import KafkaError
from moldau.wire.errors import ErrorCode
from support.java import run_program
from support.processes import write_properties
from support.secured_site import DELEGATION_TOKEN, GROUPS, HIDDEN, OPEN, READABLE, Site

__all__ = ["EXPECTED_CODES", "SESSIONS", "Seen", "java_sessions", "values_of"]

SECONDS_MAX = 60.0


class Seen(NamedTuple):
    values: list[str]
    """Of what the session itself wrote."""
    codes: list[int]
    """Of a write to the topic that may only be read, a write to the hidden topic, a subscription to
    the hidden topic, and one with a group that is not hers."""


EXPECTED_CODES = [
    int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    int(ErrorCode.GROUP_AUTHORIZATION_FAILED),
]


def values_of(name: str) -> list[str]:
    return [f"{name}.{number}" for number in range(6)]


class _Subscription(NamedTuple):
    topic: str
    group: str


def _subscriptions(name: str) -> tuple[_Subscription, _Subscription]:
    """Those that are denied."""
    return _Subscription(HIDDEN, f"{GROUPS}{name}-hidden"), _Subscription(OPEN, f"not-hers-{name}")


class _Collected:
    """The records of one session, among those of others."""

    def __init__(self, name: str) -> None:
        self._wanted = values_of(name)
        self._found: list[str] = []
        self._deadline = time.monotonic() + SECONDS_MAX

    @property
    def complete(self) -> bool:
        return len(self._found) >= len(self._wanted)

    def add(self, value: Any) -> None:
        assert time.monotonic() < self._deadline, self._found
        if (text := bytes(value).decode()) in self._wanted:
            self._found.append(text)

    def check(self) -> None:
        assert time.monotonic() < self._deadline, self._found

    @property
    def values(self) -> list[str]:
        return sorted(self._found)


# moldau.client.


def moldau_client(site: Site, bootstrap: str, mechanism: str, name: str) -> Seen:
    settings: dict[str, Any] = site.client_settings(bootstrap, mechanism)
    codes = []
    with Producer(settings) as producer:
        for future in [producer.send(OPEN, value.encode()) for value in values_of(name)]:
            future.result(SECONDS_MAX)
        for topic in (READABLE, HIDDEN):
            try:
                producer.send(topic, b"denied").result(SECONDS_MAX)
                codes.append(0)
            except KafkaError as error:
                codes.append(int(error.code or 0))
    reading = settings | {"auto.offset.reset": "earliest"}
    collected = _Collected(name)
    with Consumer(reading | {"group.id": GROUPS + name}) as consumer:
        consumer.subscribe([OPEN])
        while not collected.complete:
            for record in consumer.poll(5.0):
                collected.add(record.value)
            collected.check()
    for denied in _subscriptions(name):
        with Consumer(reading | {"group.id": denied.group}) as consumer:
            consumer.subscribe([denied.topic])
            try:
                consumer.poll(SECONDS_MAX)
                codes.append(0)
            except KafkaError as error:
                codes.append(int(error.code or 0))
    return Seen(collected.values, codes)


def moldau_asyncio(site: Site, bootstrap: str, mechanism: str, name: str) -> Seen:
    async def session() -> Seen:
        settings: dict[str, Any] = site.client_settings(bootstrap, mechanism)
        codes = []
        async with AsyncProducer(settings) as producer:
            for sent in [await producer.send(OPEN, value.encode()) for value in values_of(name)]:
                await sent
            for topic in (READABLE, HIDDEN):
                try:
                    await (await producer.send(topic, b"denied"))
                    codes.append(0)
                except KafkaError as error:
                    codes.append(int(error.code or 0))
        reading = settings | {"auto.offset.reset": "earliest"}
        collected = _Collected(name)
        async with AsyncConsumer(reading | {"group.id": GROUPS + name}) as consumer:
            consumer.subscribe([OPEN])
            while not collected.complete:
                for record in await consumer.poll(5.0):
                    collected.add(record.value)
        for denied in _subscriptions(name):
            async with AsyncConsumer(reading | {"group.id": denied.group}) as consumer:
                consumer.subscribe([denied.topic])
                try:
                    await consumer.poll(SECONDS_MAX)
                    codes.append(0)
                except KafkaError as error:
                    codes.append(int(error.code or 0))
        return Seen(collected.values, codes)

    return asyncio.run(asyncio.wait_for(session(), 3 * SECONDS_MAX))


# confluent-kafka.


def confluent(site: Site, bootstrap: str, mechanism: str, name: str) -> Seen:
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(site.authority.certificate),
        "sasl.mechanism": mechanism,
    }
    if mechanism == "OAUTHBEARER":
        settings["oauth_cb"] = lambda _: (site.issuer.token("alice"), time.time() + 3_600)
    else:
        settings |= {"sasl.username": "alice", "sasl.password": "alice-secret"}
    producer = ConfluentProducer(settings)
    delivered: list[Any] = []
    report: Callable[[Any, Any], None] = lambda error, _: delivered.append(error)  # noqa: E731
    for value in values_of(name):
        producer.produce(OPEN, value.encode(), on_delivery=report)
    assert producer.flush(SECONDS_MAX) == 0
    assert set(delivered) == {None}
    codes = []
    for topic in (READABLE, HIDDEN):
        delivered.clear()
        try:
            producer.produce(topic, b"denied", on_delivery=report)
            assert producer.flush(SECONDS_MAX) == 0
        except KafkaException as raised:
            # The denial came before the record was in its queue.
            delivered.append(raised.args[0])
        codes.append(delivered[0].code() if delivered[0] else 0)
    reading = settings | {"auto.offset.reset": "earliest"}
    collected = _Collected(name)
    consumer = ConfluentConsumer(reading | {"group.id": GROUPS + name})
    consumer.subscribe([OPEN])
    while not collected.complete:
        for message in consumer.consume(100, 0.5):
            assert message.error() is None, message.error()
            collected.add(message.value())
        collected.check()
    consumer.close()
    codes += [_confluent_denial(reading, denied) for denied in _subscriptions(name)]
    return Seen(collected.values, codes)


def _confluent_denial(settings: dict[str, Any], denied: _Subscription) -> int:
    consumer = ConfluentConsumer(settings | {"group.id": denied.group})
    consumer.subscribe([denied.topic])
    try:
        message = consumer.poll(SECONDS_MAX)
        error = message.error() if message is not None else None
        return int(error.code()) if error is not None else 0
    except KafkaException as raised:
        return int(raised.args[0].code())
    finally:
        consumer.close()


# kafka-python.


class _Tokens(AbstractTokenProvider):  # type: ignore[misc, unused-ignore]
    def __init__(self, site: Site) -> None:
        self._site = site

    def token(self) -> str:
        return self._site.issuer.token("alice")


class _AioTokens(AioTokenProvider):  # type: ignore[misc, unused-ignore]
    def __init__(self, site: Site) -> None:
        self._site = site

    async def token(self) -> str:
        return self._site.issuer.token("alice")


def _python_settings(bootstrap: str, mechanism: str, tokens: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "bootstrap_servers": bootstrap.split(","),
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": mechanism,
    }
    match mechanism:
        case "OAUTHBEARER":
            return settings | {"sasl_oauth_token_provider": tokens}
        case "GSSAPI":
            return settings | {"sasl_kerberos_service_name": "kafka"}
        case _:
            return settings | {
                "sasl_plain_username": "alice",
                "sasl_plain_password": "alice-secret",
            }


def kafka_python(site: Site, bootstrap: str, mechanism: str, name: str) -> Seen:
    settings = _python_settings(bootstrap, mechanism, _Tokens(site))
    settings["ssl_cafile"] = str(site.authority.certificate)
    codes = []
    producer = KafkaProducer(**settings)
    for future in [producer.send(OPEN, value.encode()) for value in values_of(name)]:
        future.get(SECONDS_MAX)
    for topic in (READABLE, HIDDEN):
        try:
            producer.send(topic, b"denied").get(SECONDS_MAX)
            codes.append(0)
        except BrokerResponseError as error:
            codes.append(error.errno)
    producer.close()
    reading = settings | {"auto_offset_reset": "earliest"}
    collected = _Collected(name)
    consumer = KafkaConsumer(OPEN, group_id=GROUPS + name, **reading)
    while not collected.complete:
        for records in consumer.poll(500).values():
            for record in records:
                collected.add(record.value)
        collected.check()
    consumer.close()
    for denied in _subscriptions(name):
        consumer = KafkaConsumer(group_id=denied.group, **reading)
        if denied.topic == HIDDEN:
            # It logs what a subscription is denied, and raises it for an assignment.
            consumer.assign([TopicPartition(HIDDEN, 0)])
        else:
            consumer.subscribe([denied.topic])
        try:
            consumer.poll(SECONDS_MAX * 1000)
            codes.append(0)
        except BrokerResponseError as error:
            codes.append(error.errno)
        consumer.close()
    return Seen(collected.values, codes)


# aiokafka.


def aiokafka(site: Site, bootstrap: str, mechanism: str, name: str) -> Seen:
    async def session() -> Seen:
        settings = _python_settings(bootstrap, mechanism, _AioTokens(site))
        settings["ssl_context"] = create_ssl_context(cafile=str(site.authority.certificate))
        codes = []
        async with AIOKafkaProducer(**settings, acks="all") as producer:
            for value in values_of(name):
                await producer.send_and_wait(OPEN, value.encode())
            for topic in (READABLE, HIDDEN):
                try:
                    await producer.send_and_wait(topic, b"denied")
                    codes.append(0)
                except AioError as error:
                    codes.append(error.errno)
        reading = settings | {"auto_offset_reset": "earliest"}
        collected = _Collected(name)
        async with AIOKafkaConsumer(OPEN, group_id=GROUPS + name, **reading) as consumer:
            while not collected.complete:
                collected.add((await consumer.getone()).value)
        for denied in _subscriptions(name):
            codes.append(await _aiokafka_denial(reading, denied))
        return Seen(collected.values, codes)

    return asyncio.run(asyncio.wait_for(session(), 3 * SECONDS_MAX))


async def _aiokafka_denial(settings: dict[str, Any], denied: _Subscription) -> int:
    consumer = AIOKafkaConsumer(denied.topic, group_id=denied.group, **settings)
    try:
        await consumer.start()
        await consumer.getone()
        return 0
    except AioError as error:
        return int(error.errno)
    finally:
        await consumer.stop()


# The Java client.


def java_sessions(site: Site, bootstrap: str, folder: Path) -> dict[str, Seen]:
    """By mechanism; one program for all, since starting it takes longer than they do."""
    folder.mkdir(parents=True, exist_ok=True)
    words = []
    for mechanism in (*site.mechanisms, DELEGATION_TOKEN):
        path = folder / f"{mechanism}.properties"
        words += [
            f"java-{mechanism}",
            str(write_properties(path, _java(site, bootstrap, mechanism))),
        ]
    printed = run_program("SecuredSession.java", *site.java_properties, GROUPS, *words)
    found = {}
    for line in printed.splitlines():
        name, values, codes = line.split("\t")
        found[name.removeprefix("java-")] = Seen(
            sorted(values.split(",")), [int(code) for code in codes.split(",")]
        )
    return found


def _java(site: Site, bootstrap: str, mechanism: str) -> dict[str, str]:
    settings = site.client_settings(bootstrap, mechanism)
    if mechanism == "OAUTHBEARER":
        handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
        settings["sasl.login.callback.handler.class"] = handler
    return settings


SESSIONS: dict[str, Callable[[Site, str, str, str], Seen]] = {
    "moldau.client": moldau_client,
    "moldau.client-asyncio": moldau_asyncio,
    "confluent-kafka": confluent,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
}
