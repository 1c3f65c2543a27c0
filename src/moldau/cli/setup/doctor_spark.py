"""The checks of `moldau doctor` for pipelines: which Java, Spark, packages and connector are used.

Nothing of Spark is imported, since all of it is optional: versions are read where pip wrote them.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Iterator, Mapping

from moldau.cli.setup.doctor_checks import Check, Status
from moldau.installation import pip_install
from moldau.spark.runtime import connector
from moldau.spark.runtime.errors import JavaNotFound
from moldau.spark.runtime.java import JavaHome, find_java
from moldau.spark.runtime.places import cache_folder

__all__ = ["judge_connector", "judge_java", "judge_packages", "judge_spark", "spark_checks"]

_INSTALL = pip_install("spark")
# What a session needs beside pyspark, and from which version on up to which one.
_PACKAGES: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "pyarrow": ((18,), (1000,)),
    "pandas": ((2, 2), (3,)),
    "grpcio": ((1, 67), (1000,)),
}


def spark_checks() -> Iterator[Check]:
    version = _version("pyspark")
    yield judge_spark(version)
    try:
        yield judge_java(find_java(os.environ, cache_folder(os.environ)))
    except JavaNotFound as error:
        yield judge_java(str(error))
    if version is None:
        return
    yield judge_packages({name: _version(name) for name in _PACKAGES})
    jars = connector.cached(cache_folder(os.environ), version)
    yield judge_connector([jar.name for jar in jars])


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def judge_spark(version: str | None) -> Check:
    if version is None:
        found = "not installed. Pipelines need it; everything else does not"
        return Check("spark", Status.WARN, found, _INSTALL)
    if not (4, 3) <= _numbers(version) < (4, 4):
        return Check("spark", Status.WARN, f"pyspark {version}; 4.3 is needed", _INSTALL)
    return Check("spark", Status.OK, f"pyspark {version}")


def judge_java(found: JavaHome | str) -> Check:
    """By the Java that is used, or why there is none."""
    if isinstance(found, JavaHome):
        return Check("java", Status.OK, str(found))
    reason, _, fix = found.rpartition(". ")
    return Check("java", Status.WARN, f"{reason}. Only pipelines on Spark need one", fix)


def judge_packages(versions: Mapping[str, str | None]) -> Check:
    wrong = []
    for name, version in versions.items():
        lowest, end = _PACKAGES[name]
        if version is None:
            wrong.append(f"{name} is missing")
        elif not lowest <= _numbers(version) < end:
            wrong.append(f"{name} {version} does not fit")
    if wrong:
        return Check("spark packages", Status.WARN, ", ".join(wrong), _INSTALL)
    found = ", ".join(f"{name} {version}" for name, version in versions.items())
    return Check("spark packages", Status.OK, found)


def judge_connector(jars: list[str]) -> Check:
    """By the jars of Spark's own connector that are in the cache."""
    for jar in jars:
        match = re.match(r"spark-sql-kafka-0-10_[\d.]+-(.+)\.jar$", jar)
        if match is not None:
            return Check("spark connector", Status.OK, f"moldau, and Spark's own {match[1]}")
    found = "moldau; Spark's own comes with `moldau spark start --connector kafka`"
    return Check("spark connector", Status.OK, found)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
