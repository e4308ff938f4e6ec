"""``aiokafkawire broker``: the in-process broker as a process of its own."""

import signal

import anyio
import attrs

from ..testing.broker import Broker
from .endings import INTERRUPTED, CommandFailed, run_until_signalled

__all__ = ("BrokerOptions", "run_broker")


@attrs.frozen(kw_only=True)
class BrokerOptions:
    """What the command line says."""

    host: str = "127.0.0.1"
    advertised_host: str | None = None
    port: int = 9092
    partitions: int = 1
    auto_create: bool = True


async def run_broker(options: BrokerOptions) -> int:
    """Serve until Ctrl-C or SIGTERM, and give the exit status.

    Raises:
        CommandFailed: the broker met bugs of its own; it has logged them.
        OSError: the address cannot be listened at.
    """
    broker = Broker(
        host=options.host,
        advertised_host=options.advertised_host,
        port=options.port,
        auto_create_topics=options.auto_create,
        num_partitions=options.partitions,
    )

    async def serve() -> None:
        async with broker:
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


def _hint(bootstrap: str, options: BrokerOptions) -> str:
    partitions = "1 partition" if options.partitions == 1 else f"{options.partitions} partitions"
    topics = f"Topics are made when first used, with {partitions}." if options.auto_create else "Clients create topics."
    return "\n".join(
        (
            f"Kafka broker at {bootstrap}, in memory: what it holds goes when it stops. {topics}",
            f"Try it from another terminal:  aiokafkawire demo --bootstrap {bootstrap}",
            f'or from Python:                async with Client("{bootstrap}") as kafka: ...',
            "Ctrl-C stops it.",
        )
    )
