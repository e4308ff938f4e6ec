"""Parses the faults of the command line, such as ``Produce delay 500ms`` or ``Fetch answer NOT_LEADER_OR_FOLLOWER``.

A fault is an API, or ``any``, and words: actions, selectors and limits, in any order. The words are the arguments of
:meth:`Tap.on <aiokafkawire.testing.tap.tap.Tap.on>`; without a limit a fault applies to all matching requests.
"""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Final

import attrs

from ...errors import ErrorCode
from ...protocol.api import ApiKey
from ...testing.faults.request_log import Selector
from ...testing.faults.rules import Action, FaultRule
from ..exit_status import MISSING, CommandFailed
from ..wire.apis import api_named

__all__ = ("ParsedFault", "parse_fault")

_TIME: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m)")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0}


@attrs.frozen
class ParsedFault:
    """A parsed fault; the mappings are arguments of ``Tap.on``."""

    text: str
    api: ApiKey | None
    action: Mapping[str, Any]
    which: Mapping[str, Any]
    times: int | None = None
    after: int = 0


def parse_fault(text: str) -> ParsedFault:
    """Parse a fault.

    Raises:
        CommandFailed: a word is unknown or lacks its value, or the words contradict each other.
    """
    parser = _Parser(text)
    try:
        fault = parser.parse()
        FaultRule(
            Selector.made_of(fault.api, fault.which),  # type: ignore[arg-type]  # the keys are those of Which
            Action(**fault.action),
            times=fault.times,
            after=fault.after,
        )
    except (TypeError, ValueError) as error:
        # The messages name keyword arguments, such as "drop=".
        raise parser.failed(re.sub(r"=(?=[ ,]|$)", "", str(error))) from None
    return fault


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._words = text.split()
        self._action: dict[str, Any] = {}
        self._which: dict[str, Any] = {}
        self._limits: dict[str, int] = {}

    def parse(self) -> ParsedFault:
        if not self._words:
            raise self.failed("the API is missing, as in: Produce delay 500ms")
        name = self._words.pop(0)
        api = None if name.lower() == "any" else self._api(name)
        while self._words:
            word = self._words.pop(0)
            read = _WORDS.get(word.lower())
            if read is None:
                near = get_close_matches(word.lower(), _WORDS, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(_WORDS)}"
                raise self.failed(f"unknown word {word!r}; {hint}")
            read(self, word.lower())
        if not self._action:
            raise self.failed("an action is missing: answer, delay, drop, swallow, cut or corrupt")
        return ParsedFault(
            self._text, api, self._action, self._which, self._limits.get("times"), self._limits.get("after", 0)
        )

    def failed(self, why: str) -> CommandFailed:
        return CommandFailed(f"--fault {self._text!r}: {why}", MISSING)

    def _api(self, name: str) -> ApiKey:
        try:
            request, version = api_named(name)
        except CommandFailed as error:
            raise self.failed(str(error)) from None
        if version is not None:
            self._which["version"] = version
        return ApiKey(request.api_key)

    def _value(self, word: str, expected: str) -> str:
        if not self._words:
            raise self.failed(f"{word!r} needs {expected}")
        return self._words.pop(0)

    def _put(self, where: dict[str, Any], name: str, word: str, value: Any) -> None:
        if name in where:
            raise self.failed(f"{word!r} is given twice")
        where[name] = value

    # --- words -----------------------------------------------------------------------------------------------------

    def answer(self, word: str) -> None:
        name = self._value(word, "an error, as NOT_LEADER_OR_FOLLOWER").upper()
        if name not in ErrorCode.__members__ or ErrorCode[name] is ErrorCode.NONE:
            near = get_close_matches(name, ErrorCode.__members__, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise self.failed(f"unknown error {name}{hint}")
        self._put(self._action, "answer", word, ErrorCode[name])

    def delay(self, word: str) -> None:
        name, text = "delay", self._value(word, "a time, as 500ms")
        if text.lower() == "answer":
            name, text = "delay_answer", self._value("delay answer", "a time, as 500ms")
        found = _TIME.fullmatch(text.lower())
        if found is None:
            raise self.failed(f"{text!r} is not a time, as 500ms, 2s or 1m")
        self._put(self._action, name, word, float(found[1]) * _UNITS[found[2]])

    def moment(self, word: str) -> None:
        when = self._value(word, "before or after").lower()
        if when not in ("before", "after"):
            raise self.failed(f"{word!r} needs before or after, got {when!r}")
        self._put(self._action, word, word, when)

    def cut(self, word: str) -> None:
        self._put(self._action, "cut", word, True)

    def corrupt(self, word: str) -> None:
        text = self._value(word, "'records' or the index of a byte")
        self._put(self._action, "corrupt", word, "records" if text == "records" else self._integer(word, text))

    def text(self, word: str) -> None:
        self._put(self._which, _SELECTORS[word], word, self._value(word, "a name"))

    def number(self, word: str) -> None:
        self._put(self._which, _SELECTORS[word], word, self._integer(word, self._value(word, "a number")))

    def once(self, word: str) -> None:
        self._put(self._limits, "times", word, 1)

    def limit(self, word: str) -> None:
        name = "after" if word == "skip" else "times"
        self._put(self._limits, name, word, self._integer(word, self._value(word, "a number")))

    def _integer(self, word: str, text: str) -> int:
        if not re.fullmatch(r"-?\d{1,10}", text):
            raise self.failed(f"{word!r} needs a number, got {text!r}")
        return int(text)


_SELECTORS: Final = {
    "topic": "topic", "partition": "partition", "group": "group", "transactional-id": "transactional_id",
    "client": "client_id", "version": "version", "node": "node",
}  # fmt: skip
_WORDS: Final[Mapping[str, Callable[[_Parser, str], None]]] = {
    "answer": _Parser.answer, "delay": _Parser.delay, "drop": _Parser.moment, "swallow": _Parser.moment,
    "cut": _Parser.cut, "corrupt": _Parser.corrupt, "topic": _Parser.text, "partition": _Parser.number,
    "group": _Parser.text, "transactional-id": _Parser.text, "client": _Parser.text, "version": _Parser.number,
    "node": _Parser.number, "once": _Parser.once, "times": _Parser.limit, "skip": _Parser.limit,
}  # fmt: skip
