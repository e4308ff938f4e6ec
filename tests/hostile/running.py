"""Runs cases: a client under hostile answers, honest ones, hostile ones again, and what must be true of it."""

from __future__ import annotations

import logging
import resource
import signal
import traceback
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import anyio
import attrs

from aiokafkawire import Client, KafkaError, UsageError
from aiokafkawire.runtime import Runtime
from aiokafkawire.testing.simulation import Simulation, simulate
from aiokafkawire.testing.simulation import _inline as run_inline

from .broker_stream import Hostility, hostile_dial
from .cases import Case, hostility_of
from .lives import LIVES, Life, Round

__all__ = ("Result", "limit_memory", "run_cases")

_ROUNDS = 2
_HOSTILE_SECONDS = 15.0
"""Virtual seconds of hostile answers at a time, at most."""
_RECOVERY_SECONDS = 90.0
"""Virtual seconds within which a client works again, once the answers are honest."""
_THROTTLED_SECONDS = 4_000.0
"""The same after a broker has throttled the client for as long as it can."""
_CLOSE_SECONDS = 120.0
_CPU_SECONDS = 30.0
"""Seconds of the processor for one case."""
_MEMORY_MB = 1_000
"""By how much one case may raise the process's peak."""
_MOST_MEMORY = 6 << 30
_REQUESTS = 3_000
"""More requests in a hostile phase are a busy loop."""


class _TooMuchWork(BaseException):
    """A case has used the processor for too long."""


@attrs.define
class Result:
    """What came of one case."""

    case: Case
    altered: int = 0
    findings: list[str] = attrs.field(factory=list)
    errors: set[str] = attrs.field(factory=set)
    """The types of the errors that were raised under hostile answers."""
    replaced: bool = False
    """Whether a new client was needed after the hostile answers."""


def run_cases(cases: Sequence[Case]) -> list[Result]:
    """Run cases of one life, one after the other, on the same brokers."""
    results: list[Result] = []
    while len(results) < len(cases):
        left = cases[len(results) :]
        life = LIVES[left[0].life]
        batch = _Batch(life, left)
        try:
            simulate(batch.main, nodes=life.nodes, time_limit=1e9, keep=200, **life.broker)
        except BaseException as error:
            if batch.result is None or isinstance(error, KeyboardInterrupt):
                raise
            batch.result.findings.append(f"ended the run: {_shown(error)}")
            batch.finish()
        results += batch.results
    return results


class _Batch:
    """Cases that run on the same brokers, each with a new client."""

    def __init__(self, life: Life, cases: Sequence[Case]) -> None:
        self._life, self._cases = life, cases
        self.results: list[Result] = []
        self.result: Result | None = None

    async def main(self, sim: Simulation) -> None:
        """Run the cases until one ends the run."""
        async with self._life.surroundings(sim):
            shared = _SharedClient(sim, self._life) if self._life.shares_client else None
            try:
                for case in self._cases:
                    await self._run(sim, case, shared)
            finally:
                if shared is not None:
                    await shared.discard()

    async def _run(self, sim: Simulation, case: Case, shared: _SharedClient | None) -> None:
        self.result = Result(case)
        before = _peak_mb()
        with _limited_work(), _watched_log(self.result):
            await _Run(sim, self._life, self.result, shared).run()
        grown = _peak_mb() - before
        if grown > _MEMORY_MB:
            self.result.findings.append(f"took {grown} MB of memory")
        self.finish()
        self.result = None

    def finish(self) -> None:
        """Keep the result of the present case."""
        assert self.result is not None
        self.results.append(self.result)


def _new_client(sim: Simulation, life: Life, name: str, hostility: Hostility) -> Client:
    dial = hostile_dial(sim.network.connector(name), hostility)
    runtime = Runtime(now=sim.now, wall_ms=sim.wall_ms, chance=sim.chance(name), offload=run_inline)
    return Client(sim.broker.bootstrap, connector=dial, runtime=runtime, **life.settings)


