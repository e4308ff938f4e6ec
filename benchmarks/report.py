"""Medians, ranges and ratios of a run: as data, as lines of JSON, and as text."""

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.cases import FIGURES, Case, Row
from benchmarks.contenders import CLIENTS, OURS, Contender

RESULTS = Path(__file__).resolve().parent / "results"

Who: TypeAlias = tuple[str, str, str]
"""Client, way and loop."""


def summarise(
    about: Mapping[str, str], cases: Iterable[Case], rows: Sequence[Row], failures: Sequence[Row]
) -> dict[str, Any]:
    """Return a run ready for JSON: its tables, and the ratio of each of our rows to a peer's."""
    tables = [table for case in cases if (table := _table(case, rows))["rows"]]
    ratios = [line for table in tables for line in _ratios(table, rows)]
    return {"about": dict(about), "tables": tables, "ratios": ratios, "failures": list(failures)}


def render(result: Mapping[str, Any]) -> str:
    """Return the run as text."""
    width = max(map(len, result["about"]))
    lines = [f"{name:<{width}}  {text}" for name, text in result["about"].items()]
    for group in tables_together(result["tables"]):
        one_table = _group_text if group[0]["group"] else _table_text
        lines += ["", *one_table(group, result["ratios"])]
    if result["failures"]:
        lines += ["", "FAILED"]
        lines += [
            f"  {one['benchmark']}: {one['case']}, round {one['round']}, {label(one)}: {one['error']}"
            for one in result["failures"]
        ]
    return "\n".join(lines)


def keep(result: Mapping[str, Any], path: Path) -> Path:
    """Write the run as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    return path


def load(path: Path) -> dict[str, Any]:
    """Read a run that `keep` wrote."""
    result: dict[str, Any] = json.loads(path.read_text())
    return result


def append_ratios(result: Mapping[str, Any], path: Path) -> None:
    """Append a line of JSON for each of our rows, peer's rows and figures."""
    with path.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in result["ratios"])


