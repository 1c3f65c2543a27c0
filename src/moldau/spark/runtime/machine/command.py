"""The command line of a Connect server: every setting it gets, and why.

Pure. What the user sets always wins; where a setting is a list (Java options, jars, archives) both
count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Protocol

from moldau.spark.runtime.machine.checkpoint_class import CLASS_NAME as CHECKPOINT_FILES
from moldau.spark.runtime.machine.settings import ServerSettings

__all__ = [
    "TOKEN_KEY",
    "Environment",
    "Shipped",
    "connector_of",
    "is_secret",
    "log_settings",
    "master_of",
    "properties_text",
    "server_conf",
    "spark_submit",
]

SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
#: What sessions ask a server for to learn which connector it has.
CONNECTOR_KEY = "spark.moldau.connector"
TOKEN_KEY = "spark.connect.authenticate.token"
# Spark's own, and the settings of Kafka's clients that hold a password or a key under another name.
_SECRET_NAMES = (
    "secret|password|token|access[.]?key|passphrase"
    "|sasl[.]jaas[.]config|ssl[.]keystore[.](key|certificate)|ssl[.]truststore[.]certificates"
)
_REDACTION = f"(?i){_SECRET_NAMES}"
# The event log and the UI also have requests of sessions as text, with the options of their sources
# and sinks. They may be cut off within a value.
_REDACTION_TEXT = f'(?i)key: "[^"\\n]*({_SECRET_NAMES})[^"\\n]*"\\s+value: "(\\\\.|[^"\\\\])*'
_SLOTS_MIN = 16
_ATTEMPTS = 4
_BRINGS_JARS = ("spark.jars", "spark.jars.packages")
_ARCHIVE_NAME = "moldau_packages"
# Of 830 MB that Java had taken for small pipelines it used 170. By default it takes a 64th of the
# machine at once, and gives nothing back unless more than 70 % of what it has are free.
_SMALL_HEAP = "-Xms64m -XX:MinHeapFreeRatio=20 -XX:MaxHeapFreeRatio=40"
# Twenty times a second Java writes figures for `jstat` to a file: most of what an idle one takes.
_NO_FIGURES = "-XX:-UsePerfData"
# Several threads collect a heap of many gigabytes faster; with few cores they only cost memory.
_SERIAL, _SERIAL_CORES_MAX = "-XX:+UseSerialGC", 4
# G1 gives memory back when it collects, which it does not if little happens.
_PERIODIC = "-XX:+UseG1GC -XX:G1PeriodicGCInterval=60000"
_PATH_SEPARATOR = ":"
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
_JOINED = {
    "spark.jars": ",",
    "spark.archives": ",",
    "spark.driver.extraClassPath": _PATH_SEPARATOR,
    "spark.driver.extraJavaOptions": " ",
    "spark.redaction.regex": "|",
    "spark.redaction.string.regex": "|",
}


@dataclass(frozen=True, slots=True)
class Shipped:
    """What executors on other machines get: an archive, and the same unpacked for the driver."""

    archive: str
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What was found on this machine for one start."""

    cores: int
    memory_bytes: int
    port: int
    jars: Sequence[str] = ()
    shipped: Shipped | None = None
    #: A folder in which Unix sockets can be made; None for TCP.
    sockets: str | None = None
    #: Options that the environment gives to every Java, as text.
    java_options: str = ""


class Places(Protocol):
    """The files of a deployment folder that Spark's settings name."""

    @property
    def warehouse(self) -> PurePath: ...
    @property
    def events(self) -> PurePath: ...
    @property
    def log(self) -> PurePath: ...
    @property
    def log_settings(self) -> PurePath: ...
    @property
    def checkpoint_jar(self) -> PurePath: ...


