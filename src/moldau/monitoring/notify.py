"""Sends notices: to a webhook, a command, by e-mail, to a topic.

Each way is tried by itself: one that fails is logged and does not affect the others. Bounded in
time. The webhook gets what Alertmanager's API takes, so it can be one.
"""

from __future__ import annotations

import json
import logging
import smtplib
import ssl
import subprocess
import urllib.request
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.message import EmailMessage
from typing import Any, Final

from moldau.client import Producer
from moldau.monitoring.machine.alerts import Notice
from moldau.monitoring.machine.config import AlertTargets, EmailTarget

__all__ = ["Notifier", "as_json"]

SECONDS_MAX: Final = 10.0

logger = logging.getLogger(__name__)


def as_json(notice: Notice) -> dict[str, Any]:
    """In the form of Alertmanager's API."""
    condition = notice.condition
    found: dict[str, Any] = {
        "labels": {
            "alertname": condition.name,
            "severity": condition.severity,
            **dict(condition.labels),
        },
        "annotations": {"summary": condition.summary, "runbook": condition.runbook},
        "startsAt": _time(notice.since_s),
        "status": notice.status,
    }
    if notice.status == "resolved":
        found["endsAt"] = _time(notice.at_s)
    return found


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


class Notifier:
    """`send` blocks for a bounded time; call it from a thread."""

    def __init__(self, targets: AlertTargets, cluster: Mapping[str, Any]) -> None:
        self._targets = targets
        self._cluster = dict(cluster)
        self._producer: Producer | None = None
        self.failures = 0

    def send(self, notices: list[Notice]) -> None:
        for notice in notices:
            logger.warning(
                "%s: %s: %s", notice.status, notice.condition.name, notice.condition.summary
            )
        if not notices:
            return
        targets = self._targets
        data = [as_json(notice) for notice in notices]
        if targets.webhook:
            self._try("the webhook", lambda: _post(targets.webhook, data))
        if targets.command:
            self._try("the command", lambda: _run_each(targets.command, data))
        if targets.email is not None:
            email = targets.email
            self._try("the e-mail", lambda: _mail(email, notices))
        if targets.topic:
            self._try("the topic", lambda: self._produce(targets.topic, data))

    def _try(self, what: str, send: Callable[[], None]) -> None:
        try:
            send()
        except Exception as error:
            self.failures += 1
            logger.error("%s of alerts failed: %s", what, error)

    def _produce(self, topic: str, data: list[dict[str, Any]]) -> None:
        if self._producer is None:
            self._producer = Producer(self._cluster | {"max.block.ms": "5000"})
        for each in data:
            key = each["labels"]["alertname"].encode()
            self._producer.send(topic, json.dumps(each).encode(), key=key).result(SECONDS_MAX)

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close(timeout=1)


def _post(url: str, data: list[dict[str, Any]]) -> None:
    request = urllib.request.Request(
        url, json.dumps(data).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=SECONDS_MAX):
        pass


def _run_each(command: tuple[str, ...], data: list[dict[str, Any]]) -> None:
    for each in data:
        _run(command, each)


def _run(command: tuple[str, ...], data: dict[str, Any]) -> None:
    """The notice is the command's standard input, as JSON."""
    subprocess.run(
        command, input=json.dumps(data).encode(), timeout=SECONDS_MAX, check=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip


def _mail(target: EmailTarget, notices: list[Notice]) -> None:
    message = EmailMessage()
    first = notices[0]
    more = f" and {len(notices) - 1} more" if len(notices) > 1 else ""
    message["Subject"] = f"[{first.status}] {first.condition.name}{more}"
    message["From"] = target.sender
    message["To"] = ", ".join(target.recipients)
    message.set_content(
        "\n".join(
            f"{each.status}: {each.condition.name} {dict(each.condition.labels)}\n"
            f"  {each.condition.summary}\n  {each.condition.runbook}"
            for each in notices
        )
    )
    with smtplib.SMTP(target.host, target.port, timeout=SECONDS_MAX) as server:
        if target.starttls:
            server.starttls(context=ssl.create_default_context())
        if target.user:
            server.login(target.user, target.password)
        server.send_message(message)
