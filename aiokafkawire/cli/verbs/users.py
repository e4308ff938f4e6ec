"""``aiokafkawire users``: lists, describes, creates, alters and deletes the SCRAM credentials of users."""

import os
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

import click

from ...admin.scram_credentials import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from ...client import Client
from ...errors import DuplicateResource, ResourceNotFound
from ..shell.command import ShellGroup
from ..shell.outcomes import call_in_turn, print_outcomes, results_of_each
from ..shell.output import confirm, print_rows
from ..shell.passwords import read_password
from ..shell.session import Session, run_with_client
from ..shell.shared_options import SharedOptions

__all__ = ("command",)

F = TypeVar("F", bound=Callable[..., Any])
_Credential: TypeAlias = tuple[str, ScramMechanism]
"""The user and the mechanism of a credential."""

_MECHANISMS: Final = {
    mechanism.mechanism_name: mechanism for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
}
_DEFAULT_MECHANISM: Final = "SCRAM-SHA-512"
_LISTED: Final = ("user", "mechanism", "iterations")
_CREDENTIAL: Final = ("user", "mechanism")
_DELETED: Final = ("user",)


def _credential_options(command: F) -> F:
    """Add the options of a credential that is set."""
    for option in (
        click.option("--password-file", metavar="FILE", help="The file that has the password, in one line."),
        click.option("--password-env", metavar="NAME", help="The environment variable that has the password."),
        click.option(
            "--iterations",
            type=click.IntRange(4096, 16384),
            default=4096,
            show_default=True,
            metavar="N",
            help="How often the password is hashed.",
        ),
        click.option(
            "-m",
            "--mechanism",
            "mechanisms",
            type=click.Choice(tuple(_MECHANISMS)),
            multiple=True,
            default=(_DEFAULT_MECHANISM,),
            show_default=True,
            help="The mechanism; may be repeated.",
        ),
    ):
        command = option(command)
    return command


@click.group(
    cls=ShellGroup,
    examples=(
        "aiokafkawire users list",
        "aiokafkawire users create alice                           asks for the password",
        "aiokafkawire users alter alice --password-env NEW_PASSWORD --iterations 8192",
        "aiokafkawire users delete alice --yes",
    ),
)
def command() -> None:
    """List, describe, create, alter and delete users with SCRAM credentials, by which they log in."""


@command.command("list", examples=("aiokafkawire users list", "aiokafkawire users list --json | jq -r .user"))
def list_users(shared: SharedOptions) -> int:
    """List all users with SCRAM credentials, a row for each mechanism."""

    async def run(session: Session) -> int:
        found = await session.kafka.admin.describe_user_scram_credentials()
        print_rows(shared, _LISTED, _rows(dict(sorted(found.items()))))
        return 0

    return run_with_client(shared, run)


@command.command("describe", examples=("aiokafkawire users describe alice bob",))
@click.argument("users", nargs=-1, required=True, metavar="USER...")
def describe_users(shared: SharedOptions, *, users: tuple[str, ...]) -> int:
    """Describe the SCRAM credentials of users; brokers do not return passwords."""

    async def run(session: Session) -> int:
        found, status = await results_of_each(session.kafka.admin.describe_user_scram_credentials(users))
        if found:
            print_rows(shared, _LISTED, _rows(found))
        return status

    return run_with_client(shared, run)


@command.command(
    "create",
    examples=(
        "aiokafkawire users create alice                           asks for the password, without an echo",
        "aiokafkawire users create alice --password-file /run/secrets/alice",
        "aiokafkawire users create alice -m SCRAM-SHA-256 -m SCRAM-SHA-512 --password-env PASSWORD",
    ),
)
@click.argument("user", metavar="USER")
@_credential_options
@click.option("--if-not-exists", is_flag=True, help="A user who has such a credential is no failure, and keeps it.")
def create_user(shared: SharedOptions, *, user: str, if_not_exists: bool, **options: Any) -> int:
    """Give a user SCRAM credentials; it is a failure if the user has one of the mechanism.

    The password is never an argument, which others on the machine can see. It is hashed here; brokers do not get it.
    """

    def check(mechanism: ScramMechanism, known: bool) -> None:
        if known:
            name = mechanism.mechanism_name
            raise DuplicateResource(f"user {user!r} has a {name} credential already: change it by 'users alter'")

    accepted = DuplicateResource if if_not_exists else None
    return _set_credentials(shared, user, check, "created", accepted=accepted, skipped="exists", **options)


@command.command(
    "alter",
    examples=(
        "aiokafkawire users alter alice                            asks for the new password, without an echo",
        "aiokafkawire users alter alice --password-env NEW_PASSWORD --iterations 8192",
    ),
)
@click.argument("user", metavar="USER")
@_credential_options
def alter_user(shared: SharedOptions, *, user: str, **options: Any) -> int:
    """Give a user another password, or other iterations; it is a failure if the user has none of the mechanism.

    Kafka does not know passwords, so other iterations need the password, too.
    """

    def check(mechanism: ScramMechanism, known: bool) -> None:
        if not known:
            name = mechanism.mechanism_name
            raise ResourceNotFound(f"user {user!r} has no {name} credential: give one by 'users create'")

    return _set_credentials(shared, user, check, "changed", **options)


