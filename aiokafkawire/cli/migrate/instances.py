"""Which variables of a module hold objects of other Kafka clients, as far as assignments and annotations say it."""

import re
from collections.abc import Collection, Iterator
from typing import ClassVar, Final, NamedTuple

import attrs
import libcst as cst
from libcst.helpers import get_full_name_for_node
from libcst.metadata import (
    BaseMetadataProvider,
    ClassScope,
    PositionProvider,
    QualifiedNameSource,
    Scope,
    ScopeProvider,
)

from .advice import Library
from .libraries import is_class, library_of

__all__ = ("Instance", "InstanceCollector", "KnownNames", "ModuleVisitor")

_IDENTIFIERS: Final = re.compile(r"[A-Za-z_][\w.]*")


class Instance(NamedTuple):
    """An object of a class of a library."""

    library: Library
    owner: str
    """The name of the class."""


Key = tuple[object, str]
"""A variable: its scope, or the class whose methods use it as ``self.name``, and its name."""


@attrs.define
class KnownNames:
    """The knowledge about the variables, functions and classes of a module."""

    variables: dict[Key, Instance] = attrs.field(factory=dict)
    """The objects that variables hold."""
    functions: dict[str, Instance] = attrs.field(factory=dict)
    """The objects that functions return, by name."""
    own_members: set[tuple[str, str]] = attrs.field(factory=set)
    """The members that classes of the module have themselves: names of the class and of the member."""


class ModuleVisitor(cst.CSTVisitor):
    """Visits a module, and knows what names stand for.

    Args:
        known: the knowledge about the module, which visitors share.
    """

    METADATA_DEPENDENCIES: ClassVar[Collection[type[BaseMetadataProvider[object]]]] = (PositionProvider, ScopeProvider)

    def __init__(self, known: "KnownNames") -> None:
        super().__init__()
        self.known: Final = known
        self._classes: list[tuple[str, Instance | None]] = []

    def visit_ClassDef(self, node: cst.ClassDef) -> bool | None:
        """Enter a class; ``self`` is an object of the library's class from which it derives."""
        bases = (self.class_named(base.value) for base in node.bases)
        self._classes.append((node.name.value, next((each for each in bases if each is not None), None)))
        return None

    def leave_ClassDef(self, original_node: cst.ClassDef) -> None:
        """Leave a class."""
        self._classes.pop()

    def imported_name(self, node: cst.CSTNode | str, scope: Scope | None = None) -> str | None:
        """Return the full name of what a name stands for, if it is imported from one of the libraries."""
        if scope is None and isinstance(node, cst.CSTNode):
            scope = self.get_metadata(ScopeProvider, node, None)
        if scope is None:
            return None
        found = (each.name for each in scope.get_qualified_names_for(node) if each.source is QualifiedNameSource.IMPORT)
        return next((name for name in sorted(found) if library_of(name) is not None), None)

    def full_names(self, node: cst.BaseExpression) -> frozenset[str]:
        """Return the full names that a name may stand for: those of what is imported or built in."""
        scope = self.get_metadata(ScopeProvider, node, None)
        found = scope.get_qualified_names_for(node) if scope is not None else ()
        return frozenset(each.name for each in found if each.source is not QualifiedNameSource.LOCAL)

    def class_named(self, node: cst.BaseExpression) -> Instance | None:
        """Return the class that an expression names."""
        name = self.imported_name(node) if isinstance(node, cst.Name | cst.Attribute) else None
        return _instance_of(name)

    def instance_at(self, node: cst.BaseExpression) -> Instance | None:
        """Return what an expression evaluates to, if it is an object of a library."""
        if isinstance(node, cst.Await):
            return self.instance_at(node.expression)
        if isinstance(node, cst.NamedExpr):
            return self.instance_at(node.value)
        if isinstance(node, cst.IfExp):
            return self.instance_at(node.body) or self.instance_at(node.orelse)
        if isinstance(node, cst.BooleanOperation):
            return self.instance_at(node.left) or self.instance_at(node.right)
        if isinstance(node, cst.Call):
            return self._result_of(node)
        if not isinstance(node, cst.Name | cst.Attribute):
            return None
        if isinstance(node, cst.Name) and node.value == "self" and self._classes:
            return self._classes[-1][1]
        return next((self.known.variables[key] for key in self.keys_of(node) if key in self.known.variables), None)

    def is_own_member(self, node: cst.Attribute) -> bool:
        """Return whether an attribute is ``self.name`` of a class that has the name itself."""
        return (
            _is_self(node.value)
            and bool(self._classes)
            and (self._classes[-1][0], node.attr.value) in self.known.own_members
        )

    def _result_of(self, call: cst.Call) -> Instance | None:
        function = call.func
        named = self.class_named(function)
        if named is not None:
            return named
        if isinstance(function, cst.Name):
            return self.known.functions.get(function.value)
        if not isinstance(function, cst.Attribute):
            return None
        owner = self.instance_at(function.value)
        if owner is None:
            return self.known.functions.get(function.attr.value) if _is_self(function.value) else None
        base = owner.library.bases.get(owner.owner, owner.owner)
        result = owner.library.results.get(f"{base}.{function.attr.value}")
        return Instance(owner.library, result) if result is not None else None

    def keys_of(self, node: cst.BaseExpression) -> Iterator[Key]:
        """Yield the variables that an expression may name."""
        if isinstance(node, cst.Name):
            scope = self.get_metadata(ScopeProvider, node, None)
            if scope is not None:
                yield from ((each.scope, node.value) for each in scope[node.value])
                yield scope, node.value
                if isinstance(scope, ClassScope) and self._classes:
                    yield self._classes[-1][0], f"self.{node.value}"
        elif isinstance(node, cst.Attribute):
            name = get_full_name_for_node(node)
            if name is not None:
                yield self._classes[-1][0] if name.startswith("self.") and self._classes else "", name


