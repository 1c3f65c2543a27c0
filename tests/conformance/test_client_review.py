"""Odd things that applications do with their clients, and what must not come of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client import Producer
from moldau.testing import Broker


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    with Broker() as node:
        yield node


def test_a_delivery_callback_that_exits_does_not_end_the_producer(node: Broker) -> None:
    def leave(_: Any, __: Any) -> None:
        sys.exit(3)

    with Producer(bootstrap_servers=node.bootstrap_servers) as producer:
        producer.send("exits", b"1", on_delivery=leave).result(10)
        assert producer.send("exits", b"2").result(10).offset == 1


def test_a_topic_without_a_name_is_forgotten_at_once(node: Broker) -> None:
    with Producer(bootstrap_servers=node.bootstrap_servers) as producer:
        with pytest.raises(TypeError, match="topic must be a str"):
            producer.partitions_for(None)  # type: ignore[arg-type]
        assert producer.send("nameless", b"1").result(10).offset == 0
        assert len(producer.partitions_for("nameless")) == 1
