"""Shell scripts that call `moldau` and the scripts of bin/ dozens of times, without a start each.

A start costs a third of a second of imports. Here a server has imported everything, and forks for
each command with the caller's arguments, environment, folder and standard streams; what stands in
for Python in the script's path only hands these over. That the real scripts start is tested by
itself (tests/unit/cli/test_scripts.py).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support.processes import ROOT

MESSAGE_BYTES_MAX = 1 << 20
SECONDS_MAX = 150

# Without `site` and without anything that takes long to import.
_CLIENT = """#!{python} -SE
import array, json, os, socket, sys
words = sys.argv[1:]
if words[:2] == ["-m", "moldau.cli"]:
    words = words[2:]
to = socket.socket(socket.AF_UNIX)
to.connect({address!r})
folder = os.open(".", os.O_RDONLY)
streams = array.array("i", [0, 1, 2, folder])
said = json.dumps([words, dict(os.environ)]).encode()
to.sendmsg([len(said).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
to.sendall(said)
code = to.recv(1)
os._exit(code[0] if code else 70)
"""


class Shell:
    """Runs programs of /bin/sh or bash in which `moldau` and Kafka's scripts are known."""

    def __init__(self, folder: Path) -> None:
        self._path = f"{folder / 'bin'}:{os.environ['PATH']}"

    def run(
        self, program: str, folder: Path, variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        # Into files: a command that hangs would keep a pipe open after the shell has been killed.
        out, err = folder / "shell.out", folder / "shell.err"
        with out.open("wb") as output, err.open("wb") as errors:
            try:
                code = subprocess.run(
                    ["bash", "-c", program],
                    cwd=folder,
                    env={**os.environ, "PATH": self._path, **(variables or {})},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=errors,
                    timeout=SECONDS_MAX,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                raise AssertionError(f"it hangs:\n{out.read_text()}\n{err.read_text()}") from None
        return subprocess.CompletedProcess(program, code, out.read_text(), err.read_text())


@contextmanager
def shell(folder: Path) -> Iterator[Shell]:
    """With the scripts copied to `folder/bin`, and the server beside them."""
    shutil.copytree(ROOT / "bin", folder / "bin")
    address = str(folder / "socket")
    for name in (folder / ".venv" / "bin" / "python", folder / "bin" / "moldau"):
        name.parent.mkdir(parents=True, exist_ok=True)
        name.write_text(_CLIENT.format(python=sys.executable, address=address))
        name.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        command = [sys.executable, "-c", "from support.shell import serve; serve()"]
        search = f"{ROOT / 'tests'}:{os.environ.get('PYTHONPATH', '')}"
        # It ends when this end of the pipe is closed, also if the tests are killed.
        with subprocess.Popen(
            [*command, str(listener.fileno())],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            env={**os.environ, "PYTHONPATH": search},
            start_new_session=True,
        ) as server:
            try:
                yield Shell(folder)
            finally:
                # With all commands that it still runs.
                os.killpg(server.pid, signal.SIGKILL)


def serve() -> None:
    """The server: forks for each connection until its standard input ends."""
    import importlib
    import select

    from moldau.cli.catalogue import TOOLS

    clients = ["moldau.client.consumer", "moldau.client.producer", "moldau.client.share"]
    for module in (*clients, *(tool.module for tool in TOOLS.values())):
        importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(fileno=int(sys.argv[1]))
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _serve_one(connection)
        connection.close()


def _serve_one(connection: socket.socket) -> None:
    """In the fork: become the caller, and tell how it ended."""
    from moldau.cli.main import main

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    code = 70
    try:
        head, descriptors, _, _ = socket.recv_fds(connection, 4, 4)
        size = int.from_bytes(head, "big")
        assert size <= MESSAGE_BYTES_MAX
        words, environment = json.loads(connection.recv(size, socket.MSG_WAITALL))
        for number, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, number)
        os.fchdir(descriptors[3])
        for descriptor in descriptors:
            os.close(descriptor)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(number, mode, closefd=False) for number, mode in enumerate(("r", "w", "w"))
        )
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["moldau", *words]
        try:
            code = main(words)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        connection.sendall(bytes([code & 255]))
        os._exit(0)
