"""Posts generated orders to the orders service at their time: `python -m orders.load`.

An order that got no answer, or the answer to try again, is posted again: that is safe because an
order's id makes the request idempotent. When the service cannot keep up the plan waits; nothing is
left out and no more than a few requests are under way.
"""

from __future__ import annotations

import argparse
import http.client
import json
import logging
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import urlsplit

from moldau.client import Producer
from orders import topics
from orders.generator import PRODUCTS, STOCK, Planned, Settings, customers, plan
from orders.model import encoded, iso

__all__ = ["Load", "get_order", "seed_tables"]

log = logging.getLogger("orders")

_SENDERS: Final = 8
_UNDER_WAY_MAX: Final = 64
_TRIES_MAX: Final = 20
_PAUSE_S: Final = 0.5
_TIMEOUT_S: Final = 30.0


def seed_tables(bootstrap_servers: str, settings: Settings) -> None:
    """Customers and stock, as the shop's other systems would have written them."""
    with Producer(bootstrap_servers=bootstrap_servers) as producer:
        sent = [
            producer.send(topics.CUSTOMERS, encoded(row), key=key)
            for key, row in customers(settings).items()
        ]
        sent += [
            producer.send(
                topics.WAREHOUSE_INVENTORY,
                encoded({"product": product, "stock": stock}),
                key=product,
            )
            for product, stock in STOCK.items()
        ]
        for future in sent:
            future.result(timeout=_TIMEOUT_S)


class Load:
    """Sends in threads; `counts` and `posted` may be read while it runs."""

    def __init__(self, url: str, settings: Settings) -> None:
        self._address = urlsplit(url).netloc
        self._settings = settings
        self._queue: queue.Queue[Planned | None] = queue.Queue(_UNDER_WAY_MAX)
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        #: By kind of order, and by outcome.
        self.counts: Counter[str] = Counter()
        #: Requests that were accepted, by order id.
        self.posted: dict[str, dict[str, Any]] = {}

    def stop(self) -> None:
        self._stopping.set()

    def run(self, seconds: float) -> None:
        senders = [threading.Thread(target=self._send_all) for _ in range(_SENDERS)]
        for sender in senders:
            sender.start()
        try:
            self._feed(plan(self._settings, round(time.time() * 1000)), seconds)
        finally:
            for _ in senders:
                self._queue.put(None)
            for sender in senders:
                sender.join()

    def post_first(self) -> None:
        """One order ahead of all others, so that its readers get going."""
        request = {
            "id": f"{self._settings.run}-first",
            "customer_id": "customer-0000",
            "product": PRODUCTS[0],
            "quantity": 1,
            "price_cents": 100,
            "created_at": iso(round(time.time() * 1000)),
        }
        self._queue.put(Planned(0, "good", request))
        self._queue.put(None)
        self._send_all()

    def _feed(self, planned: Iterable[Planned], seconds: float) -> None:
        start = time.monotonic()
        for each in planned:
            if each.due_ms > seconds * 1000:
                return
            if self._stopping.wait(max(0.0, start + each.due_ms / 1000 - time.monotonic())):
                return
            self._queue.put(each)

    def _send_all(self) -> None:
        connection = http.client.HTTPConnection(self._address, timeout=_TIMEOUT_S)
        while (each := self._queue.get()) is not None:
            status = self._post(connection, each)
            with self._lock:
                self.counts[each.kind] += 1
                self.counts[_OUTCOMES.get(status, "refused")] += 1
                if status in (201, 200):
                    self.posted[each.request["id"]] = each.request
        connection.close()

    def _post(self, connection: http.client.HTTPConnection, each: Planned) -> int:
        """The answer's status, 0 if there was none."""
        body = json.dumps(each.request)
        for _ in range(_TRIES_MAX):
            try:
                connection.request("POST", "/v1/orders", body)
                with connection.getresponse() as response:
                    response.read()
                if response.status != http.HTTPStatus.SERVICE_UNAVAILABLE:
                    return response.status
            except (OSError, http.client.HTTPException) as error:
                log.debug("posted again after %s", error)
                connection.close()
            with self._lock:
                self.counts["tried again"] += 1
            if self._stopping.wait(_PAUSE_S):
                break
        return 0


_OUTCOMES: Final = {201: "created", 200: "repeated", 0: "unanswered"}


def get_order(url: str, order_id: str, *, wait: str = "", timeout: float = 10.0) -> dict[str, Any]:
    """The order as the service knows it."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=timeout + _TIMEOUT_S)
    try:
        query = f"?wait={wait}&timeout={timeout}" if wait else ""
        connection.request("GET", f"/v1/orders/{order_id}{query}")
        with connection.getresponse() as response:
            found: dict[str, Any] = json.loads(response.read())
            return found
    finally:
        connection.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m orders.load", description="post orders")
    parser.add_argument("--url", default="http://127.0.0.1:8080", help="the orders service")
    parser.add_argument("--bootstrap-server", default="127.0.0.1:9092", metavar="HOST:PORT",
                        help="where customers and stock are written to first")  # fmt: skip
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=50.0, help="orders per second")
    parser.add_argument("--disorder", type=float, default=0.1, help="share of late orders, 0 to 1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--run", default=f"run{round(time.time()) % 10**7}",
                        help="what order ids begin with")  # fmt: skip
    given = parser.parse_args()
    try:
        settings = Settings(
            rate=given.rate, disorder=given.disorder, seed=given.seed, run=given.run
        )
    except ValueError as error:
        parser.error(str(error))
    seed_tables(given.bootstrap_server, settings)
    load = Load(given.url, settings)
    try:
        load.run(given.seconds)
    except KeyboardInterrupt:
        load.stop()
    print(dict(sorted(load.counts.items())))
    return 0 if not load.counts["unanswered"] else 1


if __name__ == "__main__":
    sys.exit(main())
