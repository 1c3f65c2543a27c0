"""`moldau delegation-tokens`: create, renew, expire and describe tokens."""

from __future__ import annotations

import argparse
import time
from base64 import b64decode
from collections.abc import Iterable, Iterator, Sequence

from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import add_common, add_json
from moldau.cli.support.connecting import open_admin
from moldau.cli.support.machine.errors import Refused
from moldau.cli.support.reporting import reporting_as
from moldau.cli.support.tables import Table, on_terminal, print_json
from moldau.client.admin import Admin, DelegationToken, KafkaPrincipal
from moldau.client.errors import UnsupportedVersionError

__all__ = ["add_arguments", "run"]

_ACTIONS = ("--create", "--renew", "--expire", "--describe")
_HEADERS = (
    "TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE",
)  # fmt: skip
_WIDTHS = (15, 30, 15, 15, 25, 15, 15, 15)
_REQUIRED = {
    "--create": ("--max-life-time-period",),
    "--renew": ("--hmac", "--renew-time-period"),
    "--expire": ("--hmac", "--expiry-time-period"),
    "--describe": (),
}
_REFUSED = {
    "--create": ("--hmac", "--renew-time-period", "--expiry-time-period"),
    "--renew": (
        "--renewer-principal", "--max-life-time-period", "--expiry-time-period",
        "--owner-principal",
    ),
    "--expire": ("--max-life-time-period", "--renew-time-period", "--owner-principal"),
    "--describe": (
        "--renew-time-period", "--max-life-time-period", "--hmac", "--expiry-time-period",
    ),
}  # fmt: skip

_EXAMPLES = """\
examples:
  moldau delegation-tokens --create --max-life-time-period -1 \\
    --command-config client.properties
  moldau delegation-tokens --describe --command-config client.properties
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    add_common(parser)
    parser.add_actions(
        {
            "--create": "create a token",
            "--renew": "extend the life of a token",
            "--expire": "set when a token expires",
            "--describe": "show your tokens, or those of --owner-principal",
        }
    )
    for option, text in (
        ("--owner-principal", "owner of the token"),
        ("--renewer-principal", "principal that can renew the token"),
    ):
        parser.add_argument(
            option,
            action="append",
            default=[],
            metavar="TYPE:NAME",
            help=f"{text}; may be repeated",
        )
    for option, text in (
        ("--max-life-time-period", "maximum life; -1 for the broker's setting (create)"),
        ("--renew-time-period", "how long to extend; -1 for the broker's setting (renew)"),
        ("--expiry-time-period", "time until it expires; -1 for now (expire)"),
    ):
        parser.add_argument(option, type=int, metavar="MS", help=text)
    parser.add_argument("--hmac", metavar="BASE64", help="HMAC of the token (renew, expire)")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    parser = arguments.parser
    given = [option for option in _ACTIONS if parser.is_given(arguments, option)]
    if len(given) != 1:
        parser.error(
            "Command must include exactly one action: --create, --renew, --expire or --describe"
        )
    (action,) = given
    parser.require(arguments, "--command-config", *_REQUIRED[action])
    parser.refuse(arguments, action, _REFUSED[action])
    with reporting_as(""):
        try:
            with open_admin(arguments) as admin:
                _WORK[action](admin, arguments)
        except UnsupportedVersionError:
            raise Refused(
                "this broker does not support delegation tokens. It needs "
                "delegation.token.secret.key, or a release that has them"
            ) from None
    return 0


def _create(admin: Admin, arguments: argparse.Namespace) -> None:
    renewers = _principals(arguments.renewer_principal)
    owners = _principals(arguments.owner_principal)
    if not arguments.json:
        print(
            f"Calling create token operation with renewers :{_listed(renewers)} , "
            f"max-life-time-period :{arguments.max_life_time_period}"
        )
    token = admin.create_delegation_token(
        owner=owners[0] if owners else None,
        renewers=renewers,
        max_lifetime_ms=arguments.max_life_time_period,
    )
    if arguments.json:
        print_json(_as_json(token))
        return
    print(f"Created delegation token with tokenId : {token.token_info.token_id}")
    _show([token])


def _renew(admin: Admin, arguments: argparse.Namespace) -> None:
    period = arguments.renew_time_period
    if not arguments.json:
        print(
            f"Calling renew token operation with hmac :{arguments.hmac} , "
            f"renew-time-period :{period}"
        )
    expiry = admin.renew_delegation_token(_hmac(arguments), renew_time_period_ms=period)
    _tell_expiry(arguments, "renew", expiry)


def _expire(admin: Admin, arguments: argparse.Namespace) -> None:
    period = arguments.expiry_time_period
    if not arguments.json:
        print(
            f"Calling expire token operation with hmac :{arguments.hmac} , "
            f"expire-time-period :{period}"
        )
    expiry = admin.expire_delegation_token(_hmac(arguments), expiry_time_period_ms=period)
    _tell_expiry(arguments, "expire", expiry)


def _describe(admin: Admin, arguments: argparse.Namespace) -> None:
    owners = _principals(arguments.owner_principal)
    if not arguments.json:
        if owners:
            print(f"Calling describe token operation for owners: {_listed(owners)}")
        else:
            print("Calling describe token operation for current user.")
    tokens = admin.describe_delegation_token(owners)
    if arguments.json:
        print_json([_as_json(token) for token in tokens])
        return
    # Kafka's table begins with a line break, which ends this line.
    print(f"Total number of tokens : {len(tokens)}", end="\n" if on_terminal() else "")
    _show(tokens)


_WORK = {"--create": _create, "--renew": _renew, "--expire": _expire, "--describe": _describe}


def _principals(texts: Iterable[str]) -> list[KafkaPrincipal]:
    try:
        return [KafkaPrincipal.parse(text.strip()) for text in texts]
    except ValueError as error:
        raise Refused(str(error)) from None


def _listed(principals: Iterable[KafkaPrincipal]) -> str:
    return f"[{', '.join(map(str, principals))}]"


def _hmac(arguments: argparse.Namespace) -> bytes:
    try:
        return b64decode(arguments.hmac, validate=True)
    except ValueError:
        raise Refused(f"--hmac {arguments.hmac} is not base64") from None


def _tell_expiry(arguments: argparse.Namespace, action: str, expiry: int) -> None:
    if arguments.json:
        print_json({"expiryTimestamp": expiry})
    else:
        print(f"Completed {action} operation. New expiry date : {_date(expiry)}")


def _date(timestamp_ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M", time.localtime(timestamp_ms / 1000))


def _show(tokens: Sequence[DelegationToken]) -> None:
    table = Table(*_HEADERS, plain=_plain)
    for token in tokens:
        info = token.token_info
        table.add(
            info.token_id,
            token.hmac_as_base64_string,
            info.owner,
            info.token_requester,
            _listed(info.renewers),
            _date(info.issue_timestamp),
            _date(info.expiry_timestamp),
            _date(info.max_timestamp),
        )
    table.show()


def _plain(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for row in (headers, *rows):
        yield ""
        yield " ".join(f"{cell:<{width}}" for cell, width in zip(row, _WIDTHS, strict=True))


def _as_json(token: DelegationToken) -> dict[str, object]:
    info = token.token_info
    return {
        "tokenId": info.token_id,
        "hmac": token.hmac_as_base64_string,
        "owner": str(info.owner),
        "requester": str(info.token_requester),
        "renewers": [str(each) for each in info.renewers],
        "issueTimestamp": info.issue_timestamp,
        "expiryTimestamp": info.expiry_timestamp,
        "maxTimestamp": info.max_timestamp,
    }
