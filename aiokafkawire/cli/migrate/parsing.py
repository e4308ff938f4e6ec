"""Parses Python sources for LibCST."""

import ast
import warnings

import libcst as cst

__all__ = ("UnreadableSource", "parse_source")


class UnreadableSource(Exception):
    """A source that is no Python of this interpreter's version, or that LibCST cannot parse."""


def parse_source(source: bytes) -> cst.Module:
    """Parse the source of a module.

    Python's own parser reads it first: LibCST's has no limit of nesting, and a source that overflows its stack would
    end the process.

    Raises:
        UnreadableSource: it cannot be parsed; the message says where and why.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the source, such as invalid escapes
            ast.parse(source)
        return cst.parse_module(source)
    except SyntaxError as error:
        place = f"line {error.lineno}: " if error.lineno else ""
        raise UnreadableSource(f"{place}{error.msg}") from None
    except cst.ParserSyntaxError as error:
        raise UnreadableSource(f"line {error.raw_line}: {error.message.splitlines()[0]}") from None
    except (RecursionError, MemoryError):
        raise UnreadableSource("it is nested too deeply") from None
    except ValueError as error:  # it has null bytes, or is not in its encoding
        raise UnreadableSource(str(error)) from None
