"""Runs services: `python -m orders.services fraud inventory --bootstrap-server host:port`.

Every service can run several times, each with its own `--instance`: its consumer group divides the
partitions. They end with Ctrl-C or SIGTERM, after what is under way is committed.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

from orders import topics
from orders.aggregator import Aggregator
from orders.api import OrdersServer
from orders.details import Details
from orders.emails import Emails
from orders.fraud import Fraud
from orders.inventory import Inventory
from orders.payments import Payments
from orders.postman import Postman
from orders.processing import GlobalTable, Processor, Service
from orders.rekey import Rekey

__all__ = ["NAMES", "processors"]

log = logging.getLogger("orders")

_END_S_MAX: Final = 10.0

NAMES: Final = (
    "orders",
    "fraud",
    "inventory",
    "order-details",
    "aggregator",
    "payments",
    "emails",
)


class Runnable(Protocol):
    def run(self) -> None: ...

    def stop(self) -> None: ...


def _fraud() -> list[Service]:
    return [
        Service(
            name="fraud-by-customer",
            sources=(topics.ORDERS,),
            logic=lambda: Rekey(topics.ORDERS_BY_CUSTOMER, "customer_id"),
        ),
        Service(
            name="fraud",
            sources=(topics.ORDERS_BY_CUSTOMER,),
            logic=Fraud,
            changelog=topics.FRAUD_CHANGELOG,
        ),
    ]


def _inventory() -> list[Service]:
    return [
        Service(
            name="inventory-by-product",
            sources=(topics.ORDERS,),
            logic=lambda: Rekey(topics.ORDERS_BY_PRODUCT, "product"),
        ),
        Service(
            name="inventory",
            sources=(topics.ORDERS_BY_PRODUCT,),
            logic=Inventory,
            changelog=topics.INVENTORY_CHANGELOG,
            tables=(topics.WAREHOUSE_INVENTORY,),
        ),
    ]


def _details() -> list[Service]:
    return [Service(name="order-details", sources=(topics.ORDERS,), logic=Details)]


def _aggregator() -> list[Service]:
    return [
        Service(
            name="aggregator",
            sources=(topics.ORDERS, topics.ORDER_VALIDATIONS),
            logic=Aggregator,
            changelog=topics.AGGREGATOR_CHANGELOG,
        )
    ]


def _payments() -> list[Service]:
    return [Service(name="payments", sources=(topics.ORDERS,), logic=Payments)]


def _emails() -> list[Service]:
    customers = GlobalTable(topics.CUSTOMERS)
    return [
        Service(
            name="emails",
            sources=(topics.ORDERS, topics.PAYMENTS),
            logic=lambda: Emails(customers.get),
            changelog=topics.EMAILS_CHANGELOG,
            global_table=customers,
        )
    ]


_SERVICES: Final[Mapping[str, Callable[[], list[Service]]]] = {
    "fraud": _fraud,
    "inventory": _inventory,
    "order-details": _details,
    "aggregator": _aggregator,
    "payments": _payments,
    "emails": _emails,
}


def processors(
    name: str, bootstrap_servers: str, *, instance: str = "1", mailbox: Path | None = None
) -> list[Runnable]:
    """What makes up a service, all but the orders service's HTTP server."""
    made: list[Runnable] = [
        Processor(service, bootstrap_servers, instance) for service in _SERVICES[name]()
    ]
    if name == "emails" and mailbox is not None:
        made.append(Postman(bootstrap_servers, mailbox, instance))
    return made


class _Host:
    """Threads for what runs here, until one fails or a stop is requested."""

    def __init__(self) -> None:
        self._ending = threading.Event()
        self._failed = False
        self._threads: list[tuple[threading.Thread, Runnable]] = []

    def end(self, *_: object) -> None:
        self._ending.set()

    def start(self, runnables: list[Runnable]) -> None:
        for runnable in runnables:
            thread = threading.Thread(target=self._run, args=(runnable,))
            self._threads.append((thread, runnable))
            thread.start()

    def wait(self) -> bool:
        """Whether all went well."""
        self._ending.wait()
        for _, runnable in self._threads:
            runnable.stop()
        _join([thread for thread, _ in self._threads])
        return not self._failed

    def _run(self, runnable: Runnable) -> None:
        try:
            runnable.run()
        except Exception:
            log.exception("a service ended")
            self._failed = True
        self._ending.set()


def _join(threads: list[threading.Thread]) -> None:
    deadline = time.monotonic() + _END_S_MAX
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if any(thread.is_alive() for thread in threads):
        # The cluster does not answer. To end without its word is to crash, and that is safe.
        log.error("not ended in %.0f s: gives up what is under way", _END_S_MAX)
        os._exit(1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m orders.services", description="run services")
    parser.add_argument("names", nargs="+", choices=[*NAMES, "all"], metavar="SERVICE",
                        help=f"one or more of {', '.join(NAMES)}, or all")  # fmt: skip
    parser.add_argument("--bootstrap-server", default="127.0.0.1:9092", metavar="HOST:PORT")
    parser.add_argument("--instance", default="1", help="distinguishes instances of a service")
    parser.add_argument("--host", default="127.0.0.1", help="where the orders service listens")
    parser.add_argument("--port", type=int, default=8080, help="its port; 0 picks a free one")
    parser.add_argument("--mailbox", type=Path, help="folder into which notices are delivered")
    parser.add_argument("--address-file", type=Path, help="where its address is written, once up")
    parser.add_argument("--end-with-stdin", action="store_true",
                        help="end when standard input does, as a child of a program")  # fmt: skip
    return parser.parse_args()


def main() -> int:
    arguments = _arguments()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    host = _Host()
    signal.signal(signal.SIGTERM, host.end)
    signal.signal(signal.SIGINT, host.end)
    if arguments.end_with_stdin:
        threading.Thread(target=_end_with_stdin, args=(host,), daemon=True).start()
    names = NAMES if "all" in arguments.names else tuple(dict.fromkeys(arguments.names))
    bootstrap: str = arguments.bootstrap_server
    server: OrdersServer | None = None
    if "orders" in names:
        server = OrdersServer(bootstrap, arguments.host, arguments.port)
        server.start()
        log.info("orders are taken at %s/v1/orders", server.url)
        if arguments.address_file is not None:
            unfinished = arguments.address_file.with_suffix(".tmp")
            unfinished.write_text(server.url)
            os.replace(unfinished, arguments.address_file)
    for name in names:
        if name != "orders":
            host.start(
                processors(name, bootstrap, instance=arguments.instance, mailbox=arguments.mailbox)
            )
    log.info("running: %s", ", ".join(names))
    went_well = host.wait()
    if server is not None:
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        _join([stopping])
    return 0 if went_well else 1


def _end_with_stdin(host: _Host) -> None:
    while os.read(0, 4096):
        pass
    host.end()


if __name__ == "__main__":
    sys.exit(main())
