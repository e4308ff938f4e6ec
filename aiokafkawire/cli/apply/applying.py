"""Makes planned changes, a request after the other, and reports what became of each change."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import anyio
import anyio.lowlevel
import attrs

from ...admin.admin import Admin
from ...admin.new_topics import NewTopic
from ...admin.repeats import is_made_before
from ...admin.scram_credentials import ScramCredentialInfo, UserScramCredentialDeletion, UserScramCredentialUpsertion
from ...errors import AdminError, BrokerError, KafkaError, RequestTimedOut, UnsupportedVersion, UsageError
from .admin_forms import binding_of, broker_resource, entity_of, mechanism_of, topic_resource
from .changes import (
    AddAcl,
    AddPartitions,
    AlterConfigs,
    AlterQuota,
    Change,
    CreateTopic,
    DeleteTopic,
    DeleteUser,
    RemoveAcl,
    SetUser,
)
from .cluster_settings import ClusterSettings, ConfigValue, Secret
from .live_settings import read_counterpart
from .planning import batches, blocked_by, plan_changes

__all__ = ("ChangeOutcome", "Secrets", "changes_not_shown", "make_changes", "refused_changes")

Secrets: TypeAlias = Mapping[Secret, bytes]
"""The secrets by their places."""

_ITERATIONS: Final = 4096
"""The iterations of a new credential unless the file says more, as of Java's tools."""
_PATIENCE: Final = 5.0
"""The seconds in which brokers show another change that the controller has made."""
_OF_ONE_RESOURCE: Final = (BrokerError, UnsupportedVersion, UsageError)
"""Errors after which other changes may succeed; after others, such as a lost connection, none would."""
_UNFINISHED: Final = RequestTimedOut
"""The answer of a broker that has not seen the end of a change, which may come later."""


@attrs.frozen
class ChangeOutcome:
    """The outcome of a change; it is unknown if the request has no answer."""

    change: Change
    state: Literal["done", "failed", "unknown", "not done"]
    error: KafkaError | None = None
    reason: str = ""
    """Why a change is not done, or unknown without an error."""


async def make_changes(
    admin: Admin,
    changes: Sequence[Change],
    secrets: Secrets,
    report: Callable[[ChangeOutcome], None],
    *,
    interrupted: Callable[[], None],
) -> None:
    """Make changes in their order, and report the outcome of each as soon as it is known.

    Ctrl-C cancels this, after the answer to the request that is on its way: the outcome of each change is reported.

    Args:
        admin: the admin of the cluster.
        changes: the changes of a plan.
        secrets: the passwords and other secrets that the changes need.
        report: takes the outcomes, in the order of the changes.
        interrupted: is called if Ctrl-C has to wait for an answer.
    """
    maker = _Maker(admin, secrets, report)

    async def watch() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            if maker.in_flight:
                interrupted()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            for batch in batches(changes):
                await anyio.lowlevel.checkpoint()
                await maker.make(batch)
            tasks.cancel_scope.cancel()
    except Exception:
        raise
    except BaseException:  # Ctrl-C; a second one does not wait for the answer
        for number, change in enumerate(changes[maker.count :]):
            report(ChangeOutcome(change, "unknown" if number < maker.in_flight else "not done", reason="interrupted"))
        raise


class _Maker:
    """Makes batches of changes, unless others before have failed that they depend on."""

    def __init__(self, admin: Admin, secrets: Secrets, report: Callable[[ChangeOutcome], None]) -> None:
        self._admin, self._secrets, self._report = admin, secrets, report
        self._failed: list[Change] = []
        self._stopped = ""
        self.in_flight: int = 0
        """The number of changes of the request that has no answer yet."""
        self.count: int = 0
        """The number of changes whose outcome is reported."""

    async def make(self, batch: Sequence[Change]) -> None:
        """Make the changes of a batch, and report their outcomes."""
        reasons = [self._stopped or blocked_by(change, self._failed) for change in batch]
        ready = [change for change, reason in zip(batch, reasons, strict=True) if not reason]
        # A request that is cancelled may be carried out, without an answer that says so.
        with anyio.CancelScope(shield=True):
            self.in_flight = len(batch)
            errors = iter(await _make(self._admin, ready, self._secrets) if ready else [])
            self.in_flight = 0
        for change, reason in zip(batch, reasons, strict=True):
            error = None if reason else next(errors)
            if error is not None and is_made_before(error):  # it was not made when it was planned
                error = None
            self.count += 1
            if error is not None:
                self._failed.append(change)
            if reason:
                self._report(ChangeOutcome(change, "not done", reason=reason))
            elif error is None:
                self._report(ChangeOutcome(change, "done"))
            elif isinstance(error, _OF_ONE_RESOURCE) and not isinstance(error, _UNFINISHED):
                self._report(ChangeOutcome(change, "failed", error))
            else:
                self._stopped = "the change before has no answer"
                self._report(ChangeOutcome(change, "unknown", error))


