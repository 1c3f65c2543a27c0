"""Master and workers of a Spark cluster from the same package that has everything else."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from moldau.spark.runtime.java import LAUNCHER_OPTIONS, find_java
from moldau.spark.runtime.places import cache_folder, spark_home

__all__ = ["cluster_command"]


def cluster_command(class_name: str, arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """What runs one of Spark's daemons in the foreground, and with which environment."""
    home = spark_home()
    java = find_java(os.environ, cache_folder(os.environ))
    environ = {**os.environ, "JAVA_HOME": java.home, "SPARK_HOME": str(home)}
    environ.setdefault("SPARK_LAUNCHER_OPTS", LAUNCHER_OPTIONS)
    if "127.0.0.1" in arguments:
        # The UI too listens where the daemon does.
        environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # For executors of applications that do not say which Python they want.
    environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return [str(home / "bin" / "spark-class"), class_name, *arguments], environ
