"""Whether a service answers."""

from __future__ import annotations

import http.client
import socket
from typing import Final

from moldau.cli.platform.machine.plan import BROKER, Service
from moldau.config.addresses import HostPort

__all__ = ["problem_of"]

_SECONDS_MAX: Final = 3.0
_SERVER_ERROR: Final = 500


def problem_of(service: Service) -> str | None:
    """None if it works. Blocks for a few seconds at most."""
    if service.name == BROKER:
        return _kafka_problem(service)
    if service.health is not None:
        return _http_problem(service, service.health)
    try:
        socket.create_connection((service.host, service.port), timeout=_SECONDS_MAX).close()
    except OSError as error:
        return _reason(error)
    return None


def _kafka_problem(service: Service) -> str | None:
    from moldau.cli.support.probe import problems_of

    problems = problems_of(
        [HostPort(service.host, service.port)],
        connect_seconds_max=_SECONDS_MAX,
        answer_seconds_max=_SECONDS_MAX,
    )
    return None if problems is None else problems[0].text


def _http_problem(service: Service, path: str) -> str | None:
    """An answer that asks for a login shows that the service works."""
    connection = http.client.HTTPConnection(service.host, service.port, timeout=_SECONDS_MAX)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
    except http.client.HTTPException as error:
        return f"its answer is not HTTP ({type(error).__name__})"
    except OSError as error:
        return _reason(error)
    finally:
        connection.close()
    if answer.status >= _SERVER_ERROR:
        return f"it answers {answer.status} {answer.reason} at {path}"
    return None


def _reason(error: OSError) -> str:
    return (error.strerror or str(error) or "no answer").lower()
