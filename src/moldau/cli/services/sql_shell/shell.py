"""The shell: runs statements at a server, and its own commands here."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TextIO

from moldau import __version__
from moldau.cli.services.sql_shell.printing import OUTPUTS, Output, Printer
from moldau.cli.services.sql_shell.prompt import CatalogueReader, Editor, history_path, reader_for
from moldau.cli.services.sql_shell.splitting import (
    CLIENT_COMMANDS,
    Chart,
    Command,
    chart_of,
    client_command,
    statements,
)
from moldau.sql.client.errors import Error, InterfaceError
from moldau.sql.client.http import SqlClient
from moldau.sql.errors import KsqlException
from moldau.sql.syntax.lexer import EOF, tokens
from moldau.sql.syntax.parser import parse, prepare
from moldau.sql.syntax.statements import (
    DefineVariable,
    Query,
    SetProperty,
    Show,
    Statement,
    UndefineVariable,
    UnsetProperty,
)
from moldau.sql.syntax.variables import substitute

__all__ = ["Shell"]

_QUERIES: Final = ("SELECT", "PRINT")
_LOCAL: Final = ("SET", "UNSET", "DEFINE", "UNDEFINE", "SHOW", "LIST")
#: Scripts may run scripts, but not for ever.
_DEPTH_MAX: Final = 20


class _Ended(Exception):
    """The user wants to leave."""


class Shell:
    """Remembers what SET and DEFINE say, and sends it along."""

    def __init__(
        self,
        client: SqlClient,
        out: TextIO,
        *,
        output: Output | None = None,
        variables: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        row_limit: int | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        self._client = client
        self._printer = Printer(out, output)
        self._properties: dict[str, str] = dict(properties or {})
        self._variables: dict[str, str] = dict(variables or {})
        self._row_limit = row_limit
        self._timeout_ms = timeout_ms
        self._catalogue = CatalogueReader(lambda: self._client)
        self._editor: Editor | None = None
        self._depth = 0

    def execute(self, script: str) -> int:
        """Execute the statements of a text, up to the first that fails; the exit code."""
        try:
            self._run(script)
        except _Ended:
            return 0
        except (Error, KsqlException, OSError) as error:
            self._fail(_message(error))
            return 1
        return 0

    def run(self, source: TextIO) -> int:
        """Read statements until the end, or until `exit`."""
        reader = reader_for(source, self._catalogue, history_path(os.environ))
        if source.isatty():
            self._welcome()
        if isinstance(reader, Editor):
            self._editor = reader
        code = 0
        while True:
            text = reader.read()
            if text is None:
                return code
            if not text.strip():
                continue
            try:
                self._run(text)
            except _Ended:
                return code
            except (Error, KsqlException, OSError) as error:
                self._fail(_message(error))
                # A program that pipes statements in wants to know; a person has seen it.
                code = 0 if source.isatty() else 1

    def _welcome(self) -> None:
        printer = self._printer
        try:
            info = self._client.info()
            printer.line(
                f"Moldau SQL {__version__}, server {info.get('version')} at {self._client.url} "
                f"({info.get('serverStatus')})"
            )
            self._catalogue.refresh()
        except Error as error:
            self._fail(str(error))
        printer.line("Statements end with a semicolon. HELP lists the commands, Ctrl-D ends.")

    # Statements.

    def _run(self, text: str) -> None:
        command = client_command(text)
        if command is not None:
            self._printer.echo(text.strip())
            self._command(command)
            return
        done, rest = statements(text)
        if rest.strip():
            done.append(rest.strip())
        if "${" not in text:
            self._check(done)
        for each in done:
            command = client_command(each)
            self._printer.echo(each)
            if command is not None:
                self._command(command)
            else:
                self._statement(each)

    def _check(self, texts: list[str]) -> None:
        """All of a script must be grammatical before the first statement runs."""
        plain = [each for each in texts if client_command(each) is None and chart_of(each) is None]
        if len(plain) > 1:
            parse("\n".join(plain))

    def _statement(self, text: str) -> None:
        chart = chart_of(text)
        try:
            if chart is not None:
                self._chart(chart)
                return
            first = tokens(text)[0].kind
            if first == EOF:
                return
            if first in _QUERIES:
                self._query(text)
                return
            if first in _LOCAL and self._local(_tree(substitute(text, self._variables))):
                return
            for entity in self._client.execute(text, self._properties, self._variables):
                self._printer.entity(entity)
        except KeyboardInterrupt:
            self._printer.line("Query terminated")
            return
        if self._editor is not None:
            self._catalogue.refresh()

    def _local(self, statement: Statement) -> bool:
        """Statements that change what the shell sends; False if it is not one of them."""
        line = self._printer.line
        match statement:
            case SetProperty(name=name, value=value, is_system=False):
                before = self._properties.get(name)
                self._properties[name] = value
                if before is None:
                    line(
                        f"Successfully changed local property '{name}' to '{value}'. "
                        "Use the UNSET command to revert your change."
                    )
                else:
                    line(
                        f"Successfully changed local property '{name}' from '{before}' to "
                        f"'{value}'."
                    )
            case UnsetProperty(name=name):
                if name not in self._properties:
                    raise InterfaceError(
                        f"Cannot unset local property '{name}' which was never set in the first "
                        "place"
                    )
                value = self._properties.pop(name)
                line(f"Successfully unset local property '{name}' (value was '{value}').")
            case DefineVariable(name=name, value=value):
                self._variables[name] = value
            case UndefineVariable(name=name):
                if self._variables.pop(name, None) is None:
                    raise InterfaceError(
                        f"Cannot undefine variable '{name}' which was never defined"
                    )
            case Show(what="VARIABLES"):
                self._printer.table(("Variable Name", "Value"), sorted(self._variables.items()))
            case _:
                return False
        return True

    # Queries.

    def _query(self, text: str) -> None:
        stream = self._client.query(text, self._properties, self._variables)
        timer = None
        if self._timeout_ms is not None:
            timer = threading.Timer(self._timeout_ms / 1000, stream.close)
            timer.daemon = True
            timer.start()
        try:
            lines = stream.lines()
            if self._row_limit is not None:
                lines = (line for _, line in zip(range(self._row_limit), lines, strict=False))
            self._printer.rows(stream.names, stream.types, lines)
        except KeyboardInterrupt:
            # Ctrl-C ends the query, and not the shell or the script.
            self._printer.line("Query terminated")
        else:
            if self._printer.output == "TABULAR":
                self._printer.line("Query terminated")
        finally:
            if timer is not None:
                timer.cancel()
            stream.close()

    def _chart(self, chart: Chart) -> None:
        from moldau.cli.services.sql_shell.live import show_live

        keys = self._key_columns(chart.query)
        stream = self._client.query(chart.query, self._properties, self._variables)
        try:
            show_live(self._printer, stream, chart, keys)
        except KeyboardInterrupt:
            self._printer.line("Query terminated")
        finally:
            stream.close()

    def _key_columns(self, text: str) -> list[str]:
        """The columns that say which row of a live table a row replaces."""
        with contextlib.suppress(KsqlException, Error, KeyError):
            query = _tree(substitute(text, self._variables))
            if not isinstance(query, Query):
                return []
            if query.group_by is not None:
                names = [str(getattr(each, "name", "")) for each in query.group_by]
                return [*names, *(["WINDOWSTART"] if query.window is not None else [])]
            found = self._client.execute(f"DESCRIBE `{query.source.name}`;")
            source = found[0]["sourceDescription"]
            if source["type"] != "TABLE":
                return []
            keys = [each["name"] for each in source["fields"] if each.get("type") == "KEY"]
            return [*keys, *(["WINDOWSTART"] if source.get("windowType") else [])]
        return []

    # Commands.

    def _command(self, command: Command) -> None:
        rules: dict[str, Callable[[str], None]] = {
            "EXIT": self._exit,
            "HELP": self._help,
            "CLEAR": self._clear,
            "HISTORY": self._history,
            "OUTPUT": self._output,
            "RUN SCRIPT": self._run_script,
            "SPOOL": self._spool,
            "SERVER": self._server,
            "VERSION": self._version,
            "CLI": self._cli,
            "REQUEST_PIPELINING": lambda argument: None,
        }
        rules[command.name](_unquoted(command.argument))

    def _exit(self, argument: str) -> None:
        raise _Ended

    def _help(self, argument: str) -> None:
        self._printer.line("Commands of the shell:")
        for name, said in CLIENT_COMMANDS.items():
            self._printer.line(f"  {name:<20}{said}")
        self._printer.line("The server runs the rest: SHOW STREAMS; DESCRIBE name; SELECT ...;")

    def _clear(self, argument: str) -> None:
        if self._printer.is_terminal:
            self._printer.out.write("\x1b[2J\x1b[H")

    def _history(self, argument: str) -> None:
        typed = [] if self._editor is None else self._editor.history.get_strings()
        for index, text in enumerate(typed):
            self._printer.line(f"{index:>5}: {text}")

    def _output(self, argument: str) -> None:
        if not argument:
            self._printer.line(f"Current output format: {self._printer.output}")
            return
        found = next((each for each in OUTPUTS if each == argument.upper()), None)
        if found is None:
            raise InterfaceError(
                f"Invalid output format: '{argument}'. Use one of: {', '.join(OUTPUTS)}"
            )
        self._printer.output = found
        self._printer.line(f"Output format set to {found}")

    def _run_script(self, argument: str) -> None:
        if self._depth >= _DEPTH_MAX:
            raise InterfaceError(f"RUN SCRIPT '{argument}': scripts run each other too deeply")
        try:
            text = Path(argument).expanduser().read_text(encoding="utf-8")
        except OSError as error:
            raise InterfaceError(f"RUN SCRIPT '{argument}': {error.strerror}") from None
        except UnicodeDecodeError:
            raise InterfaceError(f"RUN SCRIPT '{argument}': the file is not UTF-8") from None
        self._depth += 1
        try:
            self._run(text)
        finally:
            self._depth -= 1

    def _spool(self, argument: str) -> None:
        if not argument:
            raise InterfaceError("SPOOL needs a file name, or OFF")
        try:
            self._printer.spool(None if argument.upper() == "OFF" else argument)
        except OSError as error:
            raise InterfaceError(f"SPOOL {argument}: {error.strerror}") from None
        if argument.upper() != "OFF":
            self._printer.line(f"Session will be spooled to {os.path.abspath(argument)}")
            self._printer.line("Enter SPOOL OFF to disable")

    def _server(self, argument: str) -> None:
        if argument:
            client = SqlClient(argument)
            client.info()
            self._client = client
            self._catalogue.refresh()
        self._printer.line(self._client.url)

    def _version(self, argument: str) -> None:
        self._printer.line(f"CLI version: {__version__}")
        self._printer.line(f"Server version: {self._client.info().get('version')}")

    def _cli(self, argument: str) -> None:
        words = argument.upper().split()
        match words:
            case ["WRAP", ("ON" | "OFF") as value]:
                self._printer.wrap = value == "ON"
            case ["COLUMN-WIDTH", value] if value.isdigit() and int(value) > 0:
                self._printer.column_width = int(value)
            case ["COLUMN-WIDTH", "0"]:
                self._printer.column_width = None
            case []:
                self._printer.line(f"wrap {'ON' if self._printer.wrap else 'OFF'}")
                self._printer.line(f"column-width {self._printer.column_width or 'automatic'}")
            case _:
                raise InterfaceError(
                    f"CLI {argument}: use WRAP ON, WRAP OFF, or COLUMN-WIDTH and a number"
                )

    def _fail(self, message: str) -> None:
        print(message, file=sys.stderr)


def _tree(text: str) -> Statement:
    return prepare(parse(text if text.rstrip().endswith(";") else f"{text};")[0])


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return text


def _message(error: Exception) -> str:
    unlogged = getattr(error, "raw_unlogged", None)
    return unlogged if isinstance(unlogged, str) else str(error)
