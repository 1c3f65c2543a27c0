"""What of a server's log tells a user why it did not start, and where its UI is.

Pure: text in, a line out. Known failures are put into words; of others the innermost cause is
shown, not the page of frames around it.
"""

from __future__ import annotations

import re

__all__ = ["failure_line", "port_taken", "ui_port"]

_UI = re.compile(r"Successfully started service 'SparkUI' on port (\d+)")
_PREFIX = re.compile(r"^\d{2,4}[-/]\d\d[-/]\d\d \d\d:\d\d:\d\d \w+ \S+: ")
_CAUSE = re.compile(r"^(?:Caused by: |Exception in thread \"[^\"]*\" )(.*)")
_EXCEPTION = re.compile(r"^(?:[a-z]\w*\.)+([A-Z]\w*(?:Exception|Error|Failure))(?:: (.*))?$")
_NOISE = ("WARNING:", "Using Spark's default log4j", "\tat ", "    at ", "\t... ", ":: ", "\t")
_BOUND = "Address already in use"

_KNOWN = (
    (
        re.compile(r"UnsupportedClassVersionError"),
        "this Java is too old for Spark: Java 17 or newer is needed",
    ),
    (
        re.compile(r"(?:Could not reserve enough space|insufficient memory)"),
        "there is not enough memory for the server: give less with --conf spark.driver.memory=1g",
    ),
    (
        re.compile(r"All masters are unresponsive|Failed to connect to master (\S+)"),
        "nobody answers at the address of --master: is the cluster running there?",
    ),
    (
        re.compile(r"HADOOP_CONF_DIR or YARN_CONF_DIR must be set"),
        "the master yarn needs HADOOP_CONF_DIR or YARN_CONF_DIR in the environment",
    ),
)


def ui_port(log: str) -> int | None:
    found = _UI.findall(log)
    return int(found[-1]) if found else None


def port_taken(log: str) -> bool:
    """Whether another program took the server's port between our look and its start."""
    return _BOUND in log and "SparkConnect" in log


def failure_line(log: str) -> str:
    """The line that says why; empty if there is none."""
    for pattern, words in _KNOWN:
        if pattern.search(log):
            return words
    unresolved = re.findall(r"unresolved dependency: ([^\s:]+#[^\s:]+;[^\s:]+)", log)
    if unresolved:
        names = ", ".join(dict.fromkeys(unresolved))
        return f"--packages: cannot be had from any repository here: {names}"
    causes: list[str] = []
    last = ""
    for raw in log.splitlines():
        if not raw.strip() or raw.startswith(_NOISE):
            continue
        line = _PREFIX.sub("", raw).strip()
        match = _CAUSE.match(line)
        if match is not None:
            causes.append(match[1])
        elif _EXCEPTION.match(line):
            causes.append(line)
        if " ERROR " in raw or line.lower().startswith("error"):
            last = line
    return _short(causes[-1]) if causes else last


def _short(cause: str) -> str:
    """An exception by its words; by its name too where the words alone say nothing."""
    match = _EXCEPTION.match(cause)
    if match is None:
        return cause
    name, words = match[1], match[2] or ""
    return words if len(words.split()) > 3 else f"{name}: {words}".rstrip(": ")
