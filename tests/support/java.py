"""Apache Kafka's Java side beside the tests: its command line tools, and programs of tests/java.

A program is compiled when its text is new, beside Kafka's jars: a second less for each start. The
tools run one after the other in one virtual machine, which the next test goes on with: a start for
each would cost more than all they do.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from support.processes import KAFKA_JARS, ROOT, TOOL_CLASSES, java

SOURCES = ROOT / "tests" / "java"
# Where programs have their temporary files, which those that are killed do not delete.
_temporary = tempfile.mkdtemp(prefix="moldau-java-")
atexit.register(shutil.rmtree, _temporary, ignore_errors=True)
JAVA = java(TOOL_CLASSES, f"-Djava.io.tmpdir={_temporary}")


def program(source: str, *options: str) -> list[str]:
    """The command that runs a program of tests/java, with options of the virtual machine."""
    *machine, flag, jars = JAVA
    classes = _compiled(SOURCES / source)
    return [*machine, *options, flag, f"{jars}:{classes}", source.removesuffix(".java")]


def _compiled(source: Path) -> Path:
    """Its classes; of two processes that make them at the same time, one's are kept."""
    state = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    kept = KAFKA_JARS / "classes" / f"{source.stem}-{state}"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        made = tempfile.mkdtemp(dir=kept.parent)
        compiler = ["javac", "-nowarn", "-cp", f"{KAFKA_JARS}/*", "-d", made, str(source)]
        ended = subprocess.run(compiler, capture_output=True, text=True, timeout=240, check=False)
        assert ended.returncode == 0, ended.stderr
        with suppress(OSError):
            Path(made).rename(kept)
        shutil.rmtree(made, ignore_errors=True)
    return kept


def run_program(source: str, *arguments: str, seconds_max: float = 600) -> str:
    """What a program of tests/java prints; fails with all of it when the program fails."""
    command = [*program(source), *arguments]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=seconds_max, check=False
    )
    assert ended.returncode == 0, f"{source}:\n{ended.stdout[-3000:]}\n{ended.stderr[-5000:]}"
    return ended.stdout


@dataclass(frozen=True)
class Outcome:
    status: int
    output: str


class _Machine:
    """A virtual machine that runs tools; started when it is first needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, words: list[str]) -> Outcome:
        try:
            return self._run(words)
        except BaseException:
            # What it still prints would be taken for the answer to the next command.
            self.end()
            raise

    def _run(self, words: list[str]) -> Outcome:
        if self._process is None:
            command = program("RunTools.java")
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            atexit.register(self.end)
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(("\t".join(words) + "\n").encode())
        stdin.flush()
        head = stdout.readline().split()
        assert len(head) == 2, f"the tools ended while running {words[0]}"
        status, size = map(int, head)
        return Outcome(status, stdout.read(size).decode())

    def end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


# Those that nobody uses at the moment.
_idle: list[_Machine] = []


class KafkaTools:
    """Apache Kafka's command line tools, pointed at one broker."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._machine = _idle.pop() if _idle else _Machine()

    def run(self, tool: str, *arguments: str, typed: str = "") -> Outcome:
        """Run one tool to its end; the broker's address in its output becomes BROKER."""
        address = ("--bootstrap-server", self.bootstrap)
        outcome = self.run_alone(tool, *address, *arguments, typed=typed)
        return Outcome(outcome.status, outcome.output.replace(self.bootstrap, "BROKER"))

    def run_alone(self, tool: str, *arguments: str, typed: str = "") -> Outcome:
        """Run a tool that talks to no broker."""
        escaped = typed.replace("\n", "\\n").replace("\t", "\\t")
        return self._machine.run([tool, escaped, *arguments])

    def __enter__(self) -> KafkaTools:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _idle.append(self._machine)
