"""A small program in Spark's place, for tests of what starts and stops it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["MOLDAU", "install"]

MOLDAU = [sys.executable, "-m", "moldau.cli"]

_SPARK_SUBMIT = f"""#!{sys.executable}
import socket, sys
conf = dict(word.split("=", 1) for word in sys.argv if "=" in word)
with socket.create_server(("127.0.0.1", int(conf["spark.connect.grpc.binding.port"]))) as listener:
    while True:
        listener.accept()[0].close()
"""
# In every Python process of a deployment, also in the control loop's.
_SITE = """
import pathlib
from moldau.spark.runtime import probe, startup
from moldau.spark.runtime.java import JavaHome
home = pathlib.Path(__file__).parent
startup.spark_home = lambda: home
startup.find_java = lambda environ, cache: JavaHome("/jvm", 21, "PATH", "/usr/bin/java")
probe.answers = lambda host, port, seconds_max, token: "4.3.0"
"""


def install(folder: Path) -> dict[str, str]:
    """The environment of commands that find it in the folder."""
    script = folder / "bin" / "spark-submit"
    if not script.exists():
        script.parent.mkdir()
        script.write_text(_SPARK_SUBMIT)
        script.chmod(0o755)
        (folder / "sitecustomize.py").write_text(_SITE)
    return os.environ | {
        "MOLDAU_CACHE": str(folder / "cache"),
        "XDG_STATE_HOME": str(folder / "state"),
        "PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}",
    }
