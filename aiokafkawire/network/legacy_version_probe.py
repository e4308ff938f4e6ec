"""Negotiates versions with a broker that may be older than ApiVersions (Kafka 0.10)."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio

from ..errors import ConnectionLost, KafkaError, RequestTimeout, SecurityMismatch, WireError
from ..protocol.pre_api_versions import SPOKEN_UNTOLD, BrokerVersion, probes, release_told_by
from ..runtime import background_tasks

if TYPE_CHECKING:
    from .connection import Connection

__all__ = ("negotiate_versions",)

OpenAs = Callable[[BrokerVersion], Awaitable["Connection"]]
"""A function that opens another connection to the broker, and assumes that the broker has the given version."""


async def negotiate_versions(asked: "Connection", open_as: OpenAs, patience: float) -> "Connection":
    """Negotiate versions on the open connection ``asked``; return ``asked``, or another connection to an old broker.

    If the broker closes ``asked`` on ApiVersions, or does not answer for ``patience`` seconds, send requests that old
    brokers support, on another connection. Meanwhile keep waiting on ``asked``: a response to ApiVersions proves that
    the broker is not old. The caller limits the time. If another connection is returned, ``asked`` is closed.

    Raises:
        ConnectionLost: the broker closes every connection.
        WireError: the answering server is not Kafka, or older than 0.8.
    """
    question = _Question(asked)
    found: Connection | KafkaError | None = None
    try:
        async with background_tasks() as tasks:
            tasks.start_soon(question.ask)
            with anyio.move_on_after(patience):
                await question.over.wait()
            if question.may_be_old:
                with question.while_open:
                    found = await _probe_twice(open_as, patience)
            if found is None:
                await question.over.wait()
            tasks.cancel_scope.cancel()
    except BaseException:
        await _close(found)
        raise
    if question.answered:
        await _close(found)
        return asked
    if isinstance(found, KafkaError):
        raise found
    if found is None:
        assert question.failure is not None  # since there was no answer
        raise question.failure
    await asked.close()
    return found


class _Question:
    """An ApiVersions request that waits for its response while old versions are probed."""

    def __init__(self, asked: "Connection") -> None:
        self._asked = asked
        self.answered = False
        self.failure: Exception | None = None
        self.over = anyio.Event()
        self.while_open = anyio.CancelScope()
        """The scope of the probes; the response to ApiVersions cancels it."""

    async def ask(self) -> None:
        try:
            await self._asked.agree_on_versions()
            self.answered = True
            self.while_open.cancel()
        except Exception as error:
            self.failure = error
        self.over.set()

    @property
    def may_be_old(self) -> bool:
        """Whether the broker has not answered yet, or has closed the connection instead of answering."""
        return not self.over.is_set() or isinstance(self.failure, ConnectionLost)


async def _close(found: "Connection | KafkaError | None") -> None:
    if found is not None and not isinstance(found, KafkaError):
        await found.close()


async def _probe_twice(open_as: OpenAs, patience: float) -> "Connection | KafkaError | None":
    """Detect a broker's version by up to two probes; return a connection that assumes this version.

    Return None if no probe is answered. If a probe fails with a KafkaError, return the error instead of raising it.

    Newer brokers answer the probes too, so ApiVersions is sent again after the first probe. A broker is old only if it
    answers the probes but not ApiVersions, on two connections, since a network that cuts connections makes a newer
    broker look old. A newer broker that is treated as old loses features, such as the filtering of records of aborted
    transactions.
    """
    try:
        found = await _probe(open_as)
        if found is None or await _answers_api_versions(found, patience):
            return found
        await found.close()
        return await _probe(open_as, found.known)
    except KafkaError as error:
        return error


async def _answers_api_versions(connection: "Connection", patience: float) -> bool:
    """Return whether the broker answers ApiVersions within ``patience`` seconds, and so is not old."""
    try:
        with anyio.move_on_after(patience):
            await connection.agree_on_versions()
            return True
    except ConnectionLost:
        pass
    except BaseException:
        await connection.close()
        raise
    return False


async def _probe(open_as: OpenAs, before: BrokerVersion | None = None) -> "Connection | None":
    """Detect an old broker's version by the requests that it answers; return a connection that assumes this version.

    Return None if the broker answers no request. The second probe gets the result of the first as ``before``, and uses
    the newer version of the two: a connection that the network cuts makes a broker look older than it is.

    Raises:
        WireError: the server is older than Kafka 0.8, or not Kafka.
        SecurityMismatch: the listener uses TLS.
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
        hint = "it is older than Kafka 0.8, whose protocol differs (use aiokafkawire.legacy), or not Kafka"
        raise WireError(f"{error}; {hint}") from error
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
