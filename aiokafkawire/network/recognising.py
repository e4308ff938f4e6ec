"""Agreeing on versions with a broker nothing is known of yet, which may be older than the question."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio

from ..errors import ConnectionLost, KafkaError, RequestTimeout, WireError
from ..protocol.old_brokers import ANSWERS_API_VERSIONS, SPOKEN_UNTOLD, Known, probes, release_told_by

if TYPE_CHECKING:
    from .connection import Connection

__all__ = ("agreed",)

OpenAs = Callable[[Known], Awaitable["Connection"]]
"""Opens another connection to the broker, which is taken for what is known."""


async def agreed(asked: "Connection", open_as: OpenAs, patience: float) -> "Connection":
    """The connection to go on with: ``asked``, or one to what turned out to be an old broker.

    A broker that hangs up on ApiVersions, or has said nothing to it for ``patience`` seconds, is asked what old ones
    answer, on a connection of its own. Meanwhile the first goes on waiting: who answers there is no old broker. Has no
    deadline of its own. ``asked`` is closed where another is given.

    Raises:
        ConnectionLost: it hangs up on everything.
        WireError: what answers is not Kafka, or older than 0.8.2.
    """
    outcome: list[Exception | None] = []
    over, probing = anyio.Event(), anyio.CancelScope()

    async def ask() -> None:
        try:
            await asked.agree_on_versions()
        except Exception as error:
            outcome.append(error)
        else:
            outcome.append(None)
            probing.cancel()
        over.set()

    older: Connection | None = None
    failed: KafkaError | None = None
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            with anyio.move_on_after(patience):
                await over.wait()
            if not outcome or isinstance(outcome[0], ConnectionLost):
                with probing:
                    try:
                        older = await _confirmed(await _recognised(open_as), open_as, patience)
                    except KafkaError as error:
                        failed = error
            if older is None and failed is None:
                await over.wait()
            tasks.cancel_scope.cancel()
    except BaseException:
        if older is not None:
            await older.close()
        raise
    answered = bool(outcome) and outcome[0] is None
    if older is not None and not answered:
        await asked.close()
        return older
    if older is not None:
        await older.close()
    if answered:
        asked.known = ANSWERS_API_VERSIONS
        return asked
    if failed is not None:
        raise failed
    refused = outcome[0]
    assert refused is not None  # or it had answered
    raise refused


async def _confirmed(older: "Connection | None", open_as: OpenAs, patience: float) -> "Connection | None":
    """What passes for an old broker is asked for its versions again: a newer one answers what old ones do, too.

    Only who answers those questions and leaves this one, and does so again on another connection, is an old broker. A
    network that cuts connections makes a newer one look like it, and taken for an old one it would be spoken to
    without all that has come since: it would not keep the records of aborted transactions back, for one.
    """
    if older is None or await _tells(older, patience):
        return older
    await older.close()
    return await _recognised(open_as)


async def _tells(connection: "Connection", patience: float) -> bool:
    """Whether it tells its versions, after all; it is none of the old ones then."""
    try:
        with anyio.move_on_after(patience):
            await connection.agree_on_versions()
            connection.known = ANSWERS_API_VERSIONS
            return True
    except ConnectionLost:
        pass
    except BaseException:
        await connection.close()
        raise
    return False


async def _recognised(open_as: OpenAs) -> "Connection | None":
    """A connection to the broker as the old one that it is; None if it is none.

    Raises:
        WireError: it answers what no broker since 0.8.2 does.
    """
    newest = list(SPOKEN_UNTOLD)[-1]
    answered, connection = 0, None
    try:
        connection = await open_as(Known(newest))
        for question in probes():
            await connection.request(question)
            answered += 1
    except (ConnectionLost, RequestTimeout):
        pass
    except WireError as error:
        raise WireError(f"{error}; it is older than Kafka 0.8.2, whose protocol was another, or no Kafka") from error
    except BaseException:
        if connection is not None:
            await connection.close()
        raise
    release = release_told_by(answered)
    if connection is None or release == newest:
        return connection
    await connection.close()
    return await open_as(Known(release)) if release is not None else None
