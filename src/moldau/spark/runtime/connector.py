"""Spark's own connector for topics, `format("kafka")`: which jars it is, and how they are had.

It is asked for by Maven coordinate only, never by address: Maven where it is installed, else the
resolver that comes with Spark, both with the repositories that the user configured for them. What
was had once is kept in the cache folder, and nothing is asked for again.

Invariants: a folder in the cache is complete or not there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from moldau.spark.runtime.errors import ConnectorUnavailable
from moldau.spark.runtime.java import find_java
from moldau.spark.runtime.places import spark_home

__all__ = ["SCALA", "Artifact", "cached", "candidates", "coordinate", "fetch"]

SCALA = "2.13"
_FETCH_SECONDS_MAX = 180.0


@dataclass(frozen=True, slots=True)
class Artifact:
    """One jar, and the versions that are known to run with Spark, best first."""

    group: str
    name: str
    versions: tuple[str, ...]

    def coordinate(self, version: str) -> str:
        return f"{self.group}:{self.name}:{version}"


def coordinate(spark_version: str) -> str:
    """The connector at Spark's own version, as one would write it after --packages."""
    return f"org.apache.spark:spark-sql-kafka-0-10_{SCALA}:{spark_version}"


def candidates(spark_version: str) -> tuple[Artifact, ...]:
    """All that the connector needs and Spark does not bring.

    A repository may lag behind Spark's releases, and not with all artifacts alike. Of older ones,
    these have been seen to run on 4.3.
    """
    older = [version for version in ("4.2.0", "4.1.1", "4.1.0", "4.0.0") if version < spark_version]
    versions = tuple(dict.fromkeys([spark_version, *older]))
    return (
        Artifact("org.apache.spark", f"spark-sql-kafka-0-10_{SCALA}", versions),
        Artifact("org.apache.spark", f"spark-token-provider-kafka-0-10_{SCALA}", versions),
        Artifact("org.apache.kafka", "kafka-clients", ("3.9.1", "3.9.0")),
        Artifact("org.apache.commons", "commons-pool2", ("2.12.1", "2.12.0")),
    )


def folder_of(cache: Path, spark_version: str) -> Path:
    return cache / f"spark-sql-kafka-{spark_version}"


def cached(cache: Path, spark_version: str) -> list[Path]:
    """The jars if they were had before, else none."""
    return sorted(folder_of(cache, spark_version).glob("*.jar"))


def fetch(cache: Path, spark_version: str, environ: Mapping[str, str] | None = None) -> list[Path]:
    """The jars, from the cache or by coordinate; ConnectorUnavailable says why not, in one line."""
    environ = os.environ if environ is None else environ
    found = cached(cache, spark_version)
    if found:
        return found
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=cache) as name:
        jars = Path(name) / "jars"
        jars.mkdir()
        maven = shutil.which("mvn", path=environ.get("PATH", ""))
        if maven is not None:
            _with_maven(maven, spark_version, jars, environ)
        else:
            _with_spark(spark_version, jars, Path(name), cache, environ)
        target = folder_of(cache, spark_version)
        try:
            jars.rename(target)
        except OSError:
            # Somebody else was faster.
            if not target.is_dir():
                raise
    return cached(cache, spark_version)


def _with_maven(maven: str, spark_version: str, jars: Path, environ: Mapping[str, str]) -> None:
    """Each jar by itself: the parents' files name repositories that may not be reachable."""
    for artifact in candidates(spark_version):
        problem = ""
        for version in artifact.versions:
            problem = _copy(maven, artifact.coordinate(version), jars, environ)
            # Another version helps only where this one is missing.
            if problem != _MISSING:
                break
        if problem:
            raise ConnectorUnavailable(
                f"{artifact.coordinate(artifact.versions[0])} cannot be fetched with Maven here "
                f"({problem})"
            )


def _copy(maven: str, wanted: str, jars: Path, environ: Mapping[str, str]) -> str:
    """What is wrong, or nothing."""
    command = [maven, "-B", "-q", "dependency:copy", f"-Dartifact={wanted}"]
    command += [f"-DoutputDirectory={jars}"]
    try:
        done = subprocess.run(
            command,
            # Beside a project of the user's, Maven would work on that one.
            cwd=jars,
            env=dict(environ),
            capture_output=True,
            text=True,
            timeout=_FETCH_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_FETCH_SECONDS_MAX:.0f} s"
    except OSError as error:
        return f"{maven} does not run: {error.strerror}"
    return "" if done.returncode == 0 else maven_problem(done.stdout + done.stderr)


def maven_problem(output: str) -> str:
    """The part of Maven's words that says what happened."""
    for pattern, words in _MAVEN_WORDS:
        if pattern.search(output):
            return words
    errors = [line.removeprefix("[ERROR] ") for line in output.splitlines() if "[ERROR]" in line]
    return (errors or ["it failed without a message"])[0][:200]


_MISSING = "no repository has it"
_UNREACHABLE = "no repository can be reached"
_UNREACHED = re.compile(
    r"Unknown ?host|Connection refused|timed out|unreachable|offline|Server access error", re.I
)
_MAVEN_WORDS = (
    (re.compile(r"Could not find artifact|was not found in", re.I), _MISSING),
    (_UNREACHED, _UNREACHABLE),
)


def _with_spark(
    spark_version: str, jars: Path, scratch: Path, cache: Path, environ: Mapping[str, str]
) -> None:
    """Spark's own resolver, in a start of Spark that does nothing else."""
    home = spark_home()
    java = find_java(environ, cache)
    problem = ""
    for wanted in _resolvable(spark_version):
        command = [str(home / "bin" / "spark-submit"), "--packages", wanted]
        # The class is not there, so that Spark ends when it has what the class would need.
        command += ["--conf", f"spark.jars.ivy={scratch / 'ivy'}"]
        command += ["--class", "moldau.Nothing", "spark-internal"]
        try:
            done = subprocess.run(
                command,
                cwd=scratch,
                env={**environ, "JAVA_HOME": java.home, "SPARK_HOME": str(home)},
                capture_output=True,
                text=True,
                timeout=_FETCH_SECONDS_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired:
            problem = f"no answer within {_FETCH_SECONDS_MAX:.0f} s"
            continue
        found = sorted((scratch / "ivy" / "jars").glob("*.jar"))
        if any("spark-sql-kafka" in jar.name for jar in found):
            for jar in _needed(found):
                shutil.copy2(jar, jars / jar.name.partition("_")[2])
            return
        said = done.stdout + done.stderr
        problem = _UNREACHABLE if _UNREACHED.search(said) else _MISSING
        if problem == _UNREACHABLE or "unresolved dependency" not in said:
            break
    raise ConnectorUnavailable(
        f"{coordinate(spark_version)} cannot be fetched with Spark's resolver here ({problem})"
    )


def _resolvable(spark_version: str) -> Iterator[str]:
    """Few: each is a start of Java, and without a network this resolver takes its time."""
    connector = candidates(spark_version)[0]
    for version in connector.versions[:2]:
        yield connector.coordinate(version)


def _needed(found: Sequence[Path]) -> list[Path]:
    """Without what Spark brings itself, of which a second copy only makes trouble."""
    names = [artifact.name for artifact in candidates("0")]
    return [jar for jar in found if any(f"_{name}-" in jar.name for name in names)]
