"""What the live view shows: read from the topics while they are written, never asked of services.

A thread follows the topics, another asks for the lag of each group now and then.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from moldau.client import Admin, Consumer, ConsumerRecord, OffsetSpec, TopicPartition
from moldau.client.errors import KafkaError
from orders import topics
from orders.demo.checks import Revenue
from orders.model import VALIDATED, InvalidOrder, Order, decoded

__all__ = ["GROUPS", "Seen", "Watcher"]

log = logging.getLogger("orders")

#: Every consumer group of the services, with what it reads.
GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "order-details": (topics.ORDERS,),
    "fraud-by-customer": (topics.ORDERS,),
    "fraud": (topics.ORDERS_BY_CUSTOMER,),
    "inventory-by-product": (topics.ORDERS,),
    "inventory": (topics.ORDERS_BY_PRODUCT,),
    "aggregator": (topics.ORDERS, topics.ORDER_VALIDATIONS),
    "payments": (topics.ORDERS,),
    "emails": (topics.ORDERS, topics.PAYMENTS),
    "postman": (topics.EMAILS,),
}
_TOPICS: Final = (topics.ORDERS, topics.EMAILS, topics.REVENUE)
_LAG_EVERY_S: Final = 1.0
_POLL_S: Final = 0.2
_PAUSE_S: Final = 1.0
_LATENCIES: Final = 1000
_MAILS: Final = 8
_MINUTES_MAX: Final = 10_000
_OPEN_MAX: Final = 100_000


@dataclass(slots=True)
class Seen:
    """So far."""

    created: int = 0
    states: Counter[str] = field(default_factory=Counter)
    emails: int = 0
    #: Seconds from CREATED to a final state, both as they were seen here.
    latencies: deque[float] = field(default_factory=lambda: deque(maxlen=_LATENCIES))
    #: By the pipeline, and as counted here.
    revenue: Revenue = field(default_factory=dict)
    counted: Revenue = field(default_factory=dict)
    mails: deque[str] = field(default_factory=lambda: deque(maxlen=_MAILS))
    lags: dict[str, int] = field(default_factory=dict)

    @property
    def finals(self) -> int:
        return sum(self.states.values())


class Watcher:
    def __init__(self, bootstrap_servers: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._config: dict[str, Any] = {
            "bootstrap.servers": bootstrap_servers,
            "client.id": "orders-demo",
        }
        self._clock = clock
        self._stopping = threading.Event()
        self.lock = threading.Lock()
        self.seen = Seen()
        self._open: dict[str, float] = {}
        self._threads = [
            threading.Thread(target=self._repeat, args=(work,), name=f"watch-{work.__name__}")
            for work in (self._follow, self._ask_lags)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _repeat(self, work: Callable[[], None]) -> None:
        while not self._stopping.is_set():
            try:
                work()
            except KafkaError as error:
                log.warning("the view starts again after %s", error)
                with self.lock:
                    self.seen = Seen(lags=self.seen.lags)
                self._stopping.wait(_PAUSE_S)

    def _follow(self) -> None:
        with Consumer(
            self._config, auto_offset_reset="earliest", isolation_level="read_committed"
        ) as consumer:
            consumer.assign(
                [
                    TopicPartition(topic, each.partition)
                    for topic in _TOPICS
                    for each in consumer.partitions_for(topic)
                ]
            )
            while not self._stopping.is_set():
                records = consumer.poll(_POLL_S)
                with self.lock:
                    for record in records:
                        self._see(record)

    def _see(self, record: ConsumerRecord) -> None:
        try:
            value = decoded(record.value)
            if record.topic == topics.ORDERS:
                self._see_order(Order.from_json(value))
            elif value is not None and record.topic == topics.EMAILS:
                self.seen.emails += 1
                self.seen.mails.append(f"{value.get('to') or 'nobody'}: {value.get('subject')}")
            elif value is not None:
                row = (value["orders"], value["revenue_cents"])
                self.seen.revenue[record.key.decode()] = row
                _bound(self.seen.revenue)
        except (InvalidOrder, KeyError, AttributeError) as error:
            log.debug("passed over: %s", error)

    def _see_order(self, order: Order) -> None:
        if not order.is_final:
            self.seen.created += 1
            self._open[order.id] = self._clock()
            while len(self._open) > _OPEN_MAX:
                del self._open[next(iter(self._open))]
            return
        self.seen.states[order.state] += 1
        since = self._open.pop(order.id, None)
        if since is not None:
            self.seen.latencies.append(self._clock() - since)
        if order.state == VALIDATED:
            minute = order.created_at[:16] + ":00Z"
            count, cents = self.seen.counted.get(minute, (0, 0))
            self.seen.counted[minute] = (count + 1, cents + order.value_cents)
            _bound(self.seen.counted)

    def _ask_lags(self) -> None:
        names = sorted({topic for reads in GROUPS.values() for topic in reads})
        places = [
            TopicPartition(name, number) for name in names for number in range(topics.PARTITIONS)
        ]
        with Admin(self._config) as admin:
            while not self._stopping.wait(_LAG_EVERY_S):
                ends = admin.list_offsets(dict.fromkeys(places, OffsetSpec.latest()))
                committed = admin.list_consumer_group_offsets(dict.fromkeys(GROUPS), check=False)
                for group, reads in GROUPS.items():
                    if group in committed.errors:
                        continue
                    done = committed.values_by_key[group]
                    offsets = {place: each.offset for place, each in done.items() if each}
                    lag = sum(
                        ends[place].offset - offsets.get(place, 0)
                        for place in places
                        if place.topic in reads
                    )
                    with self.lock:
                        self.seen.lags[group] = max(0, lag)


def _bound(revenue: Revenue) -> None:
    while len(revenue) > _MINUTES_MAX:
        del revenue[min(revenue)]
