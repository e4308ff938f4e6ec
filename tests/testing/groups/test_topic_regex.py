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
    ("(?i:a)b", None, "Ab"),
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
    if yes is None:
        with pytest.raises(ApiError):
            compile_regex(regex)
        return
    assert compile_regex(regex).fullmatch(yes)
    assert not compile_regex(regex).fullmatch(no)


REFUSED = {
    "(a": "missing closing )",
    "[a": "missing closing ]",
    "[": "missing closing ]",
    "a)": "unexpected )",
    "*": "missing argument to repetition operator",
    "[b-a]": "invalid character class range",
    "[[:what:]]": "invalid character class range",
    "a**": "invalid nested repetition operator",
    "a++": "invalid nested repetition operator",
    "(?=a)": "invalid or unsupported Perl syntax",
    "(?>a)": "invalid or unsupported Perl syntax",
    r"(a)\1": "invalid escape sequence",
    r"\pN": "invalid escape sequence",
    "a\\": "trailing backslash at end of expression",
}


@pytest.mark.parametrize(("regex", "description"), REFUSED.items())
def test_refusals(regex: str, description: str) -> None:
    with pytest.raises(ApiError) as refused:
        compile_regex(regex)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert refused.value.message == f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {description}."


@pytest.mark.parametrize("regex", ["a(?i)b", "a{99999999999999999999}"])
def test_what_python_lacks_is_refused(regex: str) -> None:
    with pytest.raises(ApiError):
        compile_regex(regex)
