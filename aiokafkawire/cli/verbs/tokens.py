"""``aiokafkawire tokens``: creates, lists, describes, renews and expires delegation tokens."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import click

from ...admin.delegation_token_descriptions import DelegationToken, KafkaPrincipal
from ...client import Client
from ...errors import DelegationTokenNotFound, UsageError
from ..exit_status import MISSING, CommandFailed
from ..shell.command import ShellGroup
from ..shell.durations import parse_duration
from ..shell.outcomes import call_in_turn, note_errors, results_of_each, saying_what_is_unknown
from ..shell.output import confirm, print_rows
from ..shell.session import Session, run_with_client
from ..shell.shared_options import SharedOptions
from ..shell.visibility import note_none_visible

__all__ = ("command",)

_COLUMNS: Final = ("owner", "requester", "renewers", "issue_timestamp", "expiry_timestamp", "max_timestamp")
_CHANGED: Final = ("token_id", "expiry_timestamp", "outcome")
_EPILOG: Final = (
    "Brokers take these requests from clients that have logged in, and not by a token: name a file with the login by "
    "--config. To log in by a token, its id is the user, its HMAC the password, and sasl.tokenauth is true."
)

_show_hmac: Final = click.option("--show-hmac", is_flag=True, help="The HMACs, too, which are the tokens' passwords.")
_owner_help: Final = "Only tokens that this user owns, requested or may renew, such as User:alice; may be repeated."


@click.group(
    cls=ShellGroup,
    examples=(
        "export AIOKAFKAWIRE_CONFIG=client.properties",
        "aiokafkawire tokens create --renewer User:scheduler --max-life 7d",
        "aiokafkawire tokens list",
        "aiokafkawire tokens expire kZ3Y0hFMR2mMcGIuMWHuaw --yes",
    ),
    epilog=_EPILOG,
)
def command() -> None:
    """Create, list, describe, renew and expire delegation tokens, by which others log in as the owner."""


@command.command(
    "create",
    examples=(
        "aiokafkawire tokens create --renewer User:scheduler --max-life 7d",
        "aiokafkawire tokens create --owner User:alice --json > token.json",
    ),
    epilog=_EPILOG,
)
@click.option("--owner", metavar="PRINCIPAL", help="The user who logs in by the token; by default this client's user.")
@click.option("--renewer", "renewers", multiple=True, metavar="PRINCIPAL", help="A user who may renew the token, too.")
@click.option(
    "--max-life", metavar="DURATION", help="For how long it may be renewed, such as 7d; by default as brokers say."
)
def create_token(shared: SharedOptions, *, owner: str | None, renewers: tuple[str, ...], max_life: str | None) -> int:
    """Create a token, and print its id and its HMAC, which is a password: keep it secret."""
    of_owner = None if owner is None else _principal("--owner", owner)
    of_renewers = [_principal("--renewer", renewer) for renewer in renewers]
    max_lifetime_ms = None if max_life is None else parse_duration("--max-life", max_life)

    async def run(session: Session) -> int:
        with saying_what_is_unknown():
            token = await session.kafka.admin.create_delegation_token(
                owner=of_owner, renewers=of_renewers, max_lifetime_ms=max_lifetime_ms
            )
        _print_tokens(shared, [token], show_hmac=True)
        return 0

    return run_with_client(shared, run)


@command.command(
    "list",
    examples=("aiokafkawire tokens list", "aiokafkawire tokens list --owner User:alice --show-hmac --json"),
    epilog=_EPILOG,
)
@click.option("--owner", "owners", multiple=True, metavar="PRINCIPAL", help=_owner_help)
@_show_hmac
def list_tokens(shared: SharedOptions, *, owners: tuple[str, ...], show_hmac: bool) -> int:
    """List the tokens that you own or may renew, or that ACLs allow you to see."""
    of_owners = [_principal("--owner", owner) for owner in owners] or None

    async def run(session: Session) -> int:
        tokens = await session.kafka.admin.describe_delegation_token(of_owners)
        ordered = sorted(tokens, key=lambda token: (token.issue_timestamp_ms, token.token_id))
        _print_tokens(shared, ordered, show_hmac=show_hmac)
        if not tokens:
            await note_none_visible(session, "tokens")
        return 0

    return run_with_client(shared, run)


@command.command(
    "describe",
    examples=("aiokafkawire tokens describe kZ3Y0hFMR2mMcGIuMWHuaw --show-hmac",),
    epilog=_EPILOG,
)
@click.argument("token_ids", nargs=-1, required=True, metavar="TOKEN_ID...")
@_show_hmac
def describe_tokens(shared: SharedOptions, *, token_ids: tuple[str, ...], show_hmac: bool) -> int:
    """Describe tokens."""

    async def run(session: Session) -> int:
        found, missing = await _tokens(session.kafka, token_ids)
        for error in missing.values():
            note_errors([error])
        if found:
            _print_tokens(shared, found.values(), show_hmac=show_hmac)
        return 1 if missing else 0

    return run_with_client(shared, run)


@command.command(
    "renew",
    examples=("aiokafkawire tokens renew kZ3Y0hFMR2mMcGIuMWHuaw --for 1d",),
    epilog=_EPILOG,
)
@click.argument("token_ids", nargs=-1, required=True, metavar="TOKEN_ID...")
@click.option(
    "--for", "period", metavar="DURATION", help="The time from now until it expires; by default as brokers say."
)
def renew_tokens(shared: SharedOptions, *, token_ids: tuple[str, ...], period: str | None) -> int:
    """Renew tokens that you own or may renew; no token outlives the time at which it expires at latest."""
    period_ms = None if period is None else parse_duration("--for", period)

    async def run(session: Session) -> int:
        async def renew(token: DelegationToken) -> int:
            return await session.kafka.admin.renew_delegation_token(token, renew_time_period_ms=period_ms)

        return await _change_each(session, token_ids, "renewing tokens", renew, "renewed")

    return run_with_client(shared, run)


@command.command(
    "expire",
    examples=(
        "aiokafkawire tokens expire kZ3Y0hFMR2mMcGIuMWHuaw --yes",
        "aiokafkawire tokens expire kZ3Y0hFMR2mMcGIuMWHuaw --after 10m",
    ),
    epilog=_EPILOG,
)
@click.argument("token_ids", nargs=-1, required=True, metavar="TOKEN_ID...")
@click.option("--after", metavar="DURATION", help="The time from now until they expire; by default they do at once.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def expire_tokens(shared: SharedOptions, *, token_ids: tuple[str, ...], after: str | None, yes: bool) -> int:
    """End tokens: no client can log in by them any more. Asks before on a terminal, and otherwise needs --yes."""
    after_ms = None if after is None else parse_duration("--after", after)
    what = f"expire {len(token_ids)} {'token' if len(token_ids) == 1 else 'tokens'}"
    confirm(what if after is None else f"{what} in {after}", token_ids, yes=yes, options=shared)

    async def run(session: Session) -> int:
        async def expire(token: DelegationToken) -> int:
            return await session.kafka.admin.expire_delegation_token(token, expiry_time_period_ms=after_ms)

        return await _change_each(
            session, token_ids, "expiring tokens", expire, "expired" if after is None else "changed"
        )

    return run_with_client(shared, run)


async def _change_each(
    session: Session,
    token_ids: Iterable[str],
    what: str,
    change: Callable[[DelegationToken], Awaitable[int]],
    done: str,
) -> int:
    """Change tokens; print a row with the new expiry for each, and a line for each error; return the exit status."""
    tokens, missing = await _tokens(session.kafka, token_ids)
    for error in missing.values():
        note_errors([error])
    with saying_what_is_unknown():
        found, status = await results_of_each(call_in_turn(what, tokens, lambda token_id: change(tokens[token_id])))
    rows = [
        {"token_id": token_id, "expiry_timestamp": expiry_ms, "outcome": done} for token_id, expiry_ms in found.items()
    ]
    if rows:
        print_rows(session.options, _CHANGED, rows)
    return 1 if missing else status


async def _tokens(
    kafka: Client, token_ids: Iterable[str]
) -> tuple[dict[str, DelegationToken], dict[str, DelegationTokenNotFound]]:
    """Return the tokens with these ids, and an error for each id of no token that this user may see."""
    known = {token.token_id: token for token in await kafka.admin.describe_delegation_token()}
    requested = dict.fromkeys(token_ids)
    missing = {
        token_id: DelegationTokenNotFound(f"there is no token {token_id!r} that you own, may renew or may see")
        for token_id in requested
        if token_id not in known
    }
    return {token_id: known[token_id] for token_id in requested if token_id in known}, missing


def _print_tokens(shared: SharedOptions, tokens: Iterable[DelegationToken], *, show_hmac: bool) -> None:
    columns = ("token_id", *(("hmac",) if show_hmac else ()), *_COLUMNS)
    print_rows(shared, columns, [_row(token, show_hmac=show_hmac) for token in tokens])


def _row(token: DelegationToken, *, show_hmac: bool) -> dict[str, Any]:
    return {
        "token_id": token.token_id,
        **({"hmac": token.hmac_base64} if show_hmac else {}),
        "owner": str(token.owner),
        "requester": str(token.token_requester),
        "renewers": [str(renewer) for renewer in token.renewers],
        "issue_timestamp": token.issue_timestamp_ms,
        "expiry_timestamp": token.expiry_timestamp_ms,
        "max_timestamp": token.max_timestamp_ms,
    }


def _principal(option: str, text: str) -> KafkaPrincipal:
    try:
        return KafkaPrincipal.parse(text)
    except UsageError as wrong:
        raise CommandFailed(f"{option}: {wrong}", MISSING) from None
