"""A wrong argument gets a sentence that says what to pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from moldau.client import (
    Admin,
    AlterConfigOp,
    AsyncAdmin,
    AsyncConsumer,
    AsyncProducer,
    AsyncShareConsumer,
    ConfigResource,
    Consumer,
    NewTopic,
    Producer,
    ShareConsumer,
    TopicPartition,
    other_clients,
)
from moldau.client.errors import IllegalStateError, SerializationError

NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}


def test_consumers_say_what_to_pass() -> None:
    with Consumer(NOWHERE, group_id="g") as consumer:
        for call, sentence in [
            (
                lambda: consumer.commit_sync({"t": 5}),  # type: ignore[dict-item]
                "offsets are given by partition: {TopicPartition('t', 0): 5}, not by topic: "
                "{'t': 5}",
            ),
            (
                lambda: consumer.commit_sync([TopicPartition("t", 0)]),  # type: ignore[arg-type]
                "offsets are a mapping from partitions to offsets, such as "
                "{TopicPartition('orders', 0): 5}, not [TopicPartition(topic='t', partition=0)]",
            ),
            (
                lambda: consumer.commit_async({("t", 0): "5"}),  # type: ignore[dict-item]
                "the offset of t-0 is an int or an OffsetAndMetadata, not '5'",
            ),
            (
                lambda: consumer.assign(TopicPartition("t", 0)),  # type: ignore[arg-type]
                "a list of partitions is expected: [TopicPartition(topic='t', partition=0)], "
                "not TopicPartition(topic='t', partition=0)",
            ),
            (
                lambda: consumer.committed("t"),  # type: ignore[arg-type]
                "a list of partitions is expected: [TopicPartition('t', 0)]",
            ),
            (
                lambda: consumer.position("t"),  # type: ignore[arg-type]
                "a partition is a TopicPartition or (topic, number), not 't'",
            ),
        ]:
            assert refusal(call) == sentence


def test_admins_say_what_to_pass() -> None:
    orders = ConfigResource.topic("orders")
    with Admin(NOWHERE) as admin:
        for call, start in [
            (
                lambda: admin.create_topics(NewTopic("x")),  # type: ignore[arg-type]
                "a list is expected: [NewTopic(name='x'",
            ),
            (
                lambda: admin.create_topics([("x", 3)]),  # type: ignore[list-item]
                "a topic to create is a name or a NewTopic, not ('x', 3)",
            ),
            (
                lambda: admin.incremental_alter_configs({orders: {"retention.ms": "1"}}),  # type: ignore[dict-item]
                "the changes of orders are a list: [AlterConfigOp('retention.ms', '1')], not {",
            ),
            (
                lambda: admin.incremental_alter_configs({"orders": []}),  # type: ignore[dict-item]
                "configs are given by resource, such as ConfigResource.topic('orders'), not by",
            ),
            (
                lambda: admin.incremental_alter_configs({orders: AlterConfigOp("a", "b")}),
                "a list is expected: [AlterConfigOp(name='a'",
            ),
            (
                lambda: admin.describe_configs(orders),
                "a list is expected: [ConfigResource(",
            ),
        ]:
            assert refusal(call).startswith(start)


def refusal(call: Callable[[], Any]) -> str:
    with pytest.raises(TypeError) as caught:
        call()
    return str(caught.value)


def test_a_transaction_that_is_not_open_is_named() -> None:
    with Producer(NOWHERE, transactional_id="t") as producer:
        for call in (producer.commit_transaction, producer.abort_transaction):
            with pytest.raises(IllegalStateError) as caught:
                call()
            assert str(caught.value) == (
                "no transaction is open (call init_transactions() and begin_transaction() first)"
            )
        with pytest.raises(IllegalStateError, match=r"call init_transactions\(\) first"):
            producer.begin_transaction()
    with (
        Producer(NOWHERE) as producer,
        pytest.raises(IllegalStateError, match=r"set transactional\.id"),
        producer.transaction(),
    ):
        pass


@pytest.mark.parametrize("side", ["key", "value"])
def test_the_serializer_says_which_side_it_cannot_write(side: str) -> None:
    from moldau.client.serialization import resolve_serializer

    with pytest.raises(SerializationError) as caught:
        resolve_serializer(None, side == "key")("orders", 1, [])
    assert str(caught.value) == (
        f"cannot serialize the {side} (int) for topic orders (use bytes, str or None, or set "
        f"{side}.serializer, for example to 'json')"
    )


BLOCKING: list[tuple[type, dict[str, Any], dict[str, str]]] = [
    (Producer, {}, other_clients.PRODUCER_NAMES),
    (Consumer, {}, other_clients.CONSUMER_NAMES),
    (ShareConsumer, {"group_id": "g"}, other_clients.SHARE_CONSUMER_NAMES),
    (Admin, {}, other_clients.ADMIN_NAMES),
]


@pytest.mark.parametrize(("kind", "settings", "others"), BLOCKING)
def test_methods_of_other_clients_lead_to_ours(
    kind: type, settings: dict[str, Any], others: dict[str, str]
) -> None:
    with kind(NOWHERE, **settings) as client:
        for name, instead in others.items():
            with pytest.raises(AttributeError) as caught:
                getattr(client, name)
            assert str(caught.value).endswith(f"has no attribute {name!r}; use {instead}")
            ours = instead.partition("(")[0]
            if ours.isidentifier() and "=" not in instead.partition("(")[0]:
                assert hasattr(kind, ours), instead
        with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
            _ = client.nonsense


@pytest.mark.parametrize(("kind", "settings", "others"), BLOCKING)
def test_a_repr_says_which_client_it_is(
    kind: type, settings: dict[str, Any], others: dict[str, str]
) -> None:
    with kind(NOWHERE, **settings) as client:
        assert repr(client).startswith(f"<{kind.__name__} ")
        assert "127.0.0.1:1" in repr(client)
    assert repr(client).endswith(("closed>", "closed, group 'g'>"))


def test_the_twins_for_asyncio_answer_alike() -> None:
    async def look() -> None:
        for kind, settings in (
            (AsyncProducer, {}),
            (AsyncConsumer, {}),
            (AsyncShareConsumer, {"group_id": "g"}),
            (AsyncAdmin, {}),
        ):
            async with kind(NOWHERE, **settings) as client:  # type: ignore[attr-defined]
                assert repr(client).startswith(f"<{kind.__name__} ")
                with pytest.raises(AttributeError, match="; use close"):
                    _ = client.stop

    asyncio.run(look())
