"""Finds in a server's log why it did not start, and where its UI is.

Pure: text in, a line out. Known failures are put into words; of others the innermost cause of the
first error is shown, not the page of frames around it and not what failed while all was ending.
"""

from __future__ import annotations

import re

__all__ = ["failure_line", "port_taken", "ui_port"]

_UI = re.compile(r"Successfully started service 'SparkUI' on port (\d+)")
_LOGGED = re.compile(r"^\d{2,4}[-/]\d\d[-/]\d\d \d\d:\d\d:\d\d (\w+) \S+: (.*)")
_TOP = re.compile(r'^(?:Exception in thread "[^"]*" )?((?:[a-z]\w*\.)+[A-Z][\w$]*(?:: .*)?)$')
_CAUSE = re.compile(r"^Caused by: (.*)")
_EXCEPTION = re.compile(r"^(?:[a-z]\w*\.)+([A-Z][\w$]*)(?:: (.*))?$")
_ERROR_CLASS = re.compile(r"^\[[A-Z0-9_.]+\] |\s*SQLSTATE: \w+\s*$")
_NOISE = ("WARNING:", "Using Spark's default log4j", ":: ", "Ivy Default Cache", "The jars for the")

_KNOWN = (
    (
        re.compile(r"UnsupportedClassVersionError"),
        "this Java is too old for Spark: Java 17 or newer is needed",
    ),
    (
        re.compile(r"Invalid (?:maximum|initial) heap size: -Xm[xs](\S*)"),
        "spark.driver.memory is not a size: write it as 512m or 4g",
    ),
    (
        re.compile(r"(?:Could not reserve enough space|insufficient memory for the Java)", re.I),
        "there is not enough memory for the server: give less with --conf spark.driver.memory=1g",
    ),
    (
        re.compile(r"All masters are unresponsive"),
        "no cluster answers at the address of --master: is it running there?",
    ),
    (
        re.compile(r"HADOOP_CONF_DIR or YARN_CONF_DIR must be set"),
        "the master yarn needs HADOOP_CONF_DIR or YARN_CONF_DIR in the environment",
    ),
)
_UNRESOLVED = re.compile(r"unresolved dependency: ([^\s:#]+)#([^\s:;]+);([^\s:]+)")


def ui_port(log: str) -> int | None:
    found = _UI.findall(log)
    return int(found[-1]) if found else None


def port_taken(log: str) -> bool:
    """Whether another program took the server's port between our look and its start."""
    return "Failed to bind to address" in log and "SparkConnectService" in log


def failure_line(log: str) -> str:
    """Why it failed, without a full stop; empty if nothing says so."""
    for pattern, words in _KNOWN:
        if pattern.search(log):
            return words
    unresolved = [":".join(found) for found in _UNRESOLVED.findall(log)]
    if unresolved:
        names = ", ".join(dict.fromkeys(unresolved))
        return f"--packages: no repository that can be reached here has {names}"
    return (_first_cause(log) or _first_words(log)).rstrip(". ")


def _first_cause(log: str) -> str:
    """The innermost cause of the first exception that was an error."""
    level, cause = "ERROR", ""
    for line in log.splitlines():
        logged = _LOGGED.match(line)
        if logged is not None:
            if cause:
                break
            level = logged[1]
            continue
        inner = _CAUSE.match(line)
        if inner is not None and cause:
            cause = inner[1]
        elif level in ("ERROR", "FATAL") and not cause and (top := _TOP.match(line)) is not None:
            cause = top[1]
    return _short(cause)


def _short(cause: str) -> str:
    """An exception by its words; by its name too where the words alone say little."""
    match = _EXCEPTION.match(cause)
    if match is None:
        return cause
    name, words = match[1], _ERROR_CLASS.sub("", match[2] or "")
    return words if len(words.split()) > 3 else f"{name}: {words}".rstrip(": ")


def _first_words(log: str) -> str:
    """The first line that is an error, else the first that is not mere chatter."""
    first = ""
    for line in log.splitlines():
        logged = _LOGGED.match(line)
        if logged is not None and logged[1] in ("ERROR", "FATAL"):
            return logged[2]
        if logged is None and not first and line.strip() and not line.startswith(_NOISE):
            first = line.strip()
    return first
