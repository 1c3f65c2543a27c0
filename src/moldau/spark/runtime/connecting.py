"""Runs a Python worker of Spark, and connects it to Spark before anything else.

    python connecting.py -m MODULE ARGUMENTS...

Spark gives a process that it starts ten seconds to connect, and no setting changes that. Spark's
module connects when all of Spark, Arrow and NumPy has been imported, which takes half a second of a
core: on a busy machine, or when many pipelines start at the same time, that is more than ten
seconds. What this needs before it connects is a twentieth of it. It is a program of its own, which
imports nothing but the standard library, and ends up as what Python's `-m` would have run.

Invariant: where the connection cannot be made here Spark's module makes it, as it always does.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from typing import Any

__all__: list[str] = []

_PATH, _PORT = "PYTHON_WORKER_FACTORY_SOCK_PATH", "PYTHON_WORKER_FACTORY_PORT"
_SECRET = "PYTHON_WORKER_FACTORY_SECRET"


def _connected() -> socket.socket | None:
    """With the secret sent where there is one; Spark's answer is not waited for."""
    seconds_max = int(os.environ.get("SPARK_AUTH_SOCKET_TIMEOUT", "15"))
    try:
        if _PATH in os.environ:
            made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            made.settimeout(seconds_max)
            made.connect(os.environ[_PATH])
            return made
        is_v6 = os.environ.get("SPARK_PREFER_IPV6", "").lower() == "true"
        address = "::1" if is_v6 else "127.0.0.1", int(os.environ[_PORT])
        made = socket.create_connection(address, timeout=seconds_max)
        secret = os.environ[_SECRET].encode()
        made.sendall(struct.pack("!i", len(secret)) + secret)
    except OSError:
        return None
    return made


def _use(made: socket.socket) -> None:
    """Let Spark's module have this connection for the first one that it asks for."""
    import pyspark.util

    spare = [made]
    original = pyspark.util.local_connect_and_auth
    expected = (os.environ.get(_PATH), os.environ.get(_PORT))

    def connect_and_auth(conn_info: str | int | None, auth_secret: str | None) -> tuple[Any, ...]:
        if not spare or str(conn_info) not in expected:
            return original(conn_info, auth_secret)
        connection = spare.pop()
        file = connection.makefile("rwb", int(os.environ.get("SPARK_BUFFER_SIZE", "65536")))
        if connection.family != socket.AF_UNIX:
            (length,) = struct.unpack("!i", file.read(4))
            if file.read(length) != b"ok":
                raise ConnectionRefusedError(
                    "Spark refused the secret that it gave to this process"
                )
        return file, connection

    pyspark.util.local_connect_and_auth = connect_and_auth


def main() -> None:
    import runpy

    made = _connected()
    # As `-m` has it: not the folder of this file.
    sys.path[0] = os.getcwd()
    module = sys.argv[2]
    sys.argv = sys.argv[2:]
    if made is not None:
        _use(made)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
