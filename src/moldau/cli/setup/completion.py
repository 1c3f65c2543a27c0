"""`moldau completion`: the script that completes moldau commands in a shell.

The script runs `moldau completion --line WORDS` for candidates, so it is always up to date:
commands and options come from the parsers, names of topics and groups from the broker that the
command would use. A query never fails and never waits long: without an answer there are no
candidates.
"""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Iterable, Sequence

from moldau.cli.catalogue import TOOLS, Tool, find_tool
from moldau.cli.support.addresses import DEFAULT_SERVERS, named_cluster
from moldau.cli.support.arguments import Parser

__all__ = ["add_arguments", "candidates", "run"]

_EXAMPLES = """\
installation:
  bash   echo 'eval "$(moldau completion bash)"' >> ~/.bashrc
  zsh    echo 'eval "$(moldau completion zsh)"' >> ~/.zshrc
  fish   echo 'moldau completion fish | source' >> ~/.config/fish/config.fish
"""

_BASH = """\
_moldau_complete() {
    # The shell takes words apart at : and =, and replaces only what is behind the last of them.
    local line="${COMP_LINE:0:COMP_POINT}"
    COMPREPLY=()
    local candidate prefix=""
    local current="${line##* }"
    case "$current" in *[:=]*) prefix="${current%"${current##*[:=]}"}" ;; esac
    while IFS= read -r candidate; do
        COMPREPLY+=("${candidate#"$prefix"}")
    done < <(moldau completion --line="$line" 2>/dev/null)
    case "${COMPREPLY[0]}" in */|*=) compopt -o nospace 2>/dev/null ;; esac
    [ ${#COMPREPLY[@]} -eq 0 ] && compopt -o default 2>/dev/null
    return 0
}
complete -F _moldau_complete moldau SCRIPTS
"""

_ZSH = """\
#compdef moldau
_moldau() {
    local -a candidates
    # The words of this command only: others may stand before it on the line.
    local line="${(j: :)words[1,CURRENT-1]} $PREFIX"
    candidates=("${(@f)$(moldau completion --line="$line" 2>/dev/null)}")
    if [[ -n "${candidates[1]}" ]]; then
        compadd -Q -- "${candidates[@]}"
    else
        [[ "$PREFIX" == --*=* ]] && compset -P '*='
        _files
    fi
}
(( ${+functions[compdef]} )) || { autoload -Uz compinit && compinit -i }
compdef _moldau moldau SCRIPTS
# As a file of fpath, the whole script is run by the first completion.
[[ "${funcstack[1]}" == _moldau ]] && _moldau "$@" || true
"""

_FISH = """\
function __moldau_complete
    set -l line (commandline -cp | string collect)
    set -l found (moldau completion --line="$line" 2>/dev/null)
    if set -q found[1]
        printf '%s\\n' $found
        return
    end
    set -l token (commandline -ct)
    set -l option (string match -r -- '^--[^=]*=' "$token")
    for path in (__fish_complete_path (string replace -- "$option" '' "$token"))
        echo "$option$path"
    end
end
for command in moldau SCRIPTS
    complete -c $command -f -a '(__moldau_complete)'
end
"""

_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
# Which names to query from a broker, by the option that takes them.
_TOPIC_OPTIONS = ("--topic", "--include", "--input-topic", "--topic-list", "--topics-include")
_GROUP_OPTIONS = ("--group",)
_ASK_SECONDS_MAX = 2.0