class _SharedClient:
    """A client that goes from case to case, as long as they are of one API in one version."""

    def __init__(self, sim: Simulation, life: Life) -> None:
        self._sim, self._life = sim, life
        self._hostility: Hostility | None = None
        self._client: Client | None = None

    async def of(self, wanted: Hostility) -> tuple[Client, Hostility]:
        """Return the client, and what is done to its answers, which is as wanted."""
        mine = self._hostility
        if self._client is None or mine is None or (mine.api_key, mine.cap) != (wanted.api_key, wanted.cap):
            await self.discard()
            mine = self._hostility = wanted
            name = f"shared-{wanted.api_key}-{wanted.cap}"
            self._client = _new_client(self._sim, self._life, name, wanted)
            await self._client.open()
        mine.encode, mine.wire, mine.altered = wanted.encode, wanted.wire, 0
        return self._client, mine

    async def discard(self) -> None:
        """Close the client, since a case has spoiled it."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()


class _Run:
    """One case."""

    def __init__(self, sim: Simulation, life: Life, result: Result, shared: _SharedClient | None) -> None:
        self._sim, self._life, self._result, self._shared = sim, life, result, shared
        self._hostility: Hostility = hostility_of(result.case)
        self._count = 0

    async def run(self) -> None:
        """Run the case; what is wrong is among the findings of the result."""
        if self._shared is not None:
            client, self._hostility = await self._shared.of(self._hostility)
            opened = _Opened(self._life, client, self._sim)
            await opened.enter()
            self._hostility.is_on = True
            await self._tried("round", opened.round)
            await self._recovered(client, opened)
            await opened.close()
            self._result.altered = self._hostility.altered
            if self._result.findings:
                await self._shared.discard()
            return
        # A client whose whole life was under hostile answers so far ...
        await self._with_client(self._from_the_start)
        # ... and one that was well before.
        await self._with_client(self._after_a_while)
        self._result.altered = self._hostility.altered

    async def _with_client(self, part: Callable[[Client], Awaitable[None]]) -> None:
        self._count += 1
        name = f"c{self._result.case.number}-{self._count}"
        client = _new_client(self._sim, self._life, name, self._hostility)
        try:
            await part(client)
        finally:
            self._hostility.is_on = False
            await self._closed("the client", client.close)

    async def _from_the_start(self, client: Client) -> None:
        self._hostility.is_on = True
        if not await self._tried("open", client.open):
            return
        opened = _Opened(self._life, client, self._sim)
        if await self._tried("enter", opened.enter):
            await self._hostile_rounds(opened.round)
            await self._recovered(client, opened)
        await self._closed("what it had opened", opened.close)

    async def _after_a_while(self, client: Client) -> None:
        await client.open()
        opened = _Opened(self._life, client, self._sim)
        await opened.enter()
        await self._recovered(client, opened)
        self._hostility.is_on = True
        await self._hostile_rounds(opened.round)
        await self._recovered(client, opened)
        self._hostility.is_on = True
        await self._closed("what it had opened, under hostile answers", opened.close)

    async def _hostile_rounds(self, one: Round) -> None:
        before = self._hostility.requests
        with anyio.move_on_after(_HOSTILE_SECONDS):
            for _ in range(_ROUNDS):
                await self._tried("round", one)
                await anyio.sleep(1)
        if self._hostility.requests - before > _REQUESTS:
            self._found(f"a busy loop: {self._hostility.requests - before} requests")

    async def _recovered(self, client: Client, opened: _Opened) -> None:
        """Find that rounds go well again; if they do not, that they do with something newly opened."""
        self._hostility.is_on = False
        last = await self._until_well(opened.round)
        if last is None:
            return
        if not self._life.shares_client:
            self._result.replaced = True
            again = _Opened(self._life, client, self._sim)
            await self._closed("what fails", opened.close)
            try:
                with anyio.fail_after(_RECOVERY_SECONDS):
                    await again.enter()
                    last = await self._until_well(again.round)
            except (KafkaError, TimeoutError) as error:
                last = error
            await self._closed("what was opened again", again.close)
        elif _is_an_answer(last):
            last = None
        if last is not None:
            self._found(f"no recovery: {_shown(last)}")

    async def _until_well(self, one: Round) -> BaseException | None:
        """Repeat rounds until one goes well; return the last error if none does."""
        last: BaseException | None = None
        patience = 20 if self._life.shares_client else _RECOVERY_SECONDS
        if self._result.case.path == "throttle_time_ms":
            patience = _THROTTLED_SECONDS
        with anyio.move_on_after(patience):
            while True:
                try:
                    await one()
                    return None
                except KafkaError as error:
                    last = error
                except Exception as error:
                    self._found(f"with honest answers again: {_shown(error)}")
                    return None
                if self._life.shares_client and _is_an_answer(last):
                    return last
                await anyio.sleep(1)
        return last or TimeoutError("it hangs")

    async def _tried(self, what: str, action: Callable[[], Awaitable[Any]]) -> bool:
        scope = anyio.move_on_after(_CLOSE_SECONDS)
        try:
            with scope:
                await action()
                return True
        except KafkaError as error:
            self._result.errors.add(type(error).__name__)
            is_answer = self._result.case.path.endswith("unknown_state_filters")  # the broker refuses the user's
            if not is_answer and (problem := _problem_of(error)):
                self._found(f"{what}: {problem}")
        except Exception as error:
            self._found(f"{what}: {_shown(error)}")
        if scope.cancelled_caught:
            self._found(f"{what}: it hangs for {_CLOSE_SECONDS:.0f} s")
        return False

    async def _closed(self, what: str, close: Callable[[], Awaitable[Any]]) -> None:
        scope = anyio.move_on_after(_CLOSE_SECONDS)
        try:
            with scope:
                await close()
        except KafkaError as error:
            self._result.errors.add(type(error).__name__)
        except Exception as error:
            self._found(f"closing {what}: {_shown(error)}")
        if scope.cancelled_caught:
            self._found(f"closing {what} takes more than {_CLOSE_SECONDS:.0f} s")

    def _found(self, text: str) -> None:
        if text not in self._result.findings:
            self._result.findings.append(text)


class _Opened:
    """What a client has opened, to be entered and closed in one task each."""

    def __init__(self, life: Life, client: Client, sim: Simulation) -> None:
        self._manager = life.opened(client, sim)
        self._entered = False
        self._round: Round | None = None

    async def enter(self) -> None:
        self._round = await self._manager.__aenter__()

    async def round(self) -> None:
        assert self._round is not None
        await self._round()

    async def close(self) -> None:
        if self._round is not None:
            self._round = None
            await self._manager.__aexit__(None, None, None)


def _is_an_answer(error: BaseException) -> bool:
    """Return whether an honest broker may have answered so, such as that a group has members."""
    from aiokafkawire.errors import AdminError, BrokerError, RequestTimeout

    if isinstance(error, AdminError):
        return all(_is_an_answer(one) for one in error.errors.values())
    return isinstance(error, BrokerError) and not isinstance(error, RequestTimeout)


def _problem_of(error: BaseException) -> str | None:
    """Return what is wrong with a KafkaError; None if nothing is."""
    text = str(error)
    if isinstance(error, UsageError):
        return f"blames the user: {_shown(error)}"
    if not text.isprintable() and any((ord(one) < 32 and one != "\n") or one in "\x7f\x1b\r" for one in text):
        return f"control characters in the text of {type(error).__name__}: {text[:200]!r}"
    if len(text) > 100_000:
        return f"a text of {len(text)} characters in {type(error).__name__}"
    return None


def _shown(error: BaseException) -> str:
    where = ""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if "aiokafkawire" in one.filename]
    if frames and not isinstance(error, KafkaError):
        where = " at " + " < ".join(
            f"{one.filename.rpartition('aiokafkawire/')[2]}:{one.lineno}" for one in frames[:-4:-1]
        )
    if isinstance(error, BaseExceptionGroup):
        return f"{type(error).__name__}: " + "; ".join(_shown(one) for one in error.exceptions)
    text = f"{type(error).__name__}: {str(error)[:300]!r}{where}"
    if error.__cause__ is not None:
        text += f" from {_shown(error.__cause__)}"
    return text


class _Log(logging.Handler):
    """Reads the client's log lines: no control characters, no unexpected errors, no endless text."""

    def __init__(self, result: Result) -> None:
        super().__init__(logging.INFO)
        self._result = result
        self._lines = 0

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("aiokafkawire.testing"):
            return
        text = record.getMessage()
        self._lines += 1
        if not text.isprintable():
            self._add(f"control characters in the log: {text[:300]!r}")
        if len(text) > 20_000:
            self._add(f"a line of {len(text)} characters in the log: {text[:200]!r}")
        if record.exc_info and record.exc_info[1] is not None and not isinstance(record.exc_info[1], KafkaError):
            self._add(f"in the log: {_shown(record.exc_info[1])}")
        elif record.levelno >= logging.ERROR and "background task" in text:
            self._add(f"in the log: {text[:300]!r}")
        if self._lines == 3_000:
            self._add(f"3000 lines in the log, such as {text[:300]!r}")

    def _add(self, text: str) -> None:
        if text not in self._result.findings and len(self._result.findings) < 20:
            self._result.findings.append(text)


@contextmanager
def _watched_log(result: Result) -> Iterator[None]:
    log, handler = logging.getLogger("aiokafkawire"), _Log(result)
    before, passes = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
        log.propagate = passes


@contextmanager
def _limited_work() -> Iterator[None]:
    def stop(_: int, frame: FrameType | None) -> None:
        raise _TooMuchWork(f"{_CPU_SECONDS:.0f} s of work: {''.join(traceback.format_stack(frame)[-6:])}")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, _CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def limit_memory() -> None:
    """Let this process fail with MemoryError instead of taking all of the machine's memory."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or hard > _MOST_MEMORY:
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, hard))
