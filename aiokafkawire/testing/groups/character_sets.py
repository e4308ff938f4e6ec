"""The characters that a part of a regular expression matches, among those of ASCII: topics have no others."""

import re
import unicodedata
from collections.abc import Set as AbstractSet
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits, hexdigits, punctuation
from typing import Final

__all__ = ("ASCII", "PERL", "as_python", "folded", "posix", "unicode_class")

ASCII: Final = frozenset(map(chr, range(128)))
_WORD: Final = frozenset(ascii_letters + digits + "_")
_SPACE: Final = frozenset("\t\n\f\r ")
_GRAPH: Final = frozenset(map(chr, range(0x21, 0x7F)))
PERL: Final = {
    "d": frozenset(digits),
    "D": ASCII - frozenset(digits),
    "s": _SPACE,
    "S": ASCII - _SPACE,
    "w": _WORD,
    "W": ASCII - _WORD,
}
"""The classes that one letter names after a backslash."""
_POSIX: Final = {
    "alnum": frozenset(ascii_letters + digits),
    "alpha": frozenset(ascii_letters),
    "ascii": ASCII,
    "blank": frozenset("\t "),
    "cntrl": ASCII - _GRAPH - {" "},
    "digit": frozenset(digits),
    "graph": _GRAPH,
    "lower": frozenset(ascii_lowercase),
    "print": _GRAPH | {" "},
    "punct": frozenset(punctuation),
    "space": _SPACE | {"\v"},
    "upper": frozenset(ascii_uppercase),
    "word": _WORD,
    "xdigit": frozenset(hexdigits),
}
_CATEGORY_NAMES: Final = """
C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs
"""
_SCRIPT_NAMES: Final = """
Arabic Armenian Avestan Balinese Bamum Batak Bengali Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian
Cham Cherokee Common Coptic Cuneiform Cypriot Cyrillic Deseret Devanagari Egyptian_Hieroglyphs Ethiopic Georgian
Glagolitic Gothic Greek Gujarati Gurmukhi Han Hangul Hanunoo Hebrew Hiragana Imperial_Aramaic Inherited
Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kayah_Li Kharoshthi Khmer Lao Latin
Lepcha Limbu Linear_B Lisu Lycian Lydian Malayalam Mandaic Meetei_Mayek Mongolian Myanmar New_Tai_Lue Nko Ogham
Ol_Chiki Old_Italic Old_Persian Old_South_Arabian Old_Turkic Oriya Osmanya Phags_Pa Phoenician Rejang Runic Samaritan
Saurashtra Shavian Sinhala Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Tamil Telugu Thaana
Thai Tibetan Tifinagh Ugaritic Unknown Vai Yi
"""
_CATEGORIES: Final = frozenset(_CATEGORY_NAMES.split())
_SCRIPTS: Final = frozenset(_SCRIPT_NAMES.split())


def posix(name: str) -> AbstractSet[str] | None:
    """Return the characters of a class such as ``alpha`` or ``^alpha``; None if there is no such class."""
    found = _POSIX.get(name.removeprefix("^"))
    return ASCII - found if found is not None and name.startswith("^") else found


def unicode_class(name: str) -> AbstractSet[str] | None:
    """Return the characters of a category or script such as ``Lu`` or ``Latin``; None if there is no such class."""
    if name == "Any":
        return ASCII
    if name in _CATEGORIES:
        return {character for character in ASCII if unicodedata.category(character).startswith(name)}
    if name not in _SCRIPTS:
        return None
    letters = frozenset(ascii_letters)
    return {"Latin": letters, "Common": ASCII - letters}.get(name, frozenset())


def folded(characters: AbstractSet[str]) -> AbstractSet[str]:
    """Add the letters that differ only in case."""
    return {*characters, *(character.swapcase() for character in characters)}


def as_python(characters: AbstractSet[str]) -> str:
    """Return an expression of Python's ``re`` that matches one of these characters."""
    if not characters:
        return "(?!)"
    return f"[{''.join(map(re.escape, sorted(characters)))}]" if len(characters) > 1 else re.escape(*characters)
