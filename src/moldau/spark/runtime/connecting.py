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

_PORT, _SECRET = "PYTHON_WORKER_FACTORY_PORT", "PYTHON_WORKER_FACTORY_SECRET"


def _connected(port: int, secret: str) -> socket.socket | None:
    """With the secret sent; Spark's answer is not waited for."""
    address = "::1" if os.environ.get("SPARK_PREFER_IPV6", "").lower() == "true" else "127.0.0.1"
    seconds_max = int(os.environ.get("SPARK_AUTH_SOCKET_TIMEOUT", "15"))
    try:
        made = socket.create_connection((address, port), timeout=seconds_max)
        data = secret.encode()
        made.sendall(struct.pack("!i", len(data)) + data)
    except OSError:
        return None
    return made


def _use(made: socket.socket) -> None:
    """Let Spark's module have this connection for the first one that it asks for."""
    import pyspark.util

    spare = [made]
    original = pyspark.util.local_connect_and_auth

    def connect_and_auth(conn_info: str | int | None, auth_secret: str | None) -> tuple[Any, ...]:
        if not spare or str(conn_info) != os.environ.get(_PORT):
            return original(conn_info, auth_secret)
        connection = spare.pop()
        size = int(os.environ.get("SPARK_BUFFER_SIZE", "65536"))
        file = connection.makefile("rwb", size)
        (length,) = struct.unpack("!i", file.read(4))
        if file.read(length) != b"ok":
            raise ConnectionRefusedError("Spark refused the secret that it gave to this process")
        return file, connection

    pyspark.util.local_connect_and_auth = connect_and_auth


def main() -> None:
    import runpy

    made = _connected(int(os.environ[_PORT]), os.environ[_SECRET])
    # As `-m` has it: not the folder of this file.
    sys.path[0] = os.getcwd()
    module = sys.argv[2]
    sys.argv = sys.argv[2:]
    if made is not None:
        _use(made)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
