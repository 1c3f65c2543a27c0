"""Whether a Kafka node answers at an address, and the problem otherwise.

Decided here: whether the first answer is that of a Kafka node. A port may belong to anything, and a
client would take the first bytes of an HTTP answer for the length of a response, and wait for it.
Invariant: a problem is `certain` only if something answered, and not as a Kafka node does;
everything else may pass when a node is just starting.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Final

from moldau.config.addresses import HostPort
from moldau.security.reasons import explain
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.framing import encode_request_parts
from moldau.wire.messages import ApiVersionsRequest

__all__ = ["Problem", "problems_of"]

_HEAD: Final = struct.Struct(">ii")
#: Two ends of lines, which a server that reads lines waits for before it answers.
_CORRELATION_ID: Final = int.from_bytes(b"\r\n\r\n", "big")
#: The oldest version: every node answers it, with a few hundred bytes.
_VERSION: Final = 0
_RESPONSE_BYTES_MAX: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a node cannot be reached; if it is `certain`, a retry does not help."""

    text: str
    certain: bool = False


def problems_of(
    addresses: Sequence[HostPort],
    *,
    connect_seconds_max: float,
    answer_seconds_max: float,
    tls: ssl.SSLContext | None = None,
) -> list[Problem] | None:
    """What is wrong with each of them; None as soon as a Kafka node answers at one."""
    results: SimpleQueue[tuple[int, Problem | None]] = SimpleQueue()

    def probe(index: int, address: HostPort) -> None:
        results.put((index, _problem_of(address, connect_seconds_max, answer_seconds_max, tls)))

    for index, address in enumerate(addresses):
        # Daemons: those that others need not wait for end by themselves, or with the tool.
        threading.Thread(target=probe, args=(index, address), daemon=True).start()
    found: dict[int, Problem] = {}
    for _ in addresses:
        index, problem = results.get()
        if problem is None:
            return None
        found[index] = problem
    return [found[index] for index in range(len(addresses))]


def _problem_of(
    address: HostPort,
    connect_seconds_max: float,
    answer_seconds_max: float,
    tls: ssl.SSLContext | None,
) -> Problem | None:
    try:
        connection = socket.create_connection(address, timeout=connect_seconds_max)
    except UnicodeError:
        return Problem("the host name cannot be resolved")
    except OSError as error:
        return Problem((error.strerror or str(error)).lower())
    with connection:
        connection.settimeout(answer_seconds_max)
        try:
            if tls is None:
                return judge(_ask(connection))
            with tls.wrap_socket(connection, server_hostname=address.host) as encrypted:
                return judge(_ask(encrypted))
        except ssl.SSLError as error:
            return Problem(f"SSL handshake failed: {explain(error)}", certain=True)
        except TimeoutError:
            shown = f"{answer_seconds_max:g} s"
            return Problem(f"accepts connections, but does not answer within {shown}")
        except OSError as error:
            return Problem(f"answers with {(error.strerror or str(error)).lower()}")


def _ask(connection: socket.socket) -> bytes:
    """The first bytes of what answers ApiVersions; fewer if the connection ends."""
    api = API_BY_KEY[ApiKey.API_VERSIONS]
    request = encode_request_parts(api, _VERSION, _CORRELATION_ID, "moldau", ApiVersionsRequest())
    connection.sendall(b"".join(request))
    received = b""
    while len(received) < _HEAD.size:
        more = connection.recv(_HEAD.size - len(received))
        if not more:
            break
        received += more
    return received


def judge(received: bytes) -> Problem | None:
    """The problem with the first bytes of an answer; None if a Kafka node sent them."""
    # Some servers answer what they cannot read with the page alone.
    if received.lower().startswith((b"http/", b"<!doctyp", b"<html")):
        return Problem("an HTTP server answers, not a Kafka node", certain=True)
    if received.startswith((b"\x15\x03", b"\x16\x03")):
        return Problem("the process that answers uses TLS: set security.protocol", certain=True)
    if len(received) < _HEAD.size:
        if received:
            return Problem("the process that answers is not a Kafka node", certain=True)
        return Problem("closes the connection without an answer")
    size, correlation_id = _HEAD.unpack(received)
    if correlation_id != _CORRELATION_ID or not 4 < size <= _RESPONSE_BYTES_MAX:
        return Problem("the process that answers is not a Kafka node", certain=True)
    return None