def tables_together(tables: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the tables, with those of a group in one list."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for one in tables:
        groups.setdefault((one["benchmark"], one["group"] or one["case"]), []).append(one)
    return list(groups.values())


def label(row: Row) -> str:
    """Return the name of a row."""
    return Contender(row["client"], row["way"], row["loop"]).label


# --- the parts of a summary ----------------------------------------------------------------------------------


def _table(case: Case, rows: Sequence[Row]) -> dict[str, Any]:
    groups: dict[Who, list[Row]] = {}
    for one in rows:
        if (one["benchmark"], one["case"]) == (case.benchmark, case.name):
            groups.setdefault((one["client"], one["way"], one["loop"]), []).append(one)
    clients = list(CLIENTS)
    ordered = sorted(groups.items(), key=lambda item: clients.index(item[0][0]))
    about: dict[str, Any] = {"benchmark": case.benchmark, "case": case.name}
    about |= {"group": case.group, "place": case.place, "at": case.at}
    return {**about, "figures": list(case.figures), "rows": [_row(case, group) for _, group in ordered]}


def _row(case: Case, group: list[Row]) -> Row:
    first, last = group[0], group[-1]
    figures = {name: spread(FIGURES[name].of(one) for one in group) for name in case.figures}
    memory = {"memory_mb": last["memory_mb"]} if "memory_mb" in last else {}
    return {
        **{name: first[name] for name in ("client", "way", "loop", "version", "records")},
        "rounds": len(group),
        **figures,
        "max_rss_mb": max(one["max_rss_kb"] for one in group) / 1024,
        **memory,
    }


def _ratios(table: dict[str, Any], rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return our figures divided by the peers', from each round that has both."""
    groups: dict[Who, dict[int, Row]] = {}
    for one in rows:
        if (one["benchmark"], one["case"]) == (table["benchmark"], table["case"]):
            groups.setdefault((one["client"], one["way"], one["loop"]), {})[one["round"]] = one
    return [
        _ratio(table, name, ours, peer, groups)
        for name in table["figures"]
        if FIGURES[name].compared
        for ours in groups
        for peer in groups
        if ours[0] == OURS != peer[0] and groups[ours].keys() & groups[peer].keys()
    ]


def _ratio(
    table: dict[str, Any], name: str, ours: Who, peer: Who, groups: Mapping[Who, Mapping[int, Row]]
) -> dict[str, Any]:
    of = FIGURES[name].of
    shared = sorted(groups[ours].keys() & groups[peer].keys())
    found = spread(of(groups[ours][number]) / of(groups[peer][number]) for number in shared)
    return {
        "benchmark": table["benchmark"],
        "case": table["case"],
        "ours": " ".join(Contender(*ours).words),
        "peer": Contender(*peer).label,
        "metric": name,
        "ratio": found["median"],
        "low": found["least"],
        "high": found["most"],
        "rounds": len(shared),
    }


def spread(values: Iterable[float]) -> dict[str, float]:
    """Return their median, minimum and maximum."""
    found = sorted(values)
    return {"median": statistics.median(found), "least": found[0], "most": found[-1]}


# --- the parts of a text -------------------------------------------------------------------------------------


def _table_text(tables: list[dict[str, Any]], ratios: Iterable[dict[str, Any]]) -> list[str]:
    (table,) = tables
    names = table["figures"]
    texts = [["", *(FIGURES[name].heading for name in names), "RSS MB", "rounds", "version"]]
    texts += [
        [
            label(row),
            *(_with_range(row[name]) for name in names),
            f"{row['max_rss_mb']:.0f}",
            str(row["rounds"]),
            row["version"],
        ]
        for row in table["rows"]
    ]
    lines = [f"{table['benchmark'].upper()}: {table['case']}; the median, and the range of the rounds", *aligned(texts)]
    own = [one for one in ratios if (one["benchmark"], one["case"]) == (table["benchmark"], table["case"])]
    for name in names:
        lines += _ratio_text(name, [one for one in own if one["metric"] == name])
    return lines


def _ratio_text(name: str, ratios: list[dict[str, Any]]) -> list[str]:
    if not ratios:
        return []
    peers = list(dict.fromkeys(one["peer"] for one in ratios))
    texts = [["aiokafkawire divided by", *peers]]
    for ours in dict.fromkeys(one["ours"] for one in ratios):
        found = {one["peer"]: one for one in ratios if one["ours"] == ours}
        texts.append([ours, *(_ratio_cell(found[peer]) if peer in found else "-" for peer in peers)])
    return ["", f"  ratios of {FIGURES[name].title}", *aligned(texts)]


def _ratio_cell(ratio: dict[str, Any]) -> str:
    return _with_range({"median": ratio["ratio"], "least": ratio["low"], "most": ratio["high"]})


def _group_text(tables: list[dict[str, Any]], ratios: Iterable[dict[str, Any]]) -> list[str]:
    """Return a table of medians and one of ratios per figure; a row for each place, a column for each contender."""
    first = tables[0]
    lines = [f"{first['benchmark'].upper()}: {first['group']}; the median, and the range of the rounds"]
    cases = {table["case"]: table["place"] for table in tables}
    own = [one for one in ratios if one["benchmark"] == first["benchmark"] and one["case"] in cases]
    names = list(dict.fromkeys(label(row) for table in tables for row in table["rows"]))
    for figure in first["figures"]:
        texts = [[FIGURES[figure].title, *names]]
        for table in tables:
            found = {label(row): _with_range(row[figure]) for row in table["rows"]}
            texts.append([table["place"], *(found.get(name, "-") for name in names)])
        lines += ["", *aligned(texts)]
        some = [one for one in own if one["metric"] == figure]
        peers = list(dict.fromkeys(one["peer"] for one in some))
        texts = [["aiokafkawire divided by", *peers]]
        for case, place in cases.items():
            cells = {one["peer"]: _ratio_cell(one) for one in some if one["case"] == case}
            texts.append([place, *(cells.get(peer, "-") for peer in peers)])
        lines += ["", *aligned(texts)] if some else []
    return lines


def aligned(table: list[list[str]]) -> list[str]:
    """Return the rows as lines: the first column left-aligned, the others right-aligned."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = []
    for row in table:
        rest = (text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  " + "  ".join([row[0].ljust(widths[0]), *rest]).rstrip())
    return lines


def _with_range(spread: Mapping[str, float]) -> str:
    median, least, most = (short(spread[name]) for name in ("median", "least", "most"))
    return median if least == most else f"{median} [{least}-{most}]"


def short(number: float) -> str:
    """Format three digits, or all before the point."""
    if abs(number) >= 1000:
        return f"{number:,.0f}"
    return f"{number:.0f}" if abs(number) >= 100 else f"{number:.3g}"
