"""The line that is shown of a start that failed; the texts are Spark's."""

from __future__ import annotations

import pytest

from moldau.spark.runtime.machine.logs import failure_line, port_taken, ui_port

FRAMES = "\tat org.apache.spark.deploy.SparkSubmit.error(SparkSubmit.scala:1)\n\t... 9 more\n"
NOISE = "WARNING: Using incubator modules: jdk.incubator.vector\n"
BIND = (
    "2026-11-16 09:41:49 ERROR SparkConnectServer: Error starting Spark Connect server\n"
    "java.net.BindException: Failed to bind to address /127.0.0.1:29777: Service "
    "'org.apache.spark.sql.connect.service.SparkConnectService' failed after 0 retries\n"
)
WHILE_ENDING = (
    "2026-11-16 09:42:40 ERROR SparkContext: Error initializing SparkContext.\n"
    "org.apache.spark.SparkIllegalArgumentException: [INVALID_DRIVER_MEMORY.SYSTEM_MEMORY] "
    "Insufficient driver memory: System memory 104857600 must be at least 471859200.\n"
    "Please increase heap size. SQLSTATE: F0000\n"
    f"{FRAMES}"
    "2026-11-16 09:42:40 INFO SparkContext: Unable to report driver heartbeat metrics\n"
    'java.lang.NullPointerException: Cannot invoke "org.apache.spark.Heartbeater.report()"\n'
)


@pytest.mark.parametrize(
    ("log", "line"),
    [
        pytest.param(
            f'{NOISE}Exception in thread "main" org.apache.spark.SparkException: Master must '
            f"either be yarn or start with spark, k8s, or local\n{FRAMES}",
            "Master must either be yarn or start with spark, k8s, or local",
            id="uncaught",
        ),
        pytest.param(
            WHILE_ENDING,
            "Insufficient driver memory: System memory 104857600 must be at least 471859200",
            id="the first error, not what follows from it",
        ),
        pytest.param(
            f"org.apache.spark.SparkException: outer things went wrong\n{FRAMES}"
            f"Caused by: java.io.FileNotFoundException: /nope/x.jar\n{FRAMES}",
            "FileNotFoundException: /nope/x.jar",
            id="innermost cause, named where its words say little",
        ),
        pytest.param(
            "Invalid maximum heap size: -Xmxabc\nError: Could not create the Java Virtual Machine.",
            "spark.driver.memory is not a size: write it as 512m or 4g",
            id="heap",
        ),
        pytest.param(
            ":: loading settings\n::::\n\t:: unresolved dependency: org.nowhere#nothing;1.0: not "
            'found\nException in thread "main" java.lang.RuntimeException: [unresolved]',
            "--packages: no repository that can be reached here has org.nowhere:nothing:1.0",
            id="packages",
        ),
        pytest.param(
            f"{NOISE}2026-11-16 09:42:40 INFO A: b\n2026-11-16 09:42:41 ERROR C: it broke.",
            "it broke",
            id="an error without an exception",
        ),
        pytest.param(f"{NOISE}/bin/bash: no such file\n", "/bin/bash: no such file", id="a script"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_the_line_that_says_why(log: str, line: str) -> None:
    assert failure_line(log) == line


def test_a_port_that_was_taken_meanwhile_is_recognised() -> None:
    assert port_taken(BIND)
    assert not port_taken(WHILE_ENDING)


def test_the_port_of_the_ui() -> None:
    line = "2026-11-16 INFO Utils: Successfully started service 'SparkUI' on port {}.\n"
    assert ui_port(line.format(4040) + line.format(4042)) == 4042
    assert ui_port("nothing") is None
