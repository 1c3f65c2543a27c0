"""Log aggregation: lines of files and syslog messages in one topic, with origin and severity."""

import logging
import logging.handlers
import re
import socket

from stage import Stage

from moldau.streams import StreamsBuilder, Topology

SEVERITIES = ("emergency", "alert", "critical", "error", "warning", "notice", "info", "debug")
LINE = re.compile(r"(?P<at>\S+) (?P<severity>\w+) (?P<text>.*)")


def from_file(line: str) -> dict[str, str]:
    found = LINE.match(line)
    if found is None:
        return {"origin": "file", "severity": "unknown", "text": line}
    return {"origin": "file", "severity": found["severity"].lower(), "text": found["text"]}


def from_syslog(message: dict) -> dict[str, str]:
    severity = SEVERITIES[message["level"]]
    return {"origin": "syslog", "severity": severity, "text": message["message"]}


def build() -> Topology:
    builder = StreamsBuilder()
    files = builder.stream("log-files", key_serde="string", value_serde="json").map_values(
        from_file
    )
    syslog = builder.stream("syslog", key_serde="string", value_serde="json").map_values(
        from_syslog
    )
    together = files.merge(syslog)
    together.to("logs", key_serde="string", value_serde="json")
    together.filter(lambda _, entry: entry["severity"] in ("error", "critical")).to(
        "errors", key_serde="string", value_serde="json"
    )
    return builder.build()


with Stage(__doc__) as stage:
    stage.topics("log-files", "syslog", "logs", "errors")
    worker = stage.service("connect")
    log_file = stage.folder / "web.log"
    log_file.touch()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    stage.connector(
        worker, "files", connector_class="FileStreamSource", file=log_file, topic="log-files"
    )
    stage.connector(
        worker, "network", connector_class="SyslogSource", syslog_port=port, topic="syslog"
    )
    stage.streams(build(), "log-aggregation")

    count = 50 if stage.short else 2000
    system = logging.getLogger("app")
    system.propagate = False
    system.addHandler(logging.handlers.SysLogHandler(("127.0.0.1", port)))
    system.setLevel(logging.INFO)
    with log_file.open("a") as lines:
        for number in range(count):
            severity = "ERROR" if number % 10 == 0 else "INFO"
            print(f"2026-03-12T12:00:00Z {severity} request {number}", file=lines, flush=True)
            (system.error if number % 10 == 0 else system.info)("job %d", number)
    stage.until_records("logs", 2 * count)
    logs = [entry for _, entry in stage.read("logs")]
    stage.fact("entries", lambda: len(logs))
    stage.until_records("errors", count // 5)
    errors = [entry for _, entry in stage.read("errors")]
    stage.fact("errors", lambda: len(errors))
    for origin in ("file", "syslog"):
        found = sum(entry["origin"] == origin for entry in logs)
        stage.check(f"all {count} entries of the {origin} origin are there once", found == count)
    stage.check("the errors are in a topic of their own", len(errors) == count // 5)
