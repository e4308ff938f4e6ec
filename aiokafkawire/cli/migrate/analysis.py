"""Finds the uses of other Kafka clients in the source of a Python module."""

import re
from collections.abc import Collection
from typing import Final

import libcst as cst
from libcst.helpers import get_full_name_for_node
from libcst.metadata import MetadataWrapper, PositionProvider

from ...config.properties import is_property
from .advice import Advice, Library, Severity
from .aiokafka_names import AIOKAFKA
from .finding import Finding, finding_of
from .instances import InstanceCollector, KnownNames, ModuleVisitor
from .libraries import (
    DEPENDENCY,
    LIBRARIES,
    advice_for,
    argument_advice,
    dependency_advice,
    is_class,
    library_of,
    member_advice,
    setting_advice,
)
from .parsing import parse_source

__all__ = ("find_dependencies", "find_uses", "may_use")

_NAMES: Final = "|".join(LIBRARIES)
_MENTION: Final = re.compile(
    rf"\bfrom\s+(?:{_NAMES})\b|\bimport\s[^\n#]*(?<!\.)\b(?:{_NAMES})\b|['\"](?:{_NAMES})['\".]".encode()
)
_PATH: Final = re.compile(rf"(?:{_NAMES})(?:\.\w+)+")
_LOGGER: Final = re.compile(rf"{AIOKAFKA.name}(?:\.\w+)*")
_IMPORTING: Final = frozenset(
    {
        "builtins.__import__",
        "importlib.import_module",
        "importlib.util.find_spec",
        "pytest.importorskip",
    }
)
"""The functions whose first argument is the name of a module."""
_LOGGERS: Final = Advice(
    "the loggers are named `aiokafkawire`, with the drop-in as well: set levels and handlers there",
    "those of aiokafka's loggers no longer apply",
)


def may_use(source: bytes) -> bool:
    """Return whether the source seems to import a library, or to name one in a text, so that it is worth parsing."""
    return _MENTION.search(source) is not None


def find_uses(source: bytes, own_packages: Collection[str] = ()) -> list[Finding]:
    """Return the uses of other Kafka clients in a module, in the order of the lines.

    Args:
        source: the source of a module.
        own_packages: packages of the code base itself whose name is that of a library; of such a library, only names
            that it is known to have are reported.

    Raises:
        UnreadableSource: the source is no Python.
    """
    wrapper = MetadataWrapper(parse_source(source), unsafe_skip_copy=True)
    known = KnownNames()
    for _ in range(2):
        wrapper.visit(InstanceCollector(known))
    finder = _UseFinder(known, own_packages)
    wrapper.visit(finder)
    return sorted(dict.fromkeys(finder.findings), key=lambda each: (each.line, each.column))


