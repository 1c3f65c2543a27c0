"""The orders service: HTTP in front of the topic.

    POST /v1/orders                   201 a new order, 200 the same order again, 409 another order
                                      with the same id, 400 no order
    GET  /v1/orders/{id}              the order as it is; ?wait=validated|failed|final|created waits
                                      until it is that, or final, at most ?timeout= seconds
    GET  /v1/orders/{id}/validated    the same as ?wait=final

An order counts as taken when the cluster has it: the answer waits for the acknowledgement. Posting
the same order again is harmless, so a client that got no answer simply tries again.

The standard library's server is enough here: handlers block in the client and in waits, a thread
each, and the example needs no dependency beside the client. The number of threads is bounded.
"""

from __future__ import annotations

import json
import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from moldau.client import Producer
from moldau.client.errors import KafkaError
from orders import topics
from orders.model import CREATED, FINAL, InvalidOrder, Order, encoded
from orders.view import View

__all__ = ["OrdersServer"]

log = logging.getLogger("orders")

CONNECTIONS_MAX: Final = 200
BODY_SIZE_MAX: Final = 64 * 1024
TIMEOUT_S_MAX: Final = 60.0
_TIMEOUT_S: Final = 10.0
_IDLE_S_MAX: Final = 120.0
_ORDER: Final = re.compile(r"/v1/orders/([^/]+)(/validated)?")

Answer = tuple[HTTPStatus, dict[str, Any]]


class _Refused(Exception):
    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class OrdersService:
    """What is behind the addresses."""

    def __init__(self, view: View, producer: Producer, clock: Callable[[], float]) -> None:
        self._view = view
        self._producer = producer
        self._clock = clock
        self._in_flight: set[str] = set()
        self._lock = threading.Lock()

    def post(self, body: bytes) -> Answer:
        try:
            value = json.loads(body)
        except ValueError as error:
            raise _Refused(HTTPStatus.BAD_REQUEST, f"no JSON: {error}") from None
        try:
            order = Order.from_request(value, now_ms=round(self._clock() * 1000))
        except InvalidOrder as error:
            raise _Refused(HTTPStatus.BAD_REQUEST, str(error)) from None
        known = self._claim(order)
        if known is not None:
            # A repeated request without a time gets the one it had the first time.
            if isinstance(value, dict) and value.get("created_at") is None:
                order = Order.from_json({**order.as_json(), "created_at": known.created_at})
            if not order.same_request(known):
                raise _Refused(HTTPStatus.CONFLICT, f"order {order.id} exists, and is another")
            return HTTPStatus.OK, known.as_json()
        try:
            self._write(order)
        finally:
            with self._lock:
                self._in_flight.discard(order.id)
        return HTTPStatus.CREATED, order.as_json()

    def _claim(self, order: Order) -> Order | None:
        """The order of this id that there is; if none, it is this request's to write."""
        with self._lock:
            known = self._view.orders.get(order.id)
            if known is None and order.id not in self._in_flight:
                self._in_flight.add(order.id)
                return None
        # Another request writes it just now, or has written it.
        known = self._view.orders.wait(order.id, lambda _: True, _TIMEOUT_S)
        if known is None:
            raise _Refused(HTTPStatus.SERVICE_UNAVAILABLE, f"order {order.id} is being written")
        return known

    def _write(self, order: Order) -> None:
        future = self._producer.send(
            topics.ORDERS, encoded(order.as_json()), key=order.id, timestamp=order.created_ms
        )
        try:
            future.result()
        except KafkaError as error:
            raise _Refused(HTTPStatus.SERVICE_UNAVAILABLE, f"not written: {error}") from None
        self._view.orders.put(order)

    def get(self, order_id: str, query: Mapping[str, list[str]], *, final: bool) -> Answer:
        wait = "final" if final else query.get("wait", [""])[-1].lower()
        timeout = _seconds(query.get("timeout", [str(_TIMEOUT_S)])[-1])
        if not wait:
            order = self._view.orders.get(order_id)
        elif wait in ("created", "validated", "failed", "final"):
            # No state comes after a final one: waiting for another would be in vain.
            states = FINAL | {CREATED} if wait == "created" else FINAL
            order = self._view.orders.wait(order_id, lambda each: each.state in states, timeout)
            if order is not None and order.state not in states:
                raise _Refused(
                    HTTPStatus.GATEWAY_TIMEOUT, f"order {order_id} is still {order.state}"
                )
        else:
            raise _Refused(
                HTTPStatus.BAD_REQUEST, f"wait={wait}: created, validated, failed or final"
            )
        if order is None:
            raise _Refused(HTTPStatus.NOT_FOUND, f"there is no order {order_id}")
        return HTTPStatus.OK, order.as_json()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_S_MAX
    # Header and body leave as two small packets; without this the second waits for the
    # acknowledgement of the first.
    disable_nagle_algorithm = True
    server: OrdersServer

    def do_POST(self) -> None:
        self._answer(self._post)

    def do_GET(self) -> None:
        self._answer(self._get)

    def _post(self) -> Answer:
        try:
            size = int(self.headers["Content-Length"])
        except (TypeError, ValueError):
            self.close_connection = True
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "Content-Length is needed") from None
        if not 0 <= size <= BODY_SIZE_MAX:
            self.close_connection = True
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {BODY_SIZE_MAX} bytes")
        body = self.rfile.read(size)
        if urlsplit(self.path).path != "/v1/orders":
            raise _Refused(HTTPStatus.NOT_FOUND, "post to /v1/orders")
        return self.server.service.post(body)

    def _get(self) -> Answer:
        address = urlsplit(self.path)
        found = _ORDER.fullmatch(address.path)
        if found is None:
            raise _Refused(HTTPStatus.NOT_FOUND, "get /v1/orders/{id}")
        query = parse_qs(address.query)
        return self.server.service.get(found[1], query, final=found[2] is not None)

    def _answer(self, work: Callable[[], Answer]) -> None:
        try:
            status, value = work()
        except _Refused as refused:
            status, value = refused.status, {"error": str(refused)}
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status == HTTPStatus.CREATED:
            self.send_header("Location", f"/v1/orders/{value['id']}")
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        log.debug(format, *args)


class OrdersServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, bootstrap_servers: str, host: str, port: int) -> None:
        self._places = threading.BoundedSemaphore(CONNECTIONS_MAX)
        super().__init__((host, port), _Handler)
        self._view = View(bootstrap_servers)
        self._producer = Producer(
            {"bootstrap.servers": bootstrap_servers, "client.id": "orders-service"},
            delivery_timeout_ms=30_000,
            request_timeout_ms=10_000,
            linger_ms=0,
        )
        self.service = OrdersService(self._view, self._producer, time.time)

    @property
    def url(self) -> str:
        return f"http://{self.server_address[0]!s}:{self.server_address[1]}"

    def start(self) -> None:
        """Serves once the view is whole: before, a known order would be taken for a new one."""
        self._view.start()
        self._thread = threading.Thread(target=self.serve_forever, name="orders-http")
        self._thread.start()

    def stop(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()
        self._view.stop()
        self._producer.close(timeout=10)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("a connection broke off", exc_info=True)

    def server_bind(self) -> None:
        # The standard library asks the name service for the host's name here, for nothing.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= TIMEOUT_S_MAX:
        raise _Refused(HTTPStatus.BAD_REQUEST, f"timeout={text}: 0 to {TIMEOUT_S_MAX:.0f} seconds")
    return seconds
