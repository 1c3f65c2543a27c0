"""Makes the archives of Java classes with which Apache Kafka and its tools start in a second.

`make kafka` runs it once: a server and tools that talk to it are run, and at their end the virtual
machine writes down the classes they loaded. A Java that cannot use an archive does without it.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from support.java import SOURCES
from support.processes import SERVER_CLASSES, TOOL_CLASSES, apache_kafka, java, kafka_missing

END_SECONDS_MAX = 120
TOOLS = "org.apache.kafka.tools."
TOPIC = ("--topic", "t")
# Class, what is typed, arguments.
COMMANDS = (
    (TOOLS + "TopicCommand", "", ("--create", *TOPIC, "--partitions", "2")),
    (TOOLS + "TopicCommand", "", ("--describe",)),
    ("kafka.admin.ConfigCommand", "", ("--describe", *TOPIC, "--all")),
    (TOOLS + "ConsoleProducer", "a\\nb\\n", TOPIC),
    (TOOLS + "consumer.ConsoleConsumer", "", (*TOPIC, "--from-beginning", "--max-messages", "2")),
    (TOOLS + "consumer.group.ConsumerGroupCommand", "", ("--describe", "--all-groups")),
    (TOOLS + "GetOffsetShell", "", TOPIC),
)


def writing(archive: Path) -> str:
    return f"-XX:ArchiveClassesAtExit={archive}"


def make(folder: Path) -> None:
    server = apache_kafka(folder)
    of_server = java(Path("/none"), writing(SERVER_CLASSES))
    server.command = [*of_server, *server.command[-2:]]
    server.start()
    try:
        run_tools(server.bootstrap)
    finally:
        assert server.process is not None
        server.process.terminate()
        server.process.wait(END_SECONDS_MAX)


def run_tools(bootstrap: str) -> None:
    lines = [
        "\t".join((name, typed, "--bootstrap-server", bootstrap, *arguments))
        for name, typed, arguments in COMMANDS
    ]
    subprocess.run(
        [*java(Path("/none"), writing(TOOL_CLASSES)), str(SOURCES / "RunTools.java")],
        input="\n".join(lines) + "\n",
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=END_SECONDS_MAX,
        check=True,
    )


if __name__ == "__main__":
    if kafka_missing() is None:
        with tempfile.TemporaryDirectory() as name:
            make(Path(name))
