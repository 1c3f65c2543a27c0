"""A session with a deployment's Spark, and which of two connectors its topics go through.

    from moldau.spark import session, topic_format

    spark = session()                     # the server of ./moldau-data-spark, started if need be
    orders = (
        spark.readStream.format(topic_format(spark))
        .option("kafka.bootstrap.servers", "127.0.0.1:9092")
        .option("subscribe", "orders")
        .load()
    )

Both connectors take the same options and give the same columns, so the same code runs on both.

A deployment's server asks every session for its token. It is sent in the clear, but only to an
address of this machine; to any other address PySpark itself sends a token over TLS only.
"""

from __future__ import annotations

import atexit
import os
from typing import Any, Final, Literal
from urllib.parse import unquote, urlsplit

from moldau.spark.runtime import probe
from moldau.spark.runtime.errors import SparkRuntimeError, require
from moldau.spark.runtime.machine.command import CONNECTOR_KEY
from moldau.spark.runtime.machine.settings import CONNECTORS
from moldau.spark.runtime.places import DEFAULT_FOLDER
from moldau.spark.runtime.server import ConnectServer
from moldau.spark.runtime.startup import address_of
from moldau.spark.runtime.state_files import TOKEN_VARIABLE

__all__ = ["has_local_workers", "session", "split_token", "topic_format"]

Connector = Literal["auto", "moldau", "kafka"]

_THIS_MACHINE: Final = ("localhost", "127.0.0.1", "::1")
_ANSWER_SECONDS_MAX: Final = 2.0


def session(
    target: str | os.PathLike[str] | ConnectServer | None = None,
    *,
    start: bool = True,
    user_id: str | None = None,
    session_id: str | None = None,
) -> Any:
    """A new Spark Connect session, a pyspark.sql.SparkSession.

    `target` is a server's address (sc://host:port), a deployment folder or a ConnectServer; without
    one it is the environment's SPARK_REMOTE, else the folder ./moldau-data-spark. A folder's server
    is started if it does not run, and goes on running afterwards; with start=False that is an
    error. With `user_id` and `session_id` it is an existing session, with its views, settings
    and streaming queries.
    """
    url, token = _server_of(target, start=start)
    if user_id is not None:
        url = _with_parameter(url, "user_id", user_id)
    if session_id is not None:
        url = _with_parameter(url, "session_id", session_id)
    builder = require("pyspark.sql.connect.session").SparkSession.builder
    # As PySpark's own builder does, which takes no channel.
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    made = builder.channelBuilder(_channel(url, token)).create()
    # What is registered last runs first: before Spark's own cleaning up of this session.
    atexit.register(_close_if_gone, made.client, url, token)
    return made


def _channel(url: str, token: str | None) -> Any:
    """How PySpark's client connects: with `token` in the clear, else as it does by itself."""
    builder = require("pyspark.sql.connect.client.core").DefaultChannelBuilder
    if token is None:
        return builder(url)
    host, port = address_of(url)
    endpoint = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    # By itself it would use TLS, which Spark's server does not have. Made here, since PySpark is an
    # optional package.
    made = type("InTheClear", (builder,), {"secure": False, "endpoint": endpoint})(url)
    # What is no parameter of the client's becomes metadata of every call.
    for name, value in probe.authorization(token):
        made.set(name, value)
    return made


def _close_if_gone(client: Any, url: str, token: str | None) -> None:
    """Close a session whose server does not answer. At exit Spark's client asks the server to clean
    up, and for ten minutes it would try to reach one that has been stopped."""
    if client.is_closed:
        return
    host, port = address_of(url)
    try:
        version = probe.answers(host, port, seconds_max=_ANSWER_SECONDS_MAX, token=token)
    except RuntimeError:
        # From Python 3.12 on no thread can be started any more at this point.
        version = None
    if version is None:
        client.close()


def _server_of(
    target: str | os.PathLike[str] | ConnectServer | None, *, start: bool
) -> tuple[str, str | None]:
    """A server's address, and the token that may be sent there in the clear."""
    if target is None:
        target = os.environ.get("SPARK_REMOTE") or DEFAULT_FOLDER
    if isinstance(target, str) and target.startswith("sc://"):
        return split_token(target, os.environ.get(TOKEN_VARIABLE))
    server = target if isinstance(target, ConnectServer) else ConnectServer(target)
    if start:
        server.start()
    return server.url, server.token


def split_token(url: str, fallback: str | None) -> tuple[str, str | None]:
    """A URL without its token, and the token, if it leads to this machine or says use_ssl=false.

    Any other URL is left to PySpark, which sends a token, or `fallback`, over TLS only.
    """
    head, separator, rest = url.partition("/;")
    given = dict(each.partition("=")[::2] for each in rest.split(";") if each)
    here = "false" if urlsplit(head).hostname in _THIS_MACHINE else "true"
    if given.get("use_ssl", here).lower() != "false":
        return url, None
    token = given.pop("token", None)
    if separator:
        url = f"{head}/;" + ";".join(f"{name}={value}" for name, value in given.items())
    return url.removesuffix("/;"), unquote(token) if token else fallback


def _with_parameter(url: str, name: str, value: str) -> str:
    """Spark's own form: parameters follow the path, with semicolons."""
    head, separator, rest = url.partition("/;")
    kept = [each for each in rest.split(";") if each and not each.startswith(f"{name}=")]
    if not separator:
        head = head.removesuffix("/")
    return f"{head}/;" + ";".join([*kept, f"{name}={value}"])


def topic_format(spark: Any, connector: str = "auto") -> str:
    """What to pass to `format(...)` for topics: "moldau" or "kafka".

    "auto" is Spark's own connector where the session's server has it, else our source. Asked for
    "kafka" where it is missing, this says how to get it.
    """
    if connector not in CONNECTORS:
        raise SparkRuntimeError(
            f"connector {connector!r} is unknown: choose one of {', '.join(CONNECTORS)}"
        )
    if connector == "moldau":
        return "moldau"
    if _has_kafka(spark):
        return "kafka"
    if connector == "auto":
        return "moldau"
    raise SparkRuntimeError(
        "this Spark has no connector `kafka`. Start the server with it: moldau spark stop; moldau "
        "spark start --connector kafka. Or use the connector `moldau`, which has the same options"
    )


def has_local_workers(spark: Any) -> bool:
    """Whether a session's tasks run in processes of its server's machine, as its user."""
    return str(spark.conf.get("spark.master", None) or "").startswith("local")


def _has_kafka(spark: Any) -> bool:
    """Servers of ours say what they have; of others the settings that bring it in are looked at."""
    named = spark.conf.get(CONNECTOR_KEY, None)
    if named is not None:
        return bool(named == "kafka")
    named = ("spark.jars", "spark.jars.packages")
    return any("spark-sql-kafka" in (spark.conf.get(key, None) or "") for key in named)
