"""What tests of messaging share: names, sending and receiving texts."""

from __future__ import annotations

import itertools
from typing import Any

from moldau.client import Admin
from moldau.messaging import Queue, Session
from support.processes import BrokerProcess

WAIT_S = 30.0
#: How long the locks of the broker `hasty` hold: a machine may be slow once.
HASTY_S = 2.5
_numbers = itertools.count(1)


def new_name(prefix: str) -> str:
    return f"{prefix}-{next(_numbers)}"


def send(session: Session, destination: Any, *texts: str, **options: Any) -> None:
    with session.create_producer(destination) as producer:
        for text in texts:
            producer.send(session.create_text_message(text), **options)


def texts(consumer: Any, count: int) -> list[str]:
    return [consumer.receive(WAIT_S).text for _ in range(count)]


def left_in(broker: BrokerProcess, queue: Queue) -> int | None:
    """How much of a queue is not acknowledged; None if that is not known yet."""
    group = f"queue:{queue.name}"
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        offsets = admin.list_share_group_offsets(group)[group].values()
    lags = [each.lag for each in offsets if each is not None and each.lag is not None]
    return sum(lags) if lags else None