def server_conf(
    settings: ServerSettings, places: Places, environment: Environment
) -> dict[str, str]:
    """All of Spark's settings, the user's among them."""
    conf = {
        "spark.app.name": "moldau",
        "spark.connect.grpc.binding.address": settings.host,
        "spark.connect.grpc.binding.port": str(environment.port),
        # With a session end its queries, and after an hour without a word from its client it ends:
        # they must outlive a control loop that has not been started again yet.
        "spark.connect.session.manager.defaultSessionTimeout": "7d",
        CONNECTOR_KEY: connector_of(settings, environment.jars),
        # A busy machine needs longer than Spark's 15 s to start a Python worker.
        "spark.python.authenticate.socketTimeout": "60s",
        # What the UI, plans and the event log show of settings and options.
        "spark.redaction.regex": _REDACTION,
        "spark.redaction.string.regex": _REDACTION_TEXT,
        "spark.sql.warehouse.dir": str(places.warehouse),
        **_history(places),
        "spark.driver.extraJavaOptions": _java_options(settings, places, environment),
    }
    if environment.jars:
        conf["spark.jars"] = ",".join(environment.jars)
    if settings.is_local:
        gigabytes = max(1, min(4, environment.memory_bytes // (8 << 30)))
        conf |= {
            "spark.driver.memory": f"{gigabytes}g",
            # Spark's 200 tasks of a shuffle are for clusters; here they only cost their start.
            "spark.sql.shuffle.partitions": str(max(2, environment.cores)),
            # Else the number of slots, which is larger.
            "spark.default.parallelism": str(max(2, environment.cores)),
            # Files of shuffles are deleted, and memory is given back, when Java has looked at all
            # of its heap: every half an hour by default.
            "spark.cleaner.periodicGC.interval": "10min",
            **_checkpoint_files(places),
        }
    if environment.sockets is not None:
        conf |= {
            "spark.python.unix.domain.socket.enabled": "true",
            "spark.python.unix.domain.socket.dir": environment.sockets,
        }
    if settings.on_this_machine:
        conf |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if environment.shipped is not None:
        conf |= {
            "spark.archives": f"{environment.shipped.archive}#{_ARCHIVE_NAME}",
            # An executor unpacks archives in its folder; Python starts there, or in a folder under
            # it that is its session's.
            "spark.executorEnv.PYTHONPATH": f"{_ARCHIVE_NAME}:../{_ARCHIVE_NAME}",
        }
    return _with_own(conf, settings.conf)


def master_of(settings: ServerSettings, *, cores: int) -> str:
    """What Spark gets for the default: more slots than cores, because a hosted instance keeps its
    slot while it waits for records, and several attempts, because with one a killed Python worker
    would fail the whole job."""
    if settings.master != "local[*]":
        return settings.master
    return f"local[{max(_SLOTS_MIN, 2 * cores)},{_ATTEMPTS}]"


def connector_of(settings: ServerSettings, jars: Sequence[str]) -> str:
    """Which connector a server will have beside ours: fetched by us, or named by the user."""
    named = (*settings.packages, *(settings.conf.get(key, "") for key in _BRINGS_JARS))
    return "kafka" if jars or any("spark-sql-kafka" in text for text in named) else "moldau"


def _checkpoint_files(places: Places) -> dict[str, str]:
    """Spark's default starts ten processes (readlink, chmod) for every file of a checkpoint, two of
    which a micro-batch writes, one after the other; this class starts none."""
    jar = str(places.checkpoint_jar)
    if _PATH_SEPARATOR in jar:
        # Java would not find it.
        return {}
    return {
        "spark.sql.streaming.checkpointFileManagerClass": CHECKPOINT_FILES,
        "spark.driver.extraClassPath": jar,
    }


def _history(places: Places) -> dict[str, str]:
    """The UI and the event log of a server that runs for months must not grow with its age."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": places.events.as_uri(),
        "spark.eventLog.rolling.enabled": "true",
        "spark.eventLog.rolling.maxFileSize": "32m",
        "spark.eventLog.compress": "true",
        "spark.ui.retainedJobs": "200",
        "spark.ui.retainedStages": "200",
        "spark.ui.retainedTasks": "5000",
        "spark.sql.ui.retainedExecutions": "100",
        "spark.sql.streaming.ui.retainedQueries": "50",
    }


def _java_options(settings: ServerSettings, places: Places, environment: Environment) -> str:
    # A server without memory does not answer; one that has ended is started again.
    options = f'-XX:+ExitOnOutOfMemoryError "-Dlog4j2.configurationFile={places.log_settings}"'
    if not settings.is_local:
        return options
    return " ".join((options, _SMALL_HEAP, _NO_FIGURES, *_collector(settings, environment)))


def _collector(settings: ServerSettings, environment: Environment) -> Iterator[str]:
    """Java refuses to start with two collectors, so one that the user names is the only one."""
    given = settings.conf.get("spark.driver.extraJavaOptions", "")
    if _COLLECTOR.search(f"{given} {environment.java_options}") is None:
        yield _SERIAL if environment.cores <= _SERIAL_CORES_MAX else _PERIODIC


def _with_own(conf: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    merged = {**conf, **own}
    for key, separator in _JOINED.items():
        if key in conf and key in own:
            merged[key] = f"{conf[key]}{separator}{own[key]}"
    path = "spark.executorEnv.PYTHONPATH"
    if path in conf and path in own:
        merged[path] = f"{conf[path]}:{own[path]}"
    return merged


def is_secret(key: str) -> bool:
    """Whether a setting's value must not be shown."""
    return re.search(_REDACTION, key) is not None


def spark_submit(
    program: str,
    settings: ServerSettings,
    conf: Mapping[str, str],
    packages: Sequence[str],
    *,
    secrets: PurePath,
    cores: int,
) -> list[str]:
    """What is secret is in the file `secrets`, see `properties_text`."""
    command = [program, "--master", master_of(settings, cores=cores)]
    if any(is_secret(key) for key in conf):
        command += ["--properties-file", str(secrets), "--load-spark-defaults"]
    for key, value in sorted(conf.items()):
        if not is_secret(key):
            command += ["--conf", f"{key}={value}"]
    if packages:
        command += ["--packages", ",".join(packages)]
    return [*command, "--class", SERVER_CLASS, "spark-internal"]


def properties_text(conf: Mapping[str, str]) -> str:
    """The secret ones of the settings, as Java reads properties."""
    return "".join(
        f"{key}={_escaped(value)}\n" for key, value in sorted(conf.items()) if is_secret(key)
    )


def _escaped(value: str) -> str:
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return "\\" + text if text.startswith(" ") else text


def log_settings(places: Places) -> str:
    """A log that rolls over: a streaming query alone logs hundreds of lines a minute at INFO."""
    return f"""\
# Written by moldau at every start of the server.
status = error
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file

appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {places.log}
appender.file.filePattern = {places.log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 5

# Where it listens, and what its executors do.
logger.server.name = org.apache.spark.sql.connect.service.SparkConnectServer
logger.server.level = info
logger.services.name = org.apache.spark.util.Utils
logger.services.level = info
logger.cluster.name = org.apache.spark.scheduler.cluster
logger.cluster.level = info
# Says at every start that Hadoop is not compiled for this machine.
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
"""
