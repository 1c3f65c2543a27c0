"""Audit: what was changed through the console, by whom, and how it ended.

Every change is a line of the logger `moldau.console.audit` and a record of the topic `audit.topic`
in the cluster that was changed, written with the console's own credentials. The last changes are
also kept in memory, so the page shows them when the topic cannot be used.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections import deque
from typing import Any, Final

from moldau.client import NewTopic
from moldau.client.errors import KafkaError, TopicExistsError
from moldau.clock import LoopClock
from moldau.services.console.clients import Clients

__all__ = ["Audit"]

logger = logging.getLogger(__name__)
audit_log = logging.getLogger("moldau.console.audit")

KEPT_MAX: Final = 1000
WAITING_MAX: Final = 1000
SEND_S: Final = 15.0
TEXT_MAX: Final = 2000


class Audit:
    """See the module."""

    def __init__(self, clients: Clients, topic: str) -> None:
        """Without a topic's name there is only the log."""
        self._clients = clients
        self._topic = topic
        self._clock = LoopClock()
        self._kept: deque[dict[str, Any]] = deque(maxlen=KEPT_MAX)
        self._made: set[str] = set()
        self._sending: set[asyncio.Task[None]] = set()

    def add(
        self,
        *,
        cluster: str,
        user: str,
        host: str,
        action: str,
        target: str,
        details: Any = None,
        error: str | None = None,
    ) -> None:
        entry = {
            "time": int(self._clock.now_ms()),
            "cluster": cluster,
            "user": user,
            "host": host,
            "action": action,
            "target": target[:TEXT_MAX],
            "result": "ok" if error is None else "failed",
        }
        if details is not None:
            entry["details"] = _bounded(details)
        if error is not None:
            entry["error"] = error[:TEXT_MAX]
        text = json.dumps(entry, ensure_ascii=True)
        audit_log.info("%s", text)
        self._kept.append(entry)
        if self._topic and len(self._sending) < WAITING_MAX:
            task = asyncio.create_task(self._send(cluster, text))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    def recent(self, cluster: str) -> list[dict[str, Any]]:
        """Latest first."""
        return [each for each in reversed(self._kept) if each["cluster"] == cluster]

    @property
    def topic(self) -> str:
        return self._topic

    async def close(self) -> None:
        if self._sending:
            await asyncio.wait(self._sending, timeout=SEND_S)

    async def _send(self, cluster: str, text: str) -> None:
        clients = self._clients.own(cluster)
        try:
            async with asyncio.timeout(SEND_S):
                if cluster not in self._made:
                    with contextlib.suppress(TopicExistsError):
                        await clients.admin.create_topics([NewTopic(self._topic, 1)])
                    self._made.add(cluster)
                await (await clients.producer.send(self._topic, text.encode()))
        except (KafkaError, TimeoutError) as error:
            logger.warning("the change cannot be written to %s: %s", self._topic, error)


def _bounded(details: Any) -> Any:
    text = json.dumps(details, default=str)
    return json.loads(text) if len(text) <= TEXT_MAX else text[:TEXT_MAX] + " ..."
