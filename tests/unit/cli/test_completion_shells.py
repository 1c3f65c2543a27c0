"""What zsh and fish themselves make of the scripts, where they are installed."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

# A line, and what it becomes when Tab is pressed at its end. FILE is one in the folder of the test.
LINES = [
    ("moldau topi", "moldau topics "),
    ("moldau storage format --standa", "moldau storage format --standalone "),
    ("moldau server-stop --process-role=br", "moldau server-stop --process-role=broker "),
    ("moldau server-stop --process-role br", "moldau server-stop --process-role broker "),
    ("kafka-topics.sh --descr", "kafka-topics.sh --describe "),
    ("bin/kafka-storage.sh form", "bin/kafka-storage.sh format "),
    # Another command stands before it.
    ("echo topics; moldau completion z", "echo topics; moldau completion zsh "),
    ("moldau topics --command-config only-f", "moldau topics --command-config only-file "),
    ("moldau topics --command-config=only-f", "moldau topics --command-config=only-file "),
]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one file and a `moldau`, for a user who has set nothing."""
    program = tmp_path / "programs" / "moldau"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m moldau.cli "$@"\n')
    program.chmod(0o755)
    (tmp_path / "only-file").touch()
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TERM", "xterm")
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish on this machine")
@pytest.mark.usefixtures("home")
def test_fish_completes() -> None:
    program = 'moldau completion fish | source; for line in $argv; complete -C "$line"; echo; end'
    done = subprocess.run(
        ["fish", "--no-config", "-c", program, "--", *(line for line, _ in LINES)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.stderr == ""
    # It gives the words that may stand in the place of the last one, each with what it is.
    found = [
        [line.split("\t")[0] for line in each.splitlines()] for each in done.stdout.split("\n\n")
    ]
    assert found[: len(LINES)] == [[completed.split()[-1]] for _, completed in LINES]


class Terminal:
    """A zsh whose user types; ^X shows the line as it is, ^U empties it."""

    def __init__(self) -> None:
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.execvp("zsh", ["zsh", "--no-rcs", "-i"])
        # The marks are not to be found in what is typed.
        self.type(
            'stty -ixon; show() { print -r -- "<<$BUFFER>>" }; zle -N show; '
            "bindkey '^X' show; bindkey '^U' kill-whole-line; "
            "eval \"$(moldau completion zsh)\"; print READ''Y\n"
        )
        self.read_until("READY\r\n")

    def type(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def read_until(self, mark: str) -> str:
        received = b""
        deadline = time.monotonic() + 60
        while mark.encode() not in received:
            ready, _, _ = select.select([self._fd], [], [], deadline - time.monotonic())
            assert ready, f"{mark!r} is not in {received!r}"
            received += os.read(self._fd, 4096)
        return received.decode(errors="replace")

    def completed(self, line: str) -> str:
        self.type(f"{line}\t\x18")
        shown = self.read_until(">>\r\n")
        self.type("\x15")
        return shown[shown.rindex("<<") + 2 : shown.rindex(">>")]

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._fd)


@pytest.fixture
def zsh(home: Path) -> Iterator[Terminal]:
    if shutil.which("zsh") is None:
        pytest.skip("no zsh on this machine")
    terminal = Terminal()
    yield terminal
    terminal.close()


def test_zsh_completes(zsh: Terminal) -> None:
    assert [(line, zsh.completed(line)) for line, _ in LINES] == LINES
