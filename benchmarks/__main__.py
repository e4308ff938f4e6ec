"""Compare aiokafkawire with aiokafka, confluent-kafka (librdkafka) and kafka-python, on one real Kafka.

Every measurement is a new process of one client with one task. The clients take turns, and every other round runs
backwards, so that slow changes of the machine affect all of them equally. Ratios are computed within a round.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import plots, report
from benchmarks.arguments import LOOPS, names_of, positive, positives
from benchmarks.cases import Case
from benchmarks.catalogue import ALONE, BENCHMARKS, CODECS, GROUPS, Wishes
from benchmarks.cluster import Kafka, kafka
from benchmarks.contenders import CLIENTS, FLOOR, OURS, PEERS, Contender, contenders
from benchmarks.java import JAVA, missing_java
from benchmarks.machine import describe, has_module
from benchmarks.progress import progress
from benchmarks.running import Run, Wanted, settings_of

EPILOG = """\
examples, each after `python -m benchmarks`:
  produce --records 2000 --rounds 1      does everything work? (the figures say little)
  produce consume --peers confluent      two benchmarks, beside one peer
  latency --bootstrap localhost:9092     on a cluster that runs, instead of an Apache Kafka booted for it
  all --json ratios.jsonl --plots plots  everything, for a night; a line for each pair, a picture for each table
  consume --groups none,classic,consumer
                                         batches without a group, and in a group by each protocol (KIP-848)
  produce --only "1 KB" --list           what would be measured
  scale --only "by partitions" --set linger_ms=20
                                         some cases only, with a setting of your own
  --show benchmarks/results/*.json --plots plots
                                         earlier runs again

Keep the machine quiet meanwhile: the broker and the client share its cores. Peers that are not installed are left out.
"""

Work = list[tuple[Case, list[Contender]]]


def main() -> int:
    if sys.argv[1:2] == ["spark"]:  # it has one session for all measurements, and its own options
        from benchmarks.spark.__main__ import main as spark

        return spark(sys.argv[2:])
    parser = _parser()
    options = parser.parse_args()
    if options.plots is not None and not has_module("matplotlib"):
        parser.error("--plots needs matplotlib: pip install matplotlib")
    if options.show:
        for path in options.show:
            _tell(report.load(path), options)
        return 0
    if not options.benchmarks:
        print(_overview())
        return 0
    settings = _settings(parser, options)
    left_out: dict[str, None] = {}
    work = _work(options, left_out)
    if options.list:
        print("\n".join(f"{case.full_name}: {one.label}" for case, rows in work for one in rows))
        return 0
    if not work:
        raise SystemExit("nothing to measure: --list shows what there is, and which packages are installed decides too")
    return _measure(work, settings, left_out, options)


def _measure(work: Work, settings: Mapping[str, Any], left_out: Mapping[str, None], options: argparse.Namespace) -> int:
    about = describe(sys.argv)
    total = sum(len(rows) for _, rows in work) * options.rounds
    wanted = Wanted(options.rounds, options.records, options.timeout, options.warm_up, settings)
    with _kafka_for(work, options) as cluster:
        about |= {"kafka": cluster.description if cluster else "not needed", **_about(options, settings, left_out)}
        run = Run(cluster, wanted)
        try:
            with progress(total) as advance:
                for case, rows in work:
                    for what in run.measure(case, rows):
                        advance(what)
        except KeyboardInterrupt:
            about["interrupted"] = f"after {len(run.rows)} of {total} measurements"
    if not run.rows:
        raise SystemExit("\n".join(["nothing was measured", *(one["error"] for one in run.failures)]))
    result = report.summarise(about, [case for case, _ in work], run.rows, run.failures)
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    kept = report.keep(result, options.results / f"{'-'.join(options.benchmarks)}-{stamp}.json")
    _tell(result, options)
    print(f"\nkept as {kept}")
    return 1 if run.failures or "interrupted" in about else 0


def _tell(result: Mapping[str, Any], options: argparse.Namespace) -> None:
    print(report.render(result))
    if options.json is not None:
        report.append_ratios(result, options.json)
    if options.plots is not None:
        print("\n".join(["", *(f"drawn: {path}" for path in plots.plot_all(result, options.plots))]))


# --- the cases to run ----------------------------------------------------------------------------------------


def _work(options: argparse.Namespace, left_out: dict[str, None]) -> Work:
    """Return each case with its contenders, and add the reasons for omitted ones to ``left_out``."""
    wishes = Wishes(options.size, options.compression, options.groups)
    names = list(BENCHMARKS) if "all" in options.benchmarks else options.benchmarks
    peers = () if options.peers == ("none",) else options.peers
    loops = [loop for loop in options.loops if _is_there(loop, loop, left_out)]
    clients = [one for one in (OURS, *peers, FLOOR) if _is_there(one, CLIENTS[one], left_out)]
    work = []
    for name in names:
        for case in BENCHMARKS[name].cases(wishes):
            rows = []
            for one in contenders(case.task, clients, loops, alike=case.alike):
                if options.only not in f"{case.full_name}: {one.label}":
                    continue
                refusal = case.refusal(one.client, one.way)
                if refusal:
                    left_out[refusal] = None
                else:
                    rows.append(one)
            if rows:
                work.append((case, rows))
    return work


def _is_there(name: str, module: str, left_out: dict[str, None]) -> bool:
    lacks = missing_java() if name == JAVA else None
    if has_module(module) and lacks is None:
        return True
    left_out[lacks or f"{name} is not installed"] = None
    return False


@contextmanager
def _kafka_for(work: Work, options: argparse.Namespace) -> Iterator[Kafka | None]:
    """Return the cluster to measure on; None if no case needs one."""
    tls = any(case.settings.get("tls") for case, _ in work)
    with ExitStack() as stack:
        if not any(BENCHMARKS[case.benchmark].needs_kafka for case, _ in work):
            yield None
        elif options.bootstrap is None:
            yield stack.enter_context(kafka(tls=tls))
        elif tls and not options.tls_bootstrap:
            raise SystemExit("tls needs --tls-bootstrap and --tls-ca where --bootstrap is given")
        else:
            description = f"the cluster at {options.bootstrap}"
            yield Kafka(options.bootstrap, description, options.tls_bootstrap, options.tls_ca)


# --- the command line ----------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"{__doc__}\n{_overview()}",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_argument_group("what is measured")
    what.add_argument("benchmarks", nargs="*", type=_benchmark, metavar="BENCHMARK", help="as above, or all")
    what.add_argument("--peers", type=names_of([*PEERS, "none"]), default=PEERS, help=f"some of {','.join(PEERS)}")
    what.add_argument("--loops", type=names_of(LOOPS), default=LOOPS, help=f"some of {','.join(LOOPS)}")
    what.add_argument("--size", type=positives, metavar="BYTES", help="sizes of values, such as 100,1000")
    what.add_argument("--compression", type=names_of(CODECS), metavar="CODECS", help=f"some of {','.join(CODECS)}")
    what.add_argument(
        "--groups",
        type=names_of(GROUPS),
        metavar="PROTOCOLS",
        help=f"of consume: some of {','.join(GROUPS)}; groups with auto-commit, one way of each client (none)",
    )
    what.add_argument("--only", default="", metavar="TEXT", help="only rows whose name in --list contains this")
    what.add_argument("--list", action="store_true", help="list the measurements without running them")
    much = parser.add_argument_group("how much")
    much.add_argument("--rounds", type=positive, default=5, help="measurements of each row (5)")
    much.add_argument(
        "--records",
        type=positive,
        default=200_000,
        help="records of a measurement (200000); quicker clients get five times as many, latency a 400th, "
        "concurrent a tenth, memory ten times as many; at most 400 MB",
    )
    much.add_argument("--timeout", type=float, default=300.0, help="seconds that one measurement may take (300)")
    how = parser.add_argument_group("how")
    how.add_argument(
        "--bootstrap", metavar="HOST:PORT", help="a running cluster; by default Apache Kafka is booted here"
    )
    how.add_argument("--tls-bootstrap", default="", metavar="HOST:PORT", help="its address for TLS")
    how.add_argument("--tls-ca", default="", metavar="FILE.pem", help="the authority of its certificate")
    how.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=f"a setting: {_known_settings()}")
    how.add_argument("--no-warm-up", dest="warm_up", action="store_false", help="do not warm the broker first")
    out = parser.add_argument_group("what becomes of it")
    out.add_argument("--json", type=Path, metavar="FILE", help="append a line of JSON for each pair: ours and a peer's")
    out.add_argument("--plots", type=Path, metavar="DIR", help="draw each table; needs matplotlib")
    out.add_argument("--results", type=Path, default=report.RESULTS, help="the folder for all measurements")
    out.add_argument("--show", nargs="+", type=Path, metavar="FILE", help="show results of earlier runs instead")
    return parser


def _benchmark(text: str) -> str:
    if text not in (*BENCHMARKS, "all"):
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(BENCHMARKS)}, all")
    return text


def _overview() -> str:
    lines = [f"  {name:<{12}}{one.line} (about {one.minutes} min)" for name, one in BENCHMARKS.items()]
    alone = [f"  python -m {name:<28}{line}" for name, line in ALONE.items()]
    start = "python -m benchmarks BENCHMARK..., or all; see --help"
    return "\n".join([start, "", *lines, "", "Programs of their own:", *alone])


def _known_settings() -> str:
    known = {name: None for case in _all_cases() for name in settings_of(case.task)}
    return ", ".join(known)


def _all_cases() -> list[Case]:
    return [case for one in BENCHMARKS.values() for case in one.cases(Wishes())]


def _settings(parser: argparse.ArgumentParser, options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of ``--set``, converted to the types of their defaults."""
    defaults = {name: default for case in _all_cases() for name, default in settings_of(case.task).items()}
    found: dict[str, Any] = {}
    for text in options.set:
        name, _, value = text.partition("=")
        if name not in defaults:
            parser.error(f"--set {text}: {name!r} is none of {', '.join(defaults)}")
        kind = type(defaults[name])
        try:
            found[name] = value == "true" if kind is bool else kind(value)
        except ValueError:
            parser.error(f"--set {text}: a number is needed")
    return found


def _about(options: argparse.Namespace, settings: Mapping[str, Any], left_out: Mapping[str, None]) -> dict[str, str]:
    about = {
        "records": f"{options.records:,}, by each benchmark's and client's factor (README.md)",
        "settings": "no keys, 4 partitions, acks=1, batches up to 1 MB, linger 5 ms (0 for single sends), "
        "unless a case says otherwise",
        "rounds": f"{options.rounds}, every other one backwards",
    }
    if settings:
        about["set"] = ", ".join(f"{name}={value}" for name, value in settings.items())
    if left_out:
        about["left out"] = "; ".join(left_out)
    return about


if __name__ == "__main__":
    sys.exit(main())
