"""Agreeing on versions with a broker nothing is known of yet, which may be older than the question."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio

from ..errors import ConnectionLost, KafkaError, RequestTimeout, SecurityMismatch, WireError
from ..protocol.pre_api_versions import ANSWERS_API_VERSIONS, SPOKEN_UNTOLD, BrokerVersion, probes, release_told_by
from ..runtime import background_tasks

if TYPE_CHECKING:
    from .connection import Connection

__all__ = ("agreed",)

OpenAs = Callable[[BrokerVersion], Awaitable["Connection"]]
"""Opens another connection to the broker, which is taken for what is known."""


async def agreed(asked: "Connection", open_as: OpenAs, patience: float) -> "Connection":
    """The connection to go on with: ``asked``, or one to what turned out to be an old broker.

    A broker that hangs up on ApiVersions, or has said nothing to it for ``patience`` seconds, is asked what old ones
    answer, on a connection of its own. Meanwhile the first goes on waiting: who answers there is no old broker. Has no
    deadline of its own. ``asked`` is closed where another is given.

    Raises:
        ConnectionLost: it hangs up on everything.
        WireError: what answers is not Kafka, or older than 0.8.
    """
    question = _Question(asked)
    found: Connection | KafkaError | None = None
    try:
        async with background_tasks() as tasks:
            tasks.start_soon(question.ask)
            with anyio.move_on_after(patience):
                await question.over.wait()
            if question.is_as_old_brokers_leave_it:
                with question.while_open:
                    found = await _found_otherwise(open_as, patience)
            if found is None:
                await question.over.wait()
            tasks.cancel_scope.cancel()
    except BaseException:
        await _close(found)
        raise
    if question.answered:
        await _close(found)
        asked.known = ANSWERS_API_VERSIONS
        return asked
    if isinstance(found, KafkaError):
        raise found
    if found is None:
        assert question.failure is not None  # or it had answered
        raise question.failure
    await asked.close()
    return found


class _Question:
    """What becomes of asking a broker for its versions, while something else is tried."""

    def __init__(self, asked: "Connection") -> None:
        self._asked = asked
        self.answered = False
        self.failure: Exception | None = None
        self.over = anyio.Event()
        self.while_open = anyio.CancelScope()
        """Cancelled by the answer."""

    async def ask(self) -> None:
        try:
            await self._asked.agree_on_versions()
            self.answered = True
            self.while_open.cancel()
        except Exception as error:
            self.failure = error
        self.over.set()

    @property
    def is_as_old_brokers_leave_it(self) -> bool:
        """Whether there is silence so far, or a hang-up instead of an answer."""
        return not self.over.is_set() or isinstance(self.failure, ConnectionLost)


async def _close(found: "Connection | KafkaError | None") -> None:
    if found is not None and not isinstance(found, KafkaError):
        await found.close()


async def _found_otherwise(open_as: OpenAs, patience: float) -> "Connection | KafkaError | None":
    """A connection to the broker, as what it turns out to be without its answer; or why there is none.

    What passes for an old broker is asked for its versions again, since a newer one answers what old ones do, too: only
    who answers those questions and leaves this one, and does so again on another connection, is an old broker. A
    network that cuts connections makes a newer one look like it, and taken for an old one it would be spoken to
    without all that has come since: it would not keep the records of aborted transactions back, for one.
    """
    try:
        found = await _recognised(open_as)
        if found is None or await _tells(found, patience):
            return found
        await found.close()
        return await _recognised(open_as, found.known)
    except KafkaError as error:
        return error


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


async def _recognised(open_as: OpenAs, before: BrokerVersion | None = None) -> "Connection | None":
    """A connection to the broker as the old one that it is; None if it is none.

    ``before`` is what it was taken for the first time. Of two different results the newer one counts: a connection that
    the network cuts makes a broker look older than it is.

    Raises:
        WireError: it answers what no broker since 0.8 does.
        SecurityMismatch: it speaks TLS.
    """
    newest = list(SPOKEN_UNTOLD)[-1]
    answered, connection = 0, None
    try:
        connection = await open_as(BrokerVersion(newest))
        for question, version in probes():
            await connection.request(question, wanted=version)
            answered += 1
    except (ConnectionLost, RequestTimeout):
        pass
    except SecurityMismatch:
        raise
    except WireError as error:
        told = "it is older than Kafka 0.8, whose protocol was another (use aiokafkawire.legacy), or no Kafka"
        raise WireError(f"{error}; {told}") from error
    except BaseException:
        if connection is not None:
            await connection.close()
        raise
    release = release_told_by(answered)
    if connection is None or release == newest:
        return connection
    await connection.close()
    if release is None:
        return None
    if before is not None and before.release is not None:
        release = max(release, before.release, key=list(SPOKEN_UNTOLD).index)
    return await open_as(BrokerVersion(release))
