"""Regular expressions of subscribed topics: RE2 syntax by means of Python's ``re``."""

from __future__ import annotations

import pytest

from aiokafkawire.errors import ErrorCode
from aiokafkawire.testing.cluster.api_error import ApiError
from aiokafkawire.testing.groups.topic_regex import compile_regex

MATCHES = [
    ("a.*", "abc", "ba"),
    (r"\Aa\z", "a", "aa"),
    ("(?i)topic", "TOPIC", "topics"),
    ("(?i:a)b", "Ab", "aB"),
    ("a(?i)b|c", "C", "Ab"),
    ("(a(?i)b)c", "aBc", "aBC"),
    ("(?i)a(?-i)b", "Ab", "AB"),
    ("(?sU-i)a+", "aa", "A"),
    ("(?P<1a>a)", "a", "b"),
    ("a{,2}", "a{,2}", "aa"),
    ("^*a$+", "a", "aa"),
    (r"\pL+", "aB", "1"),
    (r"\p{^Lu}\P{Nd}", "ab", "Ab"),
    (r"(?i)\p{Lu}", "a", "1"),
    (r"[\p{Latin}-]+", "a-b", "1"),
    (r"\p{Greek}|a", "a", "b"),
    (r"\p{Any}", "_", "ab"),
    ("[[:^alpha:]]", "1", "a"),
    ("[[:graph:][:blank:]]+", "a b", "\n"),
    ("[[:alpha]+", "h:", "b"),
    (r"[\d-z]+", "1-z", "y"),
    (r"\x{41}\102\x43", "ABC", "abc"),
    (r"\Qa.*\E+b", "a.**b", "aab"),
    (r"\_\-\ ", "_- ", "_-"),
    ("é", None, "a"),
    ("(?i)[^a]", "b", "A"),
    ("(?P<name>a)|(?<other>b)", "b", "c"),
    ("(?:ab)+?", "abab", "aba"),
    ("a{2,3}", "aaa", "a"),
    ("[[:alpha:]_-]+", "a_-B", "1"),
    ("[^[:digit:]]", "x", "1"),
    ("[]a]+", "a]", "b"),
    ("[a&&b]+", "&", "~"),
    ("[[a]+", "[", "]"),
    ("[+--]+", "-", "a"),
    (r"[\w.]+", "a.b", "-"),
    (r"a\.b", "a.b", "axb"),
]


@pytest.mark.parametrize(("regex", "yes", "no"), MATCHES)
def test_matches(regex: str, yes: str | None, no: str) -> None:
    assert yes is None or compile_regex(regex).fullmatch(yes)
    assert not compile_regex(regex).fullmatch(no)


REFUSED = {
    "(a": "missing closing )",
    "[a": "missing closing ]",
    "[": "missing closing ]",
    "a)": "regexp/syntax: internal error",
    "*": "missing argument to repetition operator",
    "[b-a]": "invalid character class range",
    "[[:what:]]": "invalid character class range",
    "a**": "invalid nested repetition operator",
    "a++": "invalid nested repetition operator",
    "(?=a)": "invalid or unsupported Perl syntax",
    "(?>a)": "invalid or unsupported Perl syntax",
    r"(a)\1": "invalid escape sequence",
    r"\pX": "invalid character class range",
    r"\p{Letter}": "invalid character class range",
    r"\p": "invalid character class range",
    "[a--]": "invalid character class range",
    "[[:^what:]]": "invalid character class range",
    r"[\b]": "invalid escape sequence",
    r"\x{110000}": "invalid escape sequence",
    "a{1001}": "invalid repeat count",
    "a{2,1}": "invalid repeat count",
    "{{2}": "invalid nested repetition operator",
    "(?P<n>a)(?P<n>b)": "duplicate capture group name",
    "(?P<n-x>a)": "invalid named capture",
    "(?<=a)": "invalid named capture",
    "(?-)a": "invalid or unsupported Perl syntax",
    "a\\": "trailing backslash at end of expression",
}


@pytest.mark.parametrize(("regex", "description"), REFUSED.items())
def test_refusals(regex: str, description: str) -> None:
    with pytest.raises(ApiError) as refused:
        compile_regex(regex)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert refused.value.message == f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {description}."


@pytest.mark.parametrize("regex", ["a{99999999999999999999}", "(" * 5000 + ")" * 5000])
def test_what_is_too_large_is_refused(regex: str) -> None:
    with pytest.raises(ApiError):
        compile_regex(regex)
