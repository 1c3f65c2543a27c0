"""What the operations of an admin client have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from moldau.client.admin.driver import NO_CODES, Ask, Call, Driver
from moldau.client.admin.routes import Route
from moldau.client.errors import KafkaError
from moldau.client.results import Results
from moldau.client.topics import Node, TopicPartition
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import MetadataRequest, MetadataResponse

__all__ = ["AdminBase", "Listings", "by_topic", "node_of", "several"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")


class Listings(list[T]):
    """What several brokers listed; `errors` has those that did not answer, by node id."""

    errors: dict[int, KafkaError]

    def __init__(self, found: Iterable[T], errors: Mapping[int, KafkaError]) -> None:
        super().__init__(found)
        self.errors = dict(errors)


class AdminBase:
    """An area of operations: what one object of it does goes through one driver."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    async def _run(
        self,
        what: str,
        keys: Iterable[K],
        route: Route[K],
        ask: Ask[K, V],
        *,
        timeout: float | None,
        check: bool,
        retried: frozenset[ErrorCode] = NO_CODES,
        refused: Mapping[K, KafkaError] | None = None,
    ) -> Results[K, V]:
        wanted = several(keys)
        deadline = self._driver.deadline(timeout)
        results = await self._driver.run(
            what, wanted, route, ask, deadline=deadline, retried=retried, refused=refused
        )
        return results.check() if check else results

    async def _run_one(
        self,
        what: str,
        route: Route[None],
        ask: Callable[[Call], Awaitable[V]],
        *,
        timeout: float | None,
        retried: frozenset[ErrorCode] = NO_CODES,
    ) -> V:
        deadline = self._driver.deadline(timeout)
        return await self._driver.run_one(what, route, ask, deadline=deadline, retried=retried)

    async def _broker_ids(self, call: Call) -> list[int]:
        """All brokers that are alive, as one of them knows them."""
        request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
        response: MetadataResponse = await call(request)
        return sorted(each.node_id for each in response.brokers)


def several(names: Iterable[T]) -> list[T]:
    """Names as a list. One in place of several is refused: a text would be taken for its letters,
    and to delete those is not what anybody wants."""
    if isinstance(names, str):
        raise TypeError(f"several names are expected: [{names!r}], not {names!r}")
    if not isinstance(names, Iterable) or (isinstance(names, tuple) and hasattr(names, "_fields")):
        raise TypeError(f"a list is expected: [{names!r}], not {names!r}")
    return list(names)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partition numbers by topic, in the order given."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


def node_of(nodes: Mapping[int, Node], node_id: int) -> Node:
    """A node by its id; one that is not known has neither host nor port."""
    return nodes.get(node_id) or Node(node_id, "", -1)
