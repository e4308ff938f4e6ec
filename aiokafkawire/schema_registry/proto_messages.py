"""Finds the messages of a .proto file, and the indexes by which records name them, in the file's text."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from ..errors import SchemaMismatch

__all__ = ("ProtoMessage", "ProtoMessages", "messages_in_text")

_TOKEN: Final = re.compile(
    r"""
      (?P<space> \s+ | //[^\n]* | /\*.*?\*/ )
    | (?P<string> "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' )
    | (?P<word> [A-Za-z0-9_.]+ )
    | (?P<broken> ["'/] )
    | (?P<sign> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PACKAGE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
_LABELS: Final = ("optional", "required", "repeated")
_VISIBILITIES: Final = ("export", "local")
_MAP_ENTRY: Final = ["option", "map_entry", "=", "true"]


@attrs.define(eq=False)
class ProtoMessage:
    """A message that a file declares.

    Attributes:
        name: its name, without those around it.
        nested: the messages that it declares, in order, without the entries of maps.
        is_group: whether it is declared with a field, as a group: some clients count groups, and others do not.
    """

    name: str
    nested: list["ProtoMessage"] = attrs.field(factory=list)
    is_group: bool = False


@attrs.frozen(eq=False)
class ProtoMessages:
    """The messages of a file.

    Attributes:
        package: the file's package; empty if it has none.
        messages: the messages outside of all others, in order.
    """

    package: str
    messages: Sequence[ProtoMessage]

    def name_of(self, indexes: Sequence[int]) -> str:
        """Return the full name of a message.

        Raises:
            SchemaMismatch: there is no message with these indexes, or clients count groups before it differently.
        """
        names = [self.package] if self.package else []
        messages = self.messages
        for index in indexes:
            if index >= len(messages):
                path = ".".join(names[bool(self.package) :])
                raise SchemaMismatch(
                    f"the schema has no message with the indexes {list(indexes)}: {path or 'its file'} has "
                    f"{len(messages)} messages"
                )
            message = messages[index]
            _refuse_group_before(message, messages)
            names.append(message.name)
            messages = message.nested
        return ".".join(names)

    def indexes_of(self, name: str) -> tuple[int, ...] | None:
        """Return the indexes of a message by its full name; None if the file does not declare it.

        Raises:
            SchemaMismatch: clients count groups before it differently.
        """
        package = f"{self.package}." if self.package else ""
        if not name.startswith(package):
            return None
        indexes: list[int] = []
        messages = self.messages
        for part in name.removeprefix(package).split("."):
            index = next((index for index, message in enumerate(messages) if message.name == part), None)
            if index is None:
                return None
            _refuse_group_before(messages[index], messages)
            indexes.append(index)
            messages = messages[index].nested
        return tuple(indexes)


def _refuse_group_before(message: ProtoMessage, messages: Sequence[ProtoMessage]) -> None:
    for before in messages:
        if before.is_group:
            raise SchemaMismatch(
                f"the schema has the group {before.name!r}, which clients count differently, so that the indexes of "
                f"{message.name!r} cannot be told"
            )
        if before is message:
            return


def messages_in_text(text: str) -> ProtoMessages:
    """Return the messages that the text of a .proto file declares. The rest of the text is hardly checked.

    Raises:
        SchemaMismatch: the text is something else than a .proto file.
    """
    try:
        return _Outline().read(text)
    except _NotReadable as reason:
        raise SchemaMismatch(f"the messages of the Protobuf schema cannot be told: {reason}") from None


class _NotReadable(Exception):
    """The text is no .proto file."""


class _Block:
    """A pair of braces: ``messages`` gets what is declared in it, and is None where nothing is."""

    def __init__(self, messages: list[ProtoMessage] | None, declared: ProtoMessage | None = None) -> None:
        self.messages = messages
        self.declared = declared
        self.is_map_entry = False


class _Outline:
    """One reading of a file."""

    def __init__(self) -> None:
        self._package: str | None = None
        self._messages: list[ProtoMessage] = []
        self._blocks: list[_Block] = [_Block(self._messages)]
        self._words: list[str] = []
        """The words of the statement so far; values in brackets and braces are left out."""

    def read(self, text: str) -> ProtoMessages:
        tokens = _tokens(text.removeprefix("\ufeff"))
        for token in tokens:
            match token:
                case "[":  # options of a field
                    _skip(tokens, "[")
                case "{" if self._words[:1] == ["option"]:
                    _skip(tokens, "{")
                case "{":
                    self._blocks.append(self._open())
                    self._words = []
                case "}":
                    self._close()
                case ";":
                    self._end_statement()
                    self._words = []
                case _:
                    self._words.append(token)
        if len(self._blocks) > 1 or self._words:
            raise _NotReadable("it ends within a declaration")
        return ProtoMessages(self._package or "", self._messages)

    def _open(self) -> _Block:
        """Return the block that begins after the words."""
        block = self._blocks[-1]
        words = self._words[1:] if self._words and self._words[0] in _VISIBILITIES else self._words
        match words:
            case _ if block.messages is None:  # the options of a method, or the value of an option
                return _Block(None)
            case ["message", name] if _NAME.fullmatch(name):
                return self._declare(block.messages, ProtoMessage(name))
            case ["group", name, "=", _] | [_, "group", name, "=", _] if _NAME.fullmatch(name):
                if len(words) == 5 and words[0] not in _LABELS:
                    raise _NotReadable(f"{' '.join(words):.100} is no declaration")
                return self._declare(block.messages, ProtoMessage(name, is_group=True))
            case ["oneof" | "extend", _, *_]:  # groups in them are messages of the block around them
                return _Block(block.messages)
            case ["enum" | "service", _]:
                return _Block(None)
        raise _NotReadable(f"{' '.join(words):.100} is no declaration")

    def _declare(self, messages: list[ProtoMessage], message: ProtoMessage) -> _Block:
        messages.append(message)
        return _Block(message.nested, message)

    def _end_statement(self) -> None:
        words, block = self._words, self._blocks[-1]
        if words == _MAP_ENTRY:
            block.is_map_entry = True
        elif words[:1] == ["package"] and len(self._blocks) == 1:
            package = "".join(words[1:])
            if self._package is not None or not _PACKAGE.fullmatch(package):
                raise _NotReadable("it names no package, or several")
            self._package = package

    def _close(self) -> None:
        if self._words or len(self._blocks) == 1:
            raise _NotReadable("its braces do not match")
        block = self._blocks.pop()
        if block.is_map_entry and block.declared is not None:
            around = self._blocks[-1].messages
            assert around is not None
            around.pop()


def _tokens(text: str) -> Iterator[str]:
    """Yield the words and signs of a text, and an empty string literal for each string literal."""
    for found in _TOKEN.finditer(text):
        match found.lastgroup:
            case "space":
                continue
            case "string":
                yield '""'
            case "broken":
                raise _NotReadable(f"a comment or a string does not end, or begin, at character {found.start()}")
            case _:
                yield found[0]


def _skip(tokens: Iterator[str], opening: str) -> None:
    """Skip what is in braces and brackets, to the end of the pair that has been opened."""
    pairs = {"[": "]", "{": "}"}
    open_ones = [pairs[opening]]
    for token in tokens:
        if token in pairs:
            open_ones.append(pairs[token])
        elif token in ("]", "}") and token != open_ones.pop():
            break
        if not open_ones:
            return
    raise _NotReadable("its braces do not match")
