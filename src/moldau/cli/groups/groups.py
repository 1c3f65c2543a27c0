"""`moldau groups`: list groups of all types, as kafka-groups does."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import add_common, add_json
from moldau.cli.support.connecting import open_admin
from moldau.cli.support.failures import ToolError
from moldau.cli.support.reporting import reporting_as
from moldau.cli.support.tables import Table, print_json
from moldau.client.admin import GroupListing, GroupType

__all__ = ["add_arguments", "run"]

_SHORTCUTS = ("--consumer", "--share", "--streams")
_WIDTH_MIN = 20

_EXAMPLES = """\
examples:
  moldau groups --list
  moldau groups --list --share
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    add_common(parser)
    parser.add_argument("--list", action="store_true", help="list groups")
    parser.add_argument(
        "--group-type",
        metavar="TYPE",
        help="only groups of this type: classic, consumer, share or streams",
    )
    parser.add_argument("--protocol", metavar="NAME", help="only groups with this protocol type")
    parser.add_argument(
        "--consumer",
        action="store_true",
        help="only consumer groups, including classic and simple ones",
    )
    parser.add_argument("--share", action="store_true", help="only share groups")
    parser.add_argument("--streams", action="store_true", help="only streams groups")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    wanted = _check(arguments)
    with (
        reporting_as("Error while executing groups command : ", to_stdout=True),
        open_admin(arguments) as admin,
    ):
        groups = [each for each in admin.list_groups() if _is_wanted(each, arguments, wanted)]
    if arguments.json:
        print_json(
            [
                {"group": each.group_id, "type": _type(each), "protocol": each.protocol}
                for each in groups
            ]
        )
        return 0
    table = Table("GROUP", "TYPE", "PROTOCOL", plain=_plain)
    for each in groups:
        table.add(each.group_id, _type(each), each.protocol)
    table.show()
    return 0


def _check(arguments: argparse.Namespace) -> GroupType | None:
    parser: Parser = arguments.parser
    if not arguments.list:
        parser.error("Command must include exactly one action: --list.")
    for option in _SHORTCUTS:
        others = [other for other in _SHORTCUTS if other != option]
        parser.refuse(arguments, option, ["--group-type", "--protocol", *others])
    if arguments.group_type is None:
        return None
    wanted = GroupType.parse(arguments.group_type)
    if wanted is GroupType.UNKNOWN:
        raise ToolError("--group-type must be a valid group type.")
    return wanted


def _is_wanted(
    group: GroupListing, arguments: argparse.Namespace, wanted: GroupType | None
) -> bool:
    if wanted is not None or arguments.protocol is not None:
        return (wanted is None or group.type is wanted) and (
            arguments.protocol is None or group.protocol == arguments.protocol
        )
    if arguments.consumer:
        return group.protocol in ("consumer", "") or group.type is GroupType.CONSUMER
    if arguments.share:
        return group.type is GroupType.SHARE
    return not arguments.streams or group.type is GroupType.STREAMS


def _type(group: GroupListing) -> str:
    return "" if group.type is None else str(group.type)


def _plain(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    width = max([_WIDTH_MIN, *(len(cell) for row in rows for cell in row)])
    yield " ".join(f"{header:<{width}}" for header in headers)
    for row in rows:
        yield "".join(f"{cell:<{width}} " for cell in row)
