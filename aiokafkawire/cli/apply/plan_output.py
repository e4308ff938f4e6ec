"""Prints plans, and what became of their changes: lines for people, JSON for programs."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ...errors import KafkaError
from ..error_text import error_text
from ..exit_status import CommandFailed
from ..shell.outcomes import note_errors
from ..shell.output import note, write_output
from ..shell.safe_text import safe_text
from ..shell.shared_options import SharedOptions
from .applying import ChangeOutcome
from .changes import Change, acl_fields, entity_fields, named
from .cluster_settings import ClusterSettings
from .planning import Plan

__all__ = (
    "OutcomePrinter",
    "note_not_shown",
    "note_refused",
    "note_unmentioned",
    "print_plan",
    "safe_line",
    "setting_rows",
)

_SHOWN: Final = 5
"""The most names in a list for people."""
_WIDTH: Final = len("not done")


def safe_line(shown: object) -> str:
    """Return the text of a change as a single line: names may have characters that a terminal obeys."""
    return safe_text(str(shown), sys.maxsize)


def print_plan(options: SharedOptions, plan: Plan) -> None:
    """Print a line for each change and each conflict."""
    if options.json:
        rows = [{"outcome": "planned", **change.row()} for change in plan.changes]
        _print_rows([*rows, *({"outcome": "impossible", **conflict.row()} for conflict in plan.conflicts)])
    else:
        _print_lines(safe_line(one) for one in (*plan.changes, *plan.conflicts))


def note_unmentioned(plan: Plan) -> None:
    """Print what the file does not mention to standard error: a line for each kind."""
    for kind, names in plan.unmentioned.items():
        some = ", ".join(map(safe_line, names[:_SHOWN])) + (", ..." if len(names) > _SHOWN else "")
        noun = kind.removesuffix("s") if len(names) == 1 else kind
        note(f"left alone: {len(names)} {noun} that the file does not mention ({some}); see --delete {kind}")


def note_not_shown(changes: Sequence[Change]) -> None:
    """Print the changes that are done and that the brokers do not show to standard error."""
    for change in changes[:_SHOWN]:
        note(f"aiokafkawire: done, but the brokers do not show it yet: {safe_line(change)}")
    if len(changes) > _SHOWN:
        note(f"aiokafkawire: nor {len(changes) - _SHOWN} more")


def note_refused(refused: Iterable[tuple[Change, KafkaError]]) -> None:
    """Print a line for each change that the brokers would refuse to standard error."""
    for change, error in refused:
        note(f"aiokafkawire: would be refused: {safe_line(change)}: {error_text(error)}")


class OutcomePrinter:
    """Prints the outcomes of changes as they come, and counts them, also after the reader of the output has gone."""

    def __init__(self, options: SharedOptions) -> None:
        self._options = options
        self._reasons: set[str] = set()
        self._states: Counter[str] = Counter()
        self.done: list[Change] = []
        """The changes that are done."""
        self.is_read: bool = True
        """Whether standard output has a reader."""

    @property
    def is_answered(self) -> bool:
        """Whether all requests had answers."""
        return not self._states["unknown"]

    def __call__(self, outcome: ChangeOutcome) -> None:
        """Print an outcome."""
        self._states[outcome.state] += 1
        if outcome.state == "done":
            self.done.append(outcome.change)
        error = outcome.reason if outcome.error is None else error_text(outcome.error)
        if self.is_read:
            self._print(outcome, error)
        if outcome.error is not None:
            note_errors([outcome.error])
        elif error and error not in self._reasons:
            self._reasons.add(error)
            note(f"aiokafkawire: not done: {error}")

    def _print(self, outcome: ChangeOutcome, error: str) -> None:
        try:
            if self._options.json:
                _print_rows([{"outcome": outcome.state, **outcome.change.row(), "error": error or None}])
            else:
                _print_lines([f"{outcome.state:<{_WIDTH}}  {safe_line(outcome.change)}"])
        except CommandFailed:  # a change must not depend on it, nor what is said of those that are made already
            self.is_read = False

    def summary(self) -> str:
        """Return how many changes have each outcome."""
        return ", ".join(f"{count} {state}" for state, count in self._states.items())


def _print_rows(rows: Iterable[Mapping[str, Any]]) -> None:
    _print_lines(json.dumps(row, ensure_ascii=False) for row in rows)


def _print_lines(lines: Iterable[str]) -> None:
    write_output("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))


def setting_rows(settings: ClusterSettings) -> Iterator[dict[str, Any]]:
    """Yield a row for each topic, broker, rule, quota and credential, sorted."""
    for name, topic in sorted((settings.topics or {}).items()):
        fields = {"partitions": topic.partitions, "replication_factor": topic.replication_factor}
        yield {"kind": "topic", **named("topic", name), **fields, "configs": dict(sorted(topic.configs.items()))}
    for broker, configs in sorted((settings.brokers or {}).items()):
        shown = {key: value if isinstance(value, str) else None for key, value in sorted(configs.items())}
        yield {"kind": "broker", **named("broker", broker), "configs": shown}
    for acl in sorted(settings.acls or ()):
        yield {"kind": "acl", **acl_fields(acl)}
    for entity, limits in sorted((settings.quotas or {}).items()):
        yield {"kind": "quota", **entity_fields(entity), "limits": dict(sorted(limits.items()))}
    for name, users in sorted((settings.users or {}).items()):
        for user in users:
            yield {"kind": "user", "user": name, "mechanism": user.mechanism, "iterations": user.iterations}
