"""What the orders service answers from: the newest state of every order, read from the topic.

Every instance reads the whole topic, so that each can answer for each order. An order that this
instance has just written is in the view at once: who posts can get.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from moldau.client import Admin, Consumer, OffsetSpec, TopicPartition
from moldau.client.errors import KafkaError, KafkaTimeoutError
from orders import topics
from orders.model import InvalidOrder, Order, decoded

__all__ = ["OrderTable", "View"]

log = logging.getLogger("orders")

ORDERS_MAX: Final = 1_000_000
_POLL_S: Final = 0.5
_PAUSE_S: Final = 1.0
_LOAD_S_MAX: Final = 120.0


class OrderTable:
    """By id, for several threads; beyond `orders_max` the oldest is given up."""

    def __init__(self, orders_max: int = ORDERS_MAX) -> None:
        self._orders: OrderedDict[str, Order] = OrderedDict()
        self._orders_max = orders_max
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return len(self._orders)

    def get(self, order_id: str) -> Order | None:
        with self._changed:
            return self._orders.get(order_id)

    def put(self, order: Order) -> None:
        with self._changed:
            known = self._orders.get(order.id)
            # The writer's own CREATED may come after the topic's final state.
            if known is not None and known.is_final:
                return
            self._orders[order.id] = order
            while len(self._orders) > self._orders_max:
                self._orders.popitem(last=False)
            self._changed.notify_all()

    def wait(self, order_id: str, reached: Callable[[Order], bool], timeout: float) -> Order | None:
        """The order as soon as it has reached this, else as it is when time is over."""

        def arrived() -> bool:
            order = self._orders.get(order_id)
            return order is not None and reached(order)

        with self._changed:
            self._changed.wait_for(arrived, timeout)
            return self._orders.get(order_id)


class View:
    """Follows the topic in a thread."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.orders = OrderTable()
        self._config: dict[str, Any] = {
            "bootstrap.servers": bootstrap_servers,
            "client.id": "orders-view",
        }
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="orders-view")
        self._loaded = threading.Event()

    def start(self) -> None:
        """Returns when all that was in the topic is in the view."""
        self._thread.start()
        if not self._loaded.wait(_LOAD_S_MAX):
            self.stop()
            raise KafkaTimeoutError(f"topic {topics.ORDERS} was not read in {_LOAD_S_MAX:.0f} s")

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._follow()
            except KafkaError as error:
                log.warning("the view starts again after %s", error)
                self._stopping.wait(_PAUSE_S)

    def _follow(self) -> None:
        with Consumer(
            self._config, auto_offset_reset="earliest", isolation_level="read_committed"
        ) as consumer:
            infos = consumer.partitions_for(topics.ORDERS)
            places = [TopicPartition(topics.ORDERS, each.partition) for each in infos]
            with Admin(self._config) as admin:
                found = admin.list_offsets(dict.fromkeys(places, OffsetSpec.latest()))
            ends = {place: found[place].offset for place in places}
            consumer.assign(places)
            while not self._stopping.is_set():
                for record in consumer.poll(_POLL_S):
                    self._put(record.value)
                if not self._loaded.is_set() and all(
                    consumer.position(place) >= end for place, end in ends.items()
                ):
                    self._loaded.set()

    def _put(self, value: bytes | None) -> None:
        try:
            self.orders.put(Order.from_json(decoded(value)))
        except InvalidOrder as error:
            log.warning("the view passes over what is no order: %s", error)