async def refused_changes(admin: Admin, changes: Sequence[Change], secrets: Secrets) -> list[tuple[Change, KafkaError]]:
    """Let the brokers check changes of topics, configs and quotas, and make none; return those that they refuse.

    Changes whose secrets are not given are left out, and so are ACLs and users, which brokers do not check in advance;
    nor do brokers check anything that are too old for it.
    """
    refused: list[tuple[Change, KafkaError]] = []
    for batch in batches([change for change in changes if _can_be_checked(change, secrets)]):
        errors = await _make(admin, batch, secrets, validate_only=True)
        known = (error if not isinstance(error, UnsupportedVersion) else None for error in errors)
        refused += [(change, error) for change, error in zip(batch, known, strict=True) if error is not None]
    return refused


def _can_be_checked(change: Change, secrets: Secrets) -> bool:
    if isinstance(change, AlterConfigs):
        return all(value in secrets for value in change.changes.values() if isinstance(value, Secret))
    return isinstance(change, CreateTopic | AddPartitions | AlterQuota)


async def changes_not_shown(
    admin: Admin,
    declared: ClusterSettings,
    deletes: Collection[str],
    done: Collection[Change],
    patience: float = _PATIENCE,
) -> list[Change]:
    """Wait until the brokers show what is done; return the changes that they do not show.

    Brokers learn of a change after the controller has made it: of one in a moment, of thousands of topics in seconds.
    The wait ends when the brokers have shown no other change for ``patience`` seconds.
    """
    known = set(map(str, done))
    missing = list(done)
    pause, until = 0.02, anyio.current_time() + patience
    while True:
        plan = plan_changes(declared, await read_counterpart(admin, declared), deletes=deletes)
        now, before = anyio.current_time(), len(missing)
        missing = [change for change in plan.changes if str(change) in known]
        if len(missing) < before:
            until = now + patience
        if not missing or now + pause > until:
            return missing
        await anyio.sleep(pause)
        pause = min(2 * pause, 0.5)


async def _make(
    admin: Admin, batch: Sequence[Change], secrets: Secrets, *, validate_only: bool = False
) -> list[KafkaError | None]:
    """Make changes by one call of the admin, or only check them, and return the error of each."""
    keys, call = _call(admin, batch, secrets, validate_only=validate_only)
    try:
        await call
    except AdminError as some:
        return [some.errors.get(key) for key in keys]
    except KafkaError as error:
        return [error for _ in batch]
    return [None for _ in batch]


def _call(
    admin: Admin, batch: Sequence[Change], secrets: Secrets, *, validate_only: bool
) -> tuple[list[Any], Awaitable[object]]:
    """Return the call that makes changes of one kind, and the resource of each change as the admin's errors name it."""
    match batch[0]:
        case CreateTopic():
            topics = {one.name: _new_topic(one) for one in batch if isinstance(one, CreateTopic)}
            return list(topics), admin.create_topics(topics, validate_only=validate_only)
        case AddPartitions():
            counts = {one.name: one.count for one in batch if isinstance(one, AddPartitions)}
            return list(counts), admin.create_partitions(counts, validate_only=validate_only)
        case AlterConfigs():
            configs = {
                topic_resource(one.name) if one.kind == "topic" else broker_resource(one.name): {
                    name: _config(value, secrets) for name, value in one.changes.items()
                }
                for one in batch
                if isinstance(one, AlterConfigs)
            }
            return list(configs), admin.incremental_alter_configs(configs, validate_only=validate_only)
        case DeleteTopic():
            names = [one.name for one in batch if isinstance(one, DeleteTopic)]
            return names, admin.delete_topics(names)
        case AddAcl():
            bindings = [binding_of(one.acl) for one in batch if isinstance(one, AddAcl)]
            return bindings, admin.create_acls(bindings)
        case RemoveAcl():
            filters = [binding_of(one.acl).to_filter() for one in batch if isinstance(one, RemoveAcl)]
            return filters, admin.delete_acls(filters)
        case AlterQuota():
            limits = {entity_of(one.entity): one.changes for one in batch if isinstance(one, AlterQuota)}
            return list(limits), admin.alter_client_quotas(limits, validate_only=validate_only)
        case SetUser():
            credentials = [_credential(one, secrets) for one in batch if isinstance(one, SetUser)]
            return [one.user for one in credentials], admin.alter_user_scram_credentials(credentials)
        case DeleteUser():
            gone = [
                UserScramCredentialDeletion(one.name, mechanism_of(one.mechanism))
                for one in batch
                if isinstance(one, DeleteUser)
            ]
            return [one.user for one in gone], admin.alter_user_scram_credentials(gone)


def _new_topic(change: CreateTopic) -> NewTopic:
    topic = change.topic
    return NewTopic(topic.partitions or -1, topic.replication_factor or -1, topic.configs)


def _config(value: ConfigValue | None, secrets: Secrets) -> str | None:
    return secrets[value].decode("utf-8", "surrogateescape") if isinstance(value, Secret) else value


def _credential(change: SetUser, secrets: Secrets) -> UserScramCredentialUpsertion:
    assert change.user.password is not None
    info = ScramCredentialInfo(mechanism_of(change.user.mechanism), change.user.iterations or _ITERATIONS)
    return UserScramCredentialUpsertion(change.name, info, secrets[change.user.password])
