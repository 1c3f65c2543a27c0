"""Installs this checkout into the environment of the Python that runs it, and shows how far it is.

    python tools/set_up.py             compile and install moldau, editable
    python tools/set_up.py EXTRA       add what an extra needs; nothing is compiled again

pip says nothing for minutes while it compiles, or far too much. This runs it with all its output in
a log beside the environment and prints one line for each step.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parents[1]
LOG = Path(sys.prefix) / "install.log"
LAST_LINES = 30
NOT_COMPILED = re.compile(r"building extension \S+ failed|command '\S+' failed|Unable to find.*gcc")


class Steps:
    """What to show of pip's output: each step once, compiled modules with their number."""

    def __init__(self, modules: int) -> None:
        self._modules = modules
        self._compiled = 0
        self.uncompiled = False

    def read(self, line: str) -> str | None:
        """The step that begins with this line, if one does."""
        line = line.strip()
        if NOT_COMPILED.search(line):
            self.uncompiled = True
        if match := re.match(r"building '(\S+)' extension", line):
            self._compiled += 1
            return f"compiling {match[1]} ({self._compiled} of {self._modules})"
        if line.startswith("Installing build dependencies: started"):
            return "fetching the build tools"
        if line.startswith("Getting requirements to build editable: started"):
            return f"translating {self._modules} modules to C"
        if match := re.match(r"Collecting ([A-Za-z0-9._-]+)", line):
            return f"fetching {match[1]}"
        if match := re.match(r"Installing collected packages: (.+)", line):
            return f"installing {match[1].count(',') + 1} packages"
        return None


def main(words: list[str]) -> int:
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    if words:
        (extra,) = words
        print(f"Adding the packages of moldau[{extra}] to {_shown(Path(sys.prefix))}:", flush=True)
        # By name: moldau is here already, so that pip only looks at what the extra needs.
        command = [*pip, f"moldau[{extra}]"]
    else:
        print(
            f"Setting up {_shown(Path(sys.prefix))}, which is done once. Where there is a C "
            "compiler it takes some minutes:",
            flush=True,
        )
        command = [*pip, "-v", "-e", str(ROOT)]
    began = time.monotonic()
    steps = Steps(_module_count())
    with LOG.open("w", encoding="utf-8") as log:
        status = _run(command, log, steps, lambda: time.monotonic() - began)
    if status != 0:
        lines = LOG.read_text(encoding="utf-8").splitlines()[-LAST_LINES:]
        print("\n".join(lines), file=sys.stderr)
        print(f"\npip failed. All of its output is in {_shown(LOG)}", file=sys.stderr)
        return status
    if steps.uncompiled:
        print("  Not all modules could be compiled: it works, several times slower. Is there a C")
        print(f"  compiler? {_shown(LOG)} has its messages.")
    print(f"  done in {time.monotonic() - began:.0f} s", flush=True)
    return 0


def _run(command: list[str], log: TextIO, steps: Steps, elapsed_s: Callable[[], float]) -> int:
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout or ():
            log.write(line)
            step = steps.read(line)
            if step is not None:
                print(f"  {elapsed_s():4.0f} s  {step}", flush=True)
        return process.wait()


def _module_count() -> int:
    return len(re.findall(r'^    "moldau\.', (ROOT / "setup.py").read_text(), re.MULTILINE))


def _shown(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
