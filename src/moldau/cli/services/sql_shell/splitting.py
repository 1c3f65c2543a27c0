"""Input as statements, and as commands of the shell itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

from moldau.sql.syntax.lexer import EOF, tokens

__all__ = ["CLIENT_COMMANDS", "Chart", "Command", "chart_of", "client_command", "statements"]

#: As ksqlDB's CLI has them, and CHART and LIVE. They need no semicolon.
CLIENT_COMMANDS = {
    "HELP": "this list",
    "EXIT": "end the shell; QUIT and Ctrl-D do the same",
    "CLEAR": "clear the screen",
    "HISTORY": "what was typed before",
    "OUTPUT": "OUTPUT [TABULAR | JSON | CSV | PLAIN]: how answers are shown",
    "RUN SCRIPT": "RUN SCRIPT 'FILE': execute the statements of a file",
    "SPOOL": "SPOOL FILE | OFF: write what is shown to a file, too",
    "SERVER": "SERVER [URL]: show or change the server",
    "VERSION": "versions of the shell and the server",
    "CLI": "CLI [WRAP ON | OFF] [COLUMN-WIDTH N]: how columns are shown",
    "REQUEST_PIPELINING": "accepted; statements always wait for the one before",
    "LIVE": "LIVE SELECT ... EMIT CHANGES;: a table whose rows are updated in place",
    "CHART": "CHART column [BY label] SELECT ...;: bars or a line of a column",
}
_CHART = re.compile(
    r"\s*CHART\s+(?P<column>`[^`]+`|[\w.]+)(?:\s+BY\s+(?P<label>`[^`]+`|[\w.]+))?\s+"
    r"(?P<query>SELECT\b.*)",
    re.IGNORECASE | re.DOTALL,
)
_LIVE = re.compile(r"\s*LIVE\s+(?P<query>SELECT\b.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the shell, in capitals, and what stands after it."""

    name: str
    argument: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A query that is drawn; `column` None stands for a live table."""

    query: str
    column: str | None
    label: str | None


def client_command(line: str) -> Command | None:
    """The command of the shell that a line is, if it is one."""
    text = line.strip().rstrip(";").strip()
    upper = " ".join(text.upper().split())
    if upper in ("QUIT", "EXIT"):
        return Command("EXIT", "")
    for name in CLIENT_COMMANDS:
        if name in ("LIVE", "CHART"):
            continue
        if upper == name or upper.startswith(f"{name} "):
            words = text.split(None, len(name.split()))
            return Command(name, words[-1] if len(words) > len(name.split()) else "")
    found = re.fullmatch(r"SET\s+CLI\s+(.*)", text, re.IGNORECASE | re.DOTALL)
    return None if found is None else Command("CLI", found[1])


def chart_of(text: str) -> Chart | None:
    """The query of CHART or LIVE."""
    found = _CHART.fullmatch(text)
    if found is not None:
        label = found["label"]
        return Chart(
            found["query"], _name(found["column"]), None if label is None else _name(label)
        )
    live = _LIVE.fullmatch(text)
    return None if live is None else Chart(live["query"], None, None)


def _name(text: str) -> str:
    return text[1:-1] if text[0] == "`" else text.rpartition(".")[2].upper()


def statements(text: str) -> tuple[list[str], str]:
    """The statements that end with a semicolon, and what comes after them."""
    found, start = [], 0
    for token in tokens(text):
        if token.kind == ";":
            piece = text[start : token.end].strip()
            if piece != ";":
                found.append(piece)
            start = token.end
        elif token.kind == EOF:
            break
    rest = text[start:]
    return found, rest if tokens(rest)[0].kind != EOF else ""