class InstanceCollector(ModuleVisitor):
    """Collects which variables hold objects of the libraries. Visiting twice follows variables given to others."""

    def visit_Assign(self, node: cst.Assign) -> None:
        """Take ``name = Class(...)``."""
        for target in node.targets:
            self._hold(target.target, self.instance_at(node.value))

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        """Take ``name: Class``."""
        held = self._annotated(node.annotation) or (self.instance_at(node.value) if node.value is not None else None)
        self._hold(node.target, held)

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        """Take ``name := Class(...)``."""
        self._hold(node.target, self.instance_at(node.value))

    def visit_WithItem(self, node: cst.WithItem) -> None:
        """Take ``with Class(...) as name``."""
        if node.asname is not None:
            self._hold(node.asname.name, self.instance_at(node.item))

    def visit_For(self, node: cst.For) -> None:
        """Take ``for name in consumer.consume()``, where the result is the class of the elements."""
        if isinstance(node.iter, cst.Call):
            self._hold(node.target, self.instance_at(node.iter))

    def visit_CompFor(self, node: cst.CompFor) -> None:
        """Take the same in a comprehension."""
        if isinstance(node.iter, cst.Call):
            self._hold(node.target, self.instance_at(node.iter))

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        """Take ``def function(name: Class) -> Class``."""
        if self._classes:
            self.known.own_members.add((self._classes[-1][0], node.name.value))
        returned = self._annotated(node.returns) if node.returns is not None else None
        if returned is not None:
            self.known.functions[node.name.value] = returned
        scope = self.get_metadata(ScopeProvider, node.body, None)
        parameters = node.params
        for parameter in (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params):
            held = self._annotated(parameter.annotation) if parameter.annotation is not None else None
            if held is not None and scope is not None:
                self.known.variables[scope, parameter.name.value] = held

    def _hold(self, target: cst.BaseExpression, instance: Instance | None) -> None:
        if isinstance(target, cst.Attribute) and _is_self(target.value) and self._classes:
            self.known.own_members.add((self._classes[-1][0], target.attr.value))
        if instance is not None:
            for key in self.keys_of(target):
                self.known.variables[key] = instance

    def _annotated(self, annotation: cst.Annotation) -> Instance | None:
        """Return the first class of a library in an annotation, such as ``Consumer | None``."""
        scope = self.get_metadata(ScopeProvider, annotation, None)
        text = cst.Module([]).code_for_node(annotation.annotation)
        for name in _IDENTIFIERS.findall(text):
            found = _instance_of(self.imported_name(name, scope)) if scope is not None else None
            if found is not None:
                return found
        return None


def _instance_of(name: str | None) -> Instance | None:
    library = library_of(name) if name is not None else None
    if name is None or library is None:
        return None
    owner = name.rpartition(".")[2]
    return Instance(library, owner) if is_class(library, owner) else None


def _is_self(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "self"
