"""Delivers the notices: here into a folder, a file for each.

A folder knows no transactions. Delivery is at least once, and because a notice's file is named
after its order and put in place whole, a second delivery changes nothing: in effect exactly once.
"""

from __future__ import annotations

import logging
import os
import threading
from email.message import EmailMessage
from pathlib import Path
from typing import Any, Final

from moldau.client import Consumer
from moldau.client.errors import KafkaError
from orders import topics
from orders.model import InvalidOrder, decoded

__all__ = ["Postman"]

log = logging.getLogger("orders")

GROUP: Final = "postman"
_SENDER: Final = "orders@shop.example"
_POLL_S: Final = 0.5
_PAUSE_S: Final = 1.0
_FAILURES_MAX: Final = 30


class Postman:
    def __init__(self, bootstrap_servers: str, mailbox: Path, instance: str = "1") -> None:
        self._mailbox = mailbox
        self._config: dict[str, Any] = {
            "bootstrap.servers": bootstrap_servers,
            "client.id": f"{GROUP}-{instance}",
            "group.id": GROUP,
            "group.instance.id": f"{GROUP}-{instance}",
            "session.timeout.ms": 10_000,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        """Until `stop`; tries again what may pass."""
        self._mailbox.mkdir(parents=True, exist_ok=True)
        failures = 0
        while not self._stopping.is_set():
            try:
                self._deliver_all()
            except KafkaError as error:
                failures += 1
                if failures > _FAILURES_MAX:
                    raise
                log.warning("the postman starts again after %s", error)
                self._stopping.wait(_PAUSE_S)

    def _deliver_all(self) -> None:
        with Consumer(self._config) as consumer:
            consumer.subscribe([topics.EMAILS])
            while not self._stopping.is_set():
                records = consumer.poll(_POLL_S)
                for record in records:
                    try:
                        deliver(self._mailbox, decoded(record.value))
                    except InvalidOrder as error:
                        log.warning("the postman passes over what is no notice: %s", error)
                if records:
                    consumer.commit_sync(records.next_offsets())


def deliver(mailbox: Path, notice: dict[str, Any] | None) -> Path:
    try:
        fields = {name: str((notice or {})[name]) for name in ("order_id", "subject", "body")}
    except KeyError as error:
        raise InvalidOrder(f"a notice needs {error}") from None
    message = EmailMessage()
    message["From"] = _SENDER
    message["To"] = (notice or {}).get("to") or "undisclosed-recipients:;"
    message["Subject"] = fields["subject"]
    message["Message-ID"] = f"<{fields['order_id']}@shop.example>"
    message.set_content(fields["body"])
    # The id has been checked, but what is in a topic can come from anybody.
    name = "".join(each for each in fields["order_id"] if each.isalnum() or each in "-_")[:64]
    path = mailbox / f"{name}.eml"
    unfinished = path.with_suffix(".tmp")
    unfinished.write_bytes(bytes(message))
    os.replace(unfinished, path)
    return path
