"""The shell in a terminal: editing, completion, Ctrl-C, live tables, scripts, history."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.sql_server import SqlServer

_TIMEOUT_S = 30
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>()][0-9A-B]?")


class Terminal:
    """A shell behind a pseudo-terminal of 100 columns and 40 lines."""

    def __init__(self, url: str, folder: Path, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        environment = {
            **os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40",
            "XDG_STATE_HOME": str(folder), "PROMPT_TOOLKIT_NO_CPR": "1",
        }  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-m", "moldau.cli", "sql", "--server", url, *arguments],
            stdin=slave, stdout=slave, stderr=slave, env=environment, cwd=folder,
            start_new_session=True, preexec_fn=lambda: _control(slave),
        )  # fmt: skip
        os.close(slave)
        self.shown = ""
        self._seen = 0

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, pattern: str) -> str:
        """Wait until something is on the screen that was not there when this was called last."""
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            found = re.search(pattern, self.shown[self._seen :])
            if found is not None:
                self._seen += found.end()
                return found.group()
            left = deadline - time.monotonic()
            assert left > 0, f"{pattern!r} is not in {self.shown[self._seen :]!r}"
            if select.select([self._master], [], [], left)[0]:
                self.shown += _ESCAPES.sub("", os.read(self._master, 65536).decode(errors="ignore"))

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.close(self._master)


def _control(slave: int) -> None:
    import fcntl
    import struct
    import termios

    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))


@pytest.fixture
def terminal(server: SqlServer, tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(server.url, tmp_path)
    try:
        made.wait_for("ksql>")
        yield made
    finally:
        made.close()


def test_a_session_in_a_terminal(terminal: Terminal, tmp_path: Path) -> None:
    # A statement over several lines; Enter runs it when its semicolon is there.
    terminal.type("CREATE STREAM seen (id STRING KEY, n INT)\r")
    terminal.type("WITH (kafka_topic='seen', value_format='JSON', partitions=1);\r")
    terminal.wait_for("Stream created")
    terminal.type("INSERT INTO seen VALUES ('a', 1); INSERT INTO seen VALUES ('b', 2);\r")
    terminal.type("SET 'auto.offset.reset' = 'earliest';\r")
    terminal.wait_for("Successfully changed local property 'auto.offset.reset' to 'earliest'")
    # A push query runs until Ctrl-C, which ends the query only.
    terminal.type("SELECT id, n FROM seen EMIT CHANGES;\r")
    terminal.wait_for(r"\| b +\| 2 ")
    terminal.type("\x03")
    terminal.wait_for("Query terminated")
    # Names of the server are completed: Tab chooses.
    terminal.type("DESCRIBE se")
    terminal.wait_for("SEEN")
    terminal.type("\t\r;\r")
    terminal.wait_for(r"Name +: SEEN")
    terminal.wait_for(r"VARCHAR\(STRING\)")
    # A live table, drawn again until Ctrl-C.
    terminal.type("LIVE SELECT id, COUNT(*) AS c FROM seen GROUP BY id EMIT CHANGES;\r")
    terminal.wait_for(r"2 rows, 2 changes")
    terminal.type("\x03")
    terminal.wait_for("Query terminated")
    terminal.type("CHART n BY id SELECT * FROM seen EMIT CHANGES LIMIT 2;\r")
    terminal.wait_for(r"a │█+ 1")
    # Other forms of output, scripts and files.
    (tmp_path / "script.sql").write_text("DEFINE what = 'STREAMS';\nSHOW ${what};\n")
    terminal.type("SPOOL 'spooled.txt'\r")
    terminal.type("OUTPUT JSON\r")
    terminal.type("RUN SCRIPT 'script.sql';\r")
    terminal.wait_for('"@type": "streams"')
    terminal.type("SPOOL OFF\r")
    terminal.type("SELECT nonsense;\r")
    terminal.wait_for("Syntax")
    terminal.type("exit\r")
    assert terminal.process.wait(_TIMEOUT_S) == 0
    assert '"@type": "streams"' in (tmp_path / "spooled.txt").read_text()
    history = (tmp_path / "moldau" / "sql_history").read_text()
    assert "CREATE STREAM seen" in history
    assert "+WITH (kafka_topic" in history


def _run(server: SqlServer, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "moldau.cli", "sql", "--server", server.url, *arguments],
        capture_output=True, text=True, timeout=_TIMEOUT_S * 2, check=False, **more,
    )  # fmt: skip


def test_options_of_the_command(server: SqlServer, tmp_path: Path) -> None:
    script = tmp_path / "made.sql"
    script.write_text(
        "CREATE STREAM ${name} (id STRING KEY, n INT) "
        "WITH (kafka_topic='${name}', value_format='JSON', partitions=1);\n"
        "INSERT INTO ${name} VALUES ('x, y', 1);\n"
    )
    done = _run(server, "-d", "name=given", "-f", str(script))
    assert (done.returncode, done.stdout) == (0, "Stream created\n"), done.stderr
    done = _run(server, "--output", "CSV", "-e", "SELECT * FROM given;")
    assert done.stdout == 'ID,N\n"x, y",1\n'
    settings = tmp_path / "cli.properties"
    settings.write_text("auto.offset.reset=earliest\n")
    done = _run(
        server, "--config-file", str(settings), "--query-row-limit", "1", "--output", "JSON",
        "-e", "SELECT n FROM given EMIT CHANGES;",
    )  # fmt: skip
    assert done.stdout.splitlines()[1] == '{"row":{"columns":[1]}}'
    done = _run(server, "--query-timeout", "300", "-e", "SELECT n FROM given EMIT CHANGES;")
    assert done.returncode == 0
    wrong = _run(server, "-e", "SHOW STREAMS; SELECT * FROM missing_one;")
    assert wrong.returncode == 1
    assert "MISSING_ONE" in wrong.stderr
    piped = _run(server, input="SHOW TABLES;\nnonsense;\nSHOW TYPES;\n")
    assert piped.returncode == 1
    assert "Unknown statement 'nonsense'" in piped.stderr
    assert "Type Name" in piped.stdout