def find_dependencies(text: str) -> list[Finding]:
    """Return the lines of a list of dependencies that name one of the libraries."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for match in DEPENDENCY.finditer(line.partition("#")[0]):
            library, advice = dependency_advice(match[1])
            found.append(finding_of(library, match[1], advice, (number, match.start() + 1)))
    return found


class _UseFinder(ModuleVisitor):
    """Reports imports, names of modules, members of objects, arguments, settings, and names in texts."""

    def __init__(self, known: KnownNames, own_packages: Collection[str]) -> None:
        super().__init__(known)
        self.findings: list[Finding] = []
        self._own = own_packages
        self._has_confluent = False

    def visit_Import(self, node: cst.Import) -> bool:
        """Report ``import library.module``."""
        for alias in node.names:
            self._report_name(get_full_name_for_node(alias.name) or "", alias, imported=True)
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        """Report each name of ``from library.module import name``."""
        module = get_full_name_for_node(node.module) if node.module is not None and not node.relative else None
        if module is None or library_of(module) is None:
            return False
        if isinstance(node.names, cst.ImportStar):
            library = LIBRARIES[module.partition(".")[0]]
            self._report(
                library, f"{module}.*", Advice("import the names that are used, so that they can be found"), node
            )
        else:
            for alias in node.names:
                self._report_name(f"{module}.{get_full_name_for_node(alias.name)}", alias, imported=True)
        return False

    def visit_ClassDef(self, node: cst.ClassDef) -> bool | None:
        """Report classes that derive from a library's."""
        for base in node.bases:
            if isinstance(base.value, cst.Name):
                self._report_name(self.imported_name(base.value) or "", base)
        return super().visit_ClassDef(node)

    def visit_Attribute(self, node: cst.Attribute) -> bool | None:
        """Report ``module.name``, ``Class.member`` and ``object.member``."""
        name = self.imported_name(node) if _is_dotted(node) else None
        library = library_of(name) if name is not None else None
        if name is not None and library is not None:
            owner, _, member = name.rpartition(".")
            owner = owner.rpartition(".")[2]
            if not owner[:1].isupper():
                self._report_name(name, node)
            elif is_class(library, owner):
                self._report(library, name, member_advice(library, owner, member), node.attr)
            return False
        held = self.instance_at(node.value)
        if held is not None and not self.is_own_member(node):
            advice = member_advice(held.library, held.owner, node.attr.value)
            self._report(held.library, f"{held.library.name}.{held.owner}.{node.attr.value}", advice, node.attr)
        return None

    def visit_Call(self, node: cst.Call) -> None:
        """Report the arguments of constructors, and modules and loggers that a call names by a literal."""
        functions = self.full_names(node.func)
        if functions & _IMPORTING:
            self._report_module_text(_named_by(node))
        elif "logging.getLogger" in functions:
            self._report_logger(_named_by(node), "logging.getLogger({})")
        made = self.class_named(node.func)
        for argument in node.args if made is not None else ():
            if made is not None and argument.keyword is not None:
                advice = argument_advice(made.library, made.owner, argument.keyword.value)
                name = f"{made.library.name}.{made.owner}({argument.keyword.value})"
                self._report(made.library, name, advice, argument.keyword)

    def visit_Dict(self, node: cst.Dict) -> None:
        """Report settings in a dict for confluent-kafka, and loggers in a dict for ``logging.config``."""
        for element in node.elements:
            if (
                isinstance(element, cst.DictElement)
                and _text_of(element.key) == "loggers"
                and isinstance(element.value, cst.Dict)
            ):
                for logger in element.value.elements:
                    self._report_logger(logger.key if isinstance(logger, cst.DictElement) else None, "loggers[{}]")
        pairs = [
            (key, element.key, element.value)
            for element in node.elements
            if isinstance(element, cst.DictElement) and (key := _text_of(element.key)) is not None
        ]
        if any("." in key and is_property(key) for key, _, _ in pairs):
            for key, place, value in pairs:
                self._report_setting(key, place, value)

    def visit_Assign(self, node: cst.Assign) -> None:
        """Report ``config["setting"] = value``."""
        for target in node.targets:
            if isinstance(target.target, cst.Subscript) and len(target.target.slice) == 1:
                index = target.target.slice[0].slice
                if isinstance(index, cst.Index) and (key := _text_of(index.value)) is not None:
                    self._report_setting(key, index, node.value)

    def visit_SimpleString(self, node: cst.SimpleString) -> None:
        """Report names in texts, as ``unittest.mock.patch`` takes them."""
        text = _text_of(node) or ""
        if _PATH.fullmatch(text):
            self._report_text(text, node, known_only=True)

    def _report_module_text(self, node: cst.BaseExpression | None) -> None:
        text = _text_of(node) if node is not None else None
        library = library_of(text) if text is not None else None
        if node is not None and text is not None and library is not None:
            self._has_confluent |= library.name == "confluent_kafka"
            self._report_text(text, node, known_only=library.name in self._own)

    def _report_text(self, text: str, node: cst.CSTNode, *, known_only: bool) -> None:
        library = library_of(text)
        advice = advice_for(library, text, known_only=known_only) if library is not None else None
        if library is None or advice is None:
            return
        if advice.severity is Severity.DROP_IN:
            advice = Advice(f"a name in a text: with the drop-in it is `aiokafkawire.{text}`")
        self._report(library, text, advice, node)

    def _report_logger(self, node: cst.BaseExpression | None, place: str) -> None:
        text = _text_of(node) if node is not None else None
        if node is not None and text is not None and _LOGGER.fullmatch(text) and AIOKAFKA.name not in self._own:
            self._report(AIOKAFKA, place.format(repr(text)), _LOGGERS, node)

    def _report_name(self, name: str, node: cst.CSTNode, *, imported: bool = False) -> None:
        library = library_of(name)
        if library is None:
            return
        advice = advice_for(library, name, known_only=library.name in self._own)
        if advice is None:
            return
        self._has_confluent |= library.name == "confluent_kafka"
        if imported or advice.severity is not Severity.DROP_IN:
            self.findings.append(finding_of(library, name, advice, self._place(node)))

    def _report_setting(self, key: str, node: cst.CSTNode, value: cst.BaseExpression) -> None:
        library = LIBRARIES["confluent_kafka"]
        if self._has_confluent:
            text = value.value if isinstance(value, cst.Name) else _text_of(value)
            self._report(library, f"{library.name}[{key!r}]", setting_advice(key, text), node)

    def _report(self, library: Library, name: str, advice: Advice | None, node: cst.CSTNode) -> None:
        if advice is not None and advice.severity is not Severity.DROP_IN:
            self.findings.append(finding_of(library, name, advice, self._place(node)))

    def _place(self, node: cst.CSTNode) -> tuple[int, int]:
        start = self.get_metadata(PositionProvider, node).start
        return start.line, start.column + 1


def _named_by(call: cst.Call) -> cst.BaseExpression | None:
    """Return the name that a call is about: its first argument, or that of the keyword."""
    named = (each for each in call.args if each.keyword is not None and each.keyword.value in ("name", "modname"))
    first = call.args[0] if call.args and call.args[0].keyword is None and not call.args[0].star else None
    argument = first or next(named, None)
    return argument.value if argument is not None else None


def _is_dotted(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) or (isinstance(node, cst.Attribute) and _is_dotted(node.value))


def _text_of(node: cst.BaseExpression) -> str | None:
    """Return the text of a string literal without escapes; None for other expressions."""
    return node.raw_value if isinstance(node, cst.SimpleString) and "b" not in node.prefix.lower() else None
