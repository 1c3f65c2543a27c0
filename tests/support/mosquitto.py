"""mosquitto from Debian's package: an MQTT broker for a run of tests, on 127.0.0.1."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from support.processes import free_port
from support.waiting import eventually


def mosquitto_missing() -> str | None:
    found = shutil.which("mosquitto", path="/usr/sbin:/usr/bin")
    return None if found else "mosquitto is not here: apt-get install mosquitto"


@contextlib.contextmanager
def running_mosquitto() -> Iterator[int]:
    """Its port."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="moldau-mosquitto-") as folder:
        config = Path(folder) / "mosquitto.conf"
        config.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nuser root\n")
        process = subprocess.Popen(
            ["/usr/sbin/mosquitto", "-c", str(config)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            eventually(lambda: _listens(port), what="mosquitto listens")
            yield port
        finally:
            process.terminate()
            process.wait(30)


def _listens(port: int) -> bool:
    with contextlib.closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
