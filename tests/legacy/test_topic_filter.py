"""Filters of topics mean what they mean to Java's clients of Kafka 0.7, or are refused."""

import random
import subprocess
from pathlib import Path

import pytest
from support.jars import missing
from support.needing import require

from aiokafkawire.errors import ConfigError, WireError
from aiokafkawire.legacy.consumer import LegacyConsumer
from aiokafkawire.legacy.registry import LegacySubscription, parse_subscription
from aiokafkawire.legacy.topic_filter import compile_filter, normalize_filter

TOPICS = [
    "a",
    "b",
    "ab",
    "aa",
    "aaa",
    "A",
    "AB",
    "pz-abc",
    "pz-ab",
    "a-b",
    "a.b",
    "a|b",
    "z9",
    "",
    "é",
    "\u0661",
    "x]y",
    "a&b",
]
TOPICS += [
    "^",
    "$",
    "{",
    "}",
    "-",
    "\\",
    "'a'",
    '"',
    "a_b",
    "\u2028",
    "\U0001f600",
    "e",
    "é1",
    "ÀB",
    "\u212a",
    "k",
    "\u017f",
    "s",
]


@pytest.mark.parametrize(
    ("text", "registered", "read"),
    [
        ("a,b", "a|b", {"a", "b"}),
        ("a, b", "a|b", {"a", "b"}),
        ('"a,b"', "a|b", {"a", "b"}),
        ("'a'", "a", {"a"}),
        (" 'a' , 'b' ", "a'|'b", set()),  # quotes go at both ends alone
        (r"\p{Lower}+", r"\p{Lower}+", {"a", "b", "ab", "aa", "aaa", "e", "k", "s"}),
        (
            r"\P{Lower}",
            r"\P{Lower}",
            {"A", "é", "\u0661", "^", "$", "{", "}", "-", "\\", '"', "\u2028", "\U0001f600", "\u212a", "\u017f"},
        ),
        (r"[\p{Alpha}&&[^b]]", None, None),
        (r"pz-[a-z]{3}", r"pz-[a-z]{3}", {"pz-abc"}),
        (r"\d", r"\d", set()),
        (r"\w\d", r"\w\d", {"z9"}),
        ("(?i)a(?:b)?", "(?i)a(?:b)?", {"a", "A", "ab", "AB"}),
        ("(?i)K", "(?i)K", {"k"}),
        ("(?!pz).*b", "(?!pz).*b", {"b", "ab", "a-b", "a.b", "a|b", "a&b", "a_b"}),
        (r"\Qa.b\E", r"\Qa.b\E", {"a.b"}),
        (r"[\x61\u0062]", r"[\x61\u0062]", {"a", "b"}),
        ("", "", {""}),
    ],
)
def test_a_filter_is_read_as_java_reads_it(text: str, registered: str | None, read: set[str] | None) -> None:
    if read is None:
        with pytest.raises(ConfigError):
            compile_filter(text)
        return
    assert normalize_filter(text) == registered
    assert {topic for topic in TOPICS if compile_filter(text).fullmatch(topic)} == read
    assert LegacySubscription(pattern=normalize_filter(text)).encode() == b"*1*" + normalize_filter(text).encode()
    assert set(parse_subscription(b"*1*" + text.encode(), "/x").of(dict.fromkeys(TOPICS))) == read


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("pz-[a-z]{3,3}", r"which Kafka 0\.7 reads as 'pz-\[a-z\]\{3\|3\}'.*'\{3\|3\}' is not a repetition"),
        ("a{2,}", "not a repetition"),
        ("{", "not a repetition"),
        ("*a", "'\\*' at index 0 has nothing to repeat"),
        ("a**", "nothing to repeat"),
        ("a++", r"possessive quantifier '\+\+'"),
        ("(a", r"a group that begins with '\(' has no end"),
        ("a)", "closes no group"),
        ("[a", "has no end"),
        ("[]a]", "first in its character class"),
        ("[b-a]", "wrong order"),
        ("[a-c&&b]", "intersection"),
        ("[a[b]]", "a character class in another"),
        (r"[\d-z]", "follows a class of characters"),
        (r"\p{L}", r"'\\\\p\{L\}' is not supported; of"),
        (r"\pL", "not supported"),
        (r"\p{javaLowerCase}", "not supported"),
        (r"(?i)\p{Lower}", "where case is ignored"),
        (r"\ba", "not supported"),
        (r"(a)\1", r"'\\\\1' is not supported"),
        (r"(?<name>a)", "'\\(\\?<name>' is not supported"),
        ("a(?i)b", "may stand at the beginning alone"),
        ("(?x)a", "not supported"),
        ("(?>a)", "not supported"),
        ("(?<=a*)b", "cannot be compiled"),
        ("a\\", "ends with a backslash"),
        (r"\ud800", "half of a character"),
        ("a\nb", r"'\\n' cannot be registered"),
        ("\ud800", "cannot be registered"),
        ("(" * 20_000 + ")" * 20_000, "cannot be compiled"),
    ],
    ids=lambda text: text[:20].encode("unicode-escape").decode(),
)
def test_what_java_refuses_or_means_otherwise_is_refused_by_name(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        LegacyConsumer("z", "g", pattern=text)
    data = b"*1*" + text.encode("utf-8", "surrogatepass")
    with pytest.raises(WireError, match=r"^/x holds"):
        parse_subscription(data, "/x")


def test_a_pattern_has_to_be_a_string() -> None:
    with pytest.raises(ConfigError, match="pattern must be a string or None, got b'a'"):
        LegacyConsumer("z", "g", pattern=b"a")  # type: ignore[arg-type]


# --- beside Java ----------------------------------------------------------------------------------------------------

_PIECES = [
    "a",
    "b",
    "-",
    ".",
    "*",
    "+",
    "?",
    "|",
    ",",
    " ",
    "(",
    ")",
    "(?:",
    "(?!",
    "(?=",
    "(?<=",
    "(?i)",
    "(?i:",
    "[",
    "[^",
]
_PIECES += [
    "]",
    "^",
    "$",
    "{",
    "}",
    "{2}",
    "{1,2}",
    "\\d",
    "\\w",
    "\\W",
    "\\s",
    "\\p{Lower}",
    "\\P{Upper}",
    "\\p{Punct}",
    "a-c",
]
_PIECES += [
    "\\.",
    "\\-",
    "\\]",
    "\\Q",
    "\\E",
    "\\z",
    "\\Z",
    "\\A",
    "\\x61",
    "\\u0062",
    "&",
    "&&",
    "'",
    '"',
    "é",
    "\\é",
    "z9",
    "\\p{L}",
]
_PIECES += [
    "\\p{Space}",
    "\\p{Print}",
    "\\p{Graph}",
    "\\p{Cntrl}",
    "\\p{Blank}",
    "\\p{ASCII}",
    "\\p{XDigit}",
    "\\p{Alnum}",
    "#",
]


def _filters(count: int) -> list[str]:
    chance = random.Random(7)
    return ["".join(chance.choices(_PIECES, k=chance.randint(1, 7))) for _ in range(count)]


def _hex(text: str) -> str:
    return "x" + text.encode().hex()


@pytest.mark.slow
def test_filters_mean_what_they_mean_to_java() -> None:
    require(missing())
    source = Path(__file__).parent.parent / "data" / "TopicFilters.java"
    filters = _filters(20_000)
    topics = " ".join(map(_hex, TOPICS))
    given = "".join(f"{_hex(one)} {topics}\n" for one in filters)
    command = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", str(source)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120, check=True)
    used = 0
    for text, java in zip(filters, done.stdout.splitlines(), strict=True):
        try:
            matches = compile_filter(text).fullmatch
        except ConfigError:
            continue
        assert "".join("1" if matches(topic) else "0" for topic in TOPICS) == java, text
        used += 1
    assert used > 5_000