def add_arguments(parser: Parser) -> None:
    parser.description = "print the script that completes moldau commands in a shell"
    parser.epilog = _EXAMPLES
    parser.add_argument("shell", nargs="?", choices=tuple(_SCRIPTS), help="shell")
    parser.add_argument("--line", metavar="TEXT", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    if arguments.line is not None:
        # A line that cannot be completed, for whatever reason, must not print an error.
        logging.disable()
        for candidate in candidates(arguments.line):
            print(candidate)
        return 0
    if arguments.shell is None:
        arguments.parser.error(f"name a shell: {', '.join(_SCRIPTS)}")
    scripts = " ".join(f"{tool.script}.sh" for tool in TOOLS.values() if tool.script is not None)
    print(_SCRIPTS[arguments.shell].replace("SCRIPTS", scripts), end="")
    return 0


def candidates(line: str) -> list[str]:
    """What the last word of `line` may become; its first is moldau or a script of Kafka's name."""
    words = line.split(" ")
    words = [word for word in words[:-1] if word] + [words[-1]]
    program, *before, current = words if len(words) > 1 else ["", *words]
    name = program.rpartition("/")[2]
    if name.endswith(".sh"):
        before = [name.removesuffix(".sh"), *before]
    if not before:
        return _beginning(current, [*TOOLS, "--help", "--version"])
    tool = find_tool(before)
    if tool is None:
        return []
    if tool.name == "cluster" and len(before) == 1:
        return [
            *_beginning(current, ("cluster-id", "unregister", "list-endpoints")),
            *_of_tool(tool, before[1:], current),
        ]
    return _of_tool(tool, before[1:], current)


def _of_tool(tool: Tool, before: Sequence[str], current: str) -> list[str]:
    from moldau.cli.main import parser_of

    try:
        parser: argparse.ArgumentParser = parser_of(tool)
    except ImportError:
        return []
    for word in before:
        commands = _commands(parser)
        if word in commands:
            parser = commands[word]
    options = parser._option_string_actions
    name, equals, value = current.partition("=")
    if equals and name in options:
        found = _values(options[name], name, value, before)
        return [f"{name}={each}" for each in found]
    if before and before[-1] in options and options[before[-1]].nargs != 0:
        found = _values(options[before[-1]], before[-1], current, before)
        if found or options[before[-1]].nargs is None:
            return found
    if current.startswith("-"):
        return _beginning(current, options)
    found = _beginning(current, _commands(parser))
    for action in parser._actions:
        if not action.option_strings and action.choices and not found:
            found = _beginning(current, map(str, action.choices))
    return found or (_beginning(current, options) if not current else [])


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _values(action: argparse.Action, option: str, current: str, before: Sequence[str]) -> list[str]:
    if action.choices:
        return _beginning(current, map(str, action.choices))
    if option in _TOPIC_OPTIONS:
        return _beginning(current, _names_from_broker(before, "topics"))
    if option in _GROUP_OPTIONS:
        return _beginning(current, _names_from_broker(before, "groups"))
    return []


def _names_from_broker(words: Sequence[str], kind: str) -> list[str]:
    """Names of topics or groups; nothing if the broker does not answer."""
    given = argparse.ArgumentParser(add_help=False, exit_on_error=False, allow_abbrev=False)
    given.add_argument("--bootstrap-server")
    given.add_argument("--command-config")
    try:
        arguments, _ = given.parse_known_args(list(words))
        if not arguments.bootstrap_server:
            cluster = named_cluster(os.environ)
            arguments.bootstrap_server = DEFAULT_SERVERS
            if cluster is not None:
                arguments.bootstrap_server = cluster.bootstrap_servers
                arguments.command_config = arguments.command_config or cluster.config_file
        return _ask(arguments, kind)
    except (Exception, SystemExit):
        return []


def _ask(arguments: argparse.Namespace, kind: str) -> list[str]:
    from moldau.cli.support.client_options import client_config
    from moldau.cli.support.connecting import wait_until_reachable
    from moldau.client.admin import Admin

    config = client_config(arguments)
    config["default.api.timeout.ms"] = int(_ASK_SECONDS_MAX * 1000)
    config["request.timeout.ms"] = int(_ASK_SECONDS_MAX * 1000)
    wait_until_reachable(config, seconds_max=0)
    with Admin(config) as admin:
        if kind == "topics":
            return sorted(admin.list_topics())
        return sorted(listing.group_id for listing in admin.list_groups())


def _beginning(current: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(current)]
