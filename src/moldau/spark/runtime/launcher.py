"""How Spark's server starts Python.

Spark puts `pyspark.zip` first on the path of every Python process that it starts, and what is in
that archive is not compiled: each process compiles all of it again, which takes a second of a core
where the installed package, of which the archive is a copy, takes a third of that. A busy machine
does not get that done within the ten seconds that Spark gives the reader of a stream to start. So
the server is given a launcher that takes the archive off the path, and that has processes which
Spark waits for connect at once (see `connecting`). It also takes the token off the
address that Spark gives to the workers of `foreachBatch`, which they print; it is in their
environment as well, where PySpark looks for it.

Invariants: a launched process is the very process that Spark started, with its id; without
the archive on the path, or where files of the folder may not be executed, nothing is changed.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from moldau.spark.runtime import connecting

__all__ = ["install", "launcher_text"]


def launcher_text(python: str, archive: str) -> str:
    """A script that runs `python` as it was called, with `archive` off its path.

    Spark gives the reader of a stream its own path twice, so the archive may be there twice.
    """
    return f"""#!/bin/sh
archive={shlex.quote(f":{archive}:")}
left=":$PYTHONPATH:"
while :; do
  case $left in
    *"$archive"*) left=${{left%%"$archive"*}}:${{left#*"$archive"}} ;;
    *) break ;;
  esac
done
left=${{left#:}}
PYTHONPATH=${{left%:}}
export PYTHONPATH
case $SPARK_CONNECT_LOCAL_URL in
  *";token="*) export SPARK_CONNECT_LOCAL_URL="${{SPARK_CONNECT_LOCAL_URL%%;token=*}}" ;;
esac
awaited=$PYTHON_WORKER_FACTORY_PORT$PYTHON_WORKER_FACTORY_SOCK_PATH
case "${{awaited:+$1 $2}}" in
  "-m pyspark.daemon") ;;
  "-m pyspark."*) exec {shlex.quote(python)} {shlex.quote(connecting.__file__)} "$@" ;;
esac
exec {shlex.quote(python)} "$@"
"""


def install(path: Path, python: str, spark_home: Path) -> str:
    """What the server is to run in place of `python`, which has pyspark from `spark_home`."""
    archive = spark_home / "python" / "lib" / "pyspark.zip"
    partial = path.with_name(f"{path.name}.tmp")
    partial.write_text(launcher_text(python, str(archive)))
    partial.chmod(0o700)
    partial.replace(path)
    # Not so where the folder's file system is mounted with `noexec`.
    return str(path) if os.access(path, os.X_OK) else python
