"""Find English that readers stumble over: in docstrings, comments and messages of the package, and in the documents.

``python tests/support/plain_english.py aiokafkawire/network docs`` lists what it finds.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ("Finding", "check", "files_under")

# Functions say what they do in the imperative, beginning with one of these.
VERBS = frozenset(
    """
    abort accept acknowledge acquire add adjust advance allow answer append apply archive ask assemble assert assign
    authenticate await back bind block boot bound break build call cancel cap change check choose claim classify
    clean cleanse clear close collect combine commit compare compile complete compress compute configure confirm
    connect consume continue convert copy correct count create cut deal debug decide declare decode decompress
    decrement decrypt deduplicate defer define delay delete deliver derive describe deserialize detach detect
    determine discard disconnect dispatch display divide do double drain draw drive drop elect emit enable encode
    encrypt end enforce enqueue enter escape estimate evict examine exchange exclude execute exit expand expect
    expire explain export extend extract fail fence fetch fill filter find finish fix flip flush follow forget format
    forward free freeze gather generate get give go group grow guard guess handle hash hide hold ignore import
    increment infer inflate inject insert inspect install intercept invalidate iterate join keep kill lay leave lend
    let limit list load locate lock log look lookup lose lower make map mark match measure merge migrate modify
    monitor move name negotiate normalize note notify number omit open order override pack parse partition pass
    patch pause perform persist pick place plan poison poll pop postpone prefer prefix prepare prevent print probe
    process produce propose prove provide purge push put quote raise read reauthenticate rebalance receive reconnect
    record recover reduce refresh refuse register reject rejoin release reload remember remove rename renew render
    reorder repeat replace replay reply report request require reserve reset resolve resplit restart restore resume
    retry return reuse reveal revoke rewind rewrite rotate route run sample save scan schedule seal search seek select
    send separate serialize serve set settle share shield shift show shut sign simulate skip sleep sort spawn split
    start step stop store stream strip submit subscribe suggest sum summarize suspend swap switch take test throttle
    time track transform translate transmit trim truncate try turn unblock undo unescape unpack unregister
    unsubscribe unwrap update upgrade use validate verify view visit wait wake walk warn watch weigh withdraw
    withhold wrap write yield
    """.split()  # noqa: SIM905  # words read better in lines than in a column
)

# A sentence's subject is a noun: not "who asks", "what came", "whoever ...".
FREE_RELATIVE = re.compile(r"(?:^|(?<=[.:;] )|(?<=\n\n)|(?<=- ))(?:Who|What|Whoever|Whatever|Whom)\b(?![^.?]*\?)")
# Words that stood for half a dozen standard verbs each, and what to say instead.
HOUSEHOLD = {
    r"tells?\b|told\b": "say, return, report, notify",
    r"hears?\b|heard\b|unheard\b": "receive, learn, be notified",
    r"wants?\b|wanted\b": "need, request, require",
    r"rests\b|rested\b": "wait, back off, be idle",
    r"by itself\b(?= (?:commit|offsets))": "automatically",
    r"whoever\b|whomever\b": "the caller, the client, the member",
    r"nobody\b|somebody\b": "no caller, another client",
}
_HOUSEHOLD = re.compile(r"\b(?:" + "|".join(HOUSEHOLD) + ")", re.IGNORECASE)
_CODE = re.compile(r"```.*?```|``[^`]*``|`[^`]*`|:\w+:`[^`]*`|\"[^\"\n]*\"|https?://\S+", re.S)


class Finding(NamedTuple):
    """One place to rewrite."""

    path: Path
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.text}"


def files_under(*roots: Path) -> Iterator[Path]:
    """Yield the sources and documents under the roots, without those that list Kafka's messages."""
    for root in roots:
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if path.suffix in (".py", ".pyx", ".pxi", ".md") and "messages" not in path.parts:
                yield path


def check(path: Path) -> list[Finding]:
    """Return what is hard to read in one file."""
    text = path.read_text()
    if path.suffix == ".md":
        return list(_check_text(path, 1, text))
    if path.suffix in (".pyx", ".pxi"):
        return [one for line, comment in _comments_of_cython(text) for one in _check_text(path, line, comment)]
    findings = [*_check_docstrings(path, ast.parse(text))]
    for line, comment in _comments(text):
        findings.extend(_check_text(path, line, comment))
    return sorted(findings)


def _check_docstrings(path: Path, tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        docstring = ast.get_docstring(node)
        if not docstring:
            continue
        line = node.body[0].lineno
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_property(node):
            first = re.match(r"\W*([A-Za-z]+)", docstring)
            if first is None or first[1].lower() not in VERBS:
                yield Finding(path, line, "begin with a verb", docstring.partition("\n")[0])
        yield from _check_text(path, line, docstring)


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in node.decorator_list)


def _check_text(path: Path, line: int, text: str) -> Iterator[Finding]:
    plain = _CODE.sub(lambda match: re.sub(r"[^\n]", "_", match[0]), text)
    for rule, pattern in (("name the subject", FREE_RELATIVE), ("use a standard verb", _HOUSEHOLD)):
        for match in pattern.finditer(plain):
            start, end = max(0, match.start() - 20), match.end() + 50
            excerpt = " ".join(text[start:end].split())
            yield Finding(path, line + text.count("\n", 0, match.start()), rule, excerpt)


def _comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")


def _comments_of_cython(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if "#" in line:
            yield number, line.partition("#")[2].strip()


if __name__ == "__main__":
    found = [finding for path in files_under(*map(Path, sys.argv[1:])) for finding in check(path)]
    print("\n".join(map(str, found)))
    sys.exit(bool(found))
