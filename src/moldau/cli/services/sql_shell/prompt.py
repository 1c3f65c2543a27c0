"""Reading statements from a person: completion, history, several lines."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from moldau.cli.services.sql_shell.completion import Catalogue, complete
from moldau.cli.services.sql_shell.splitting import client_command, statements
from moldau.installation import pip_install
from moldau.sql.client.errors import Error
from moldau.sql.client.http import SqlClient

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyBindings

__all__ = ["CatalogueReader", "Editor", "Reader", "history_path", "reader_for"]

PROMPT = "ksql> "
CONTINUED = "    > "


class Reader(Protocol):
    """Reads one piece of input: a statement, or a command of the shell."""

    def read(self) -> str | None:
        """None at the end; "" if the line was given up."""


def history_path(environment: dict[str, str] | os._Environ[str]) -> Path:
    home = environment.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(home) / "moldau" / "sql_history"


class CatalogueReader:
    """Knows what the server has, without ever letting the prompt wait for it."""

    def __init__(self, client: Callable[[], SqlClient]) -> None:
        self._client = client
        self.known = Catalogue()
        self._busy = threading.Lock()

    def refresh(self) -> None:
        """In the background; what was known is used until then."""
        if not self._busy.acquire(blocking=False):
            return
        threading.Thread(target=self._read, name="moldau-sql-names", daemon=True).start()

    def _read(self) -> None:
        try:
            self.known = read_catalogue(self._client())
        except (Error, KeyError, TypeError):
            pass  # Completion is a help: without a server there are keywords only.
        finally:
            self._busy.release()


def read_catalogue(client: SqlClient) -> Catalogue:
    """Sources with their columns, functions, queries and topics of a server."""
    found = client.execute(
        "SHOW STREAMS EXTENDED; SHOW TABLES EXTENDED; SHOW FUNCTIONS; SHOW QUERIES; SHOW TOPICS;"
    )
    sources: dict[str, list[str]] = {}
    names: dict[str, list[str]] = {"functions": [], "queries": [], "topics": []}
    for entity in found:
        for each in entity.get("sourceDescriptions", ()):
            sources[each["name"]] = [column["name"] for column in each["fields"]]
        for kind, known in names.items():
            known += [each.get("id") or each["name"] for each in entity.get(kind, ())]
    return Catalogue(sources, names["functions"], names["queries"], names["topics"])


def is_complete(text: str) -> bool:
    """Whether Enter runs what was typed."""
    if not text.strip() or client_command(text) is not None:
        return True
    done, rest = statements(text)
    return bool(done) and not rest.strip()


class Editor:
    """prompt_toolkit's editor: Enter runs a statement that has its semicolon, else adds a line."""

    def __init__(self, catalogue: CatalogueReader, history: Path | None) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
        from prompt_toolkit.completion import CompleteEvent, Completer, Completion
        from prompt_toolkit.document import Document
        from prompt_toolkit.history import FileHistory, History, InMemoryHistory
        from prompt_toolkit.lexers import PygmentsLexer
        from pygments.lexers.sql import SqlLexer

        class Words(Completer):
            def get_completions(
                self, document: Document, complete_event: CompleteEvent
            ) -> Iterator[Completion]:
                words, typed = complete(document.text_before_cursor, catalogue.known)
                for word in words:
                    yield Completion(word, start_position=-typed)

        self.history: History = InMemoryHistory()
        if history is not None:
            try:
                history.parent.mkdir(parents=True, exist_ok=True)
                history.touch(mode=0o600)
                self.history = FileHistory(str(history))
            except OSError as error:
                print(f"{history}: {error.strerror}: no history is kept", file=sys.stderr)
        self._session: Any = PromptSession(
            message=PROMPT,
            prompt_continuation=CONTINUED,
            multiline=True,
            completer=Words(),
            complete_while_typing=True,
            auto_suggest=AutoSuggestFromHistory(),
            history=self.history,
            enable_history_search=False,
            lexer=PygmentsLexer(SqlLexer),
            key_bindings=_bindings(),
            enable_open_in_editor=True,
        )

    def read(self) -> str | None:
        try:
            found: str = self._session.prompt()
            return found
        except KeyboardInterrupt:
            return ""
        except EOFError:
            return None


def _bindings() -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    bindings = KeyBindings()

    @bindings.add("enter")
    def _enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state and buffer.complete_state.current_completion:
            buffer.complete_state = None
        elif is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings


class _Lines:
    """A file or a pipe: statement by statement, without a prompt."""

    def __init__(self, lines: Iterator[str], prompt: Callable[[bool], None] | None = None) -> None:
        self._lines = lines
        self._prompt = prompt

    def read(self) -> str | None:
        text = ""
        while True:
            if self._prompt is not None:
                self._prompt(bool(text))
            try:
                line = next(self._lines, None)
            except KeyboardInterrupt:
                return ""
            if line is None:
                return text if text.strip() else None
            text += line
            if not text.strip():
                text = ""
            elif is_complete(text):
                return text


def reader_for(source: Any, catalogue: CatalogueReader, history: Path | None) -> Reader:
    """An editor on a terminal, lines otherwise."""
    if not source.isatty():
        return _Lines(iter(source))
    try:
        import prompt_toolkit  # noqa: F401
    except ImportError:
        print(
            f"Completion and history need prompt_toolkit: {pip_install('sql')}",
            file=sys.stderr,
        )

        def prompt(continued: bool) -> None:
            print(CONTINUED if continued else PROMPT, end="", flush=True)

        return _Lines(iter(source), prompt)
    return Editor(catalogue, history)