@command.command(
    "delete",
    examples=(
        "aiokafkawire users delete alice bob --yes",
        "aiokafkawire users delete alice --mechanism SCRAM-SHA-256 --if-exists -y",
    ),
)
@click.argument("users", nargs=-1, required=True, metavar="USER...")
@click.option(
    "-m",
    "--mechanism",
    "mechanisms",
    type=click.Choice(tuple(_MECHANISMS)),
    multiple=True,
    help="Only the credential of this mechanism; by default all that the users have.",
)
@click.option("--if-exists", is_flag=True, help="A user without such a credential is no failure.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def delete_users(
    shared: SharedOptions, *, users: tuple[str, ...], mechanisms: tuple[str, ...], if_exists: bool, yes: bool
) -> int:
    """Delete SCRAM credentials of users, who then cannot log in; asks before on a terminal, or needs --yes.

    With --mechanism each credential has a row, otherwise each user.
    """
    names = tuple(dict.fromkeys(users))
    confirm(f"delete {' and '.join(mechanisms) or 'all'} credentials of users", names, yes=yes, options=shared)
    chosen = [(user, _MECHANISMS[name]) for user in names for name in dict.fromkeys(mechanisms)]
    accepted = ResourceNotFound if if_exists else None

    async def run(session: Session) -> int:
        async def delete(credential: _Credential) -> None:
            user, mechanism = credential
            if mechanism not in await _mechanisms_of(session.kafka, user):
                raise ResourceNotFound(f"user {user!r} has no {mechanism.mechanism_name} credential")
            await session.kafka.admin.alter_user_scram_credentials([UserScramCredentialDeletion(user, mechanism)])

        async def delete_all(user: str) -> None:
            existing = await _mechanisms_of(session.kafka, user)
            if not existing:
                raise ResourceNotFound(f"user {user!r} has no SCRAM credential")
            for mechanism in sorted(existing):
                await session.kafka.admin.alter_user_scram_credentials([UserScramCredentialDeletion(user, mechanism)])

        if chosen:
            by_credential = {one: _credential_row(one) for one in chosen}
            change = call_in_turn("deleting SCRAM credentials", chosen, delete)
            return await print_outcomes(
                session, _CREDENTIAL, by_credential, change, done="deleted", accepted=accepted, skipped="absent"
            )
        by_user = {user: {"user": user} for user in names}
        change_all = call_in_turn("deleting SCRAM credentials", names, delete_all)
        return await print_outcomes(
            session, _DELETED, by_user, change_all, done="deleted", accepted=accepted, skipped="absent"
        )

    return run_with_client(shared, run)


def _credential_row(credential: _Credential) -> dict[str, str]:
    return {"user": credential[0], "mechanism": credential[1].mechanism_name}


def _set_credentials(
    shared: SharedOptions,
    user: str,
    check: Callable[[ScramMechanism, bool], None],
    done: str,
    *,
    mechanisms: tuple[str, ...],
    iterations: int,
    password_env: str | None,
    password_file: str | None,
    accepted: type[DuplicateResource] | None = None,
    skipped: str = "",
) -> int:
    """Set credentials of a user after a check, which gets the mechanism and whether the user has a credential of it."""
    password = read_password(f"the password of {user}", shared, os.environ, variable=password_env, file=password_file)
    credentials = [(user, _MECHANISMS[name]) for name in dict.fromkeys(mechanisms)]

    async def run(session: Session) -> int:
        admin = session.kafka.admin
        existing = await _mechanisms_of(session.kafka, user)

        async def set_credential(credential: _Credential) -> None:
            mechanism = credential[1]
            check(mechanism, mechanism in existing)
            info = ScramCredentialInfo(mechanism, iterations)
            await admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, info, password)])

        return await print_outcomes(
            session,
            _CREDENTIAL,
            {one: _credential_row(one) for one in credentials},
            call_in_turn("setting SCRAM credentials", credentials, set_credential),
            done=done,
            accepted=accepted,
            skipped=skipped,
        )

    return run_with_client(shared, run)


async def _mechanisms_of(kafka: Client, user: str) -> frozenset[ScramMechanism]:
    """Return the mechanisms of a user's credentials."""
    try:
        infos = (await kafka.admin.describe_user_scram_credentials(user))[user]
    except ResourceNotFound:
        return frozenset()
    return frozenset(info.mechanism for info in infos)


def _rows(found: Mapping[str, tuple[ScramCredentialInfo, ...]]) -> list[dict[str, Any]]:
    return [
        {"user": user, "mechanism": info.mechanism.mechanism_name, "iterations": info.iterations}
        for user, infos in found.items()
        for info in sorted(infos, key=lambda info: info.mechanism)
    ]
