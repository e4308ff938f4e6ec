"""Changes the imports of aiokafka to those of the drop-in, where that is certain."""

from collections.abc import Collection

import libcst as cst
from libcst.helpers import get_full_name_for_node

from .aiokafka_names import DROP_IN_MODULES
from .libraries import has_drop_in
from .parsing import parse_source

__all__ = ("with_drop_in",)


def with_drop_in(source: bytes) -> bytes:
    """Return the source of a module with imports of ``aiokafkawire.aiokafka`` instead of ``aiokafka``.

    An import changes if the drop-in has all of its names. All else stays as it is, to the byte.

    Raises:
        UnreadableSource: the source is no Python.
    """
    body, end = source, b""
    module = parse_source(source)
    if module.bytes != body:  # LibCST loses some blanks at the end
        body = source.rstrip()
        module, end = parse_source(body), source[len(body) :]
    if module.bytes != body:
        return source
    names = _PackageNames()
    module.visit(names)
    members = _PackageMembers(names.bound)
    module.visit(members)
    keeps_package = names.binds_by_submodule or not members.are_in_drop_in
    return module.visit(_ImportChanger(keeps_package=keeps_package)).bytes + end


class _PackageNames(cst.CSTVisitor):
    """Collects the names that a module has for aiokafka as a whole."""

    def __init__(self) -> None:
        super().__init__()
        self.bound: set[str] = set()
        self.binds_by_submodule: bool = False
        """Whether ``import aiokafka.module`` binds the name of the package."""

    def visit_ImportAlias(self, node: cst.ImportAlias) -> None:
        """Take ``import aiokafka`` and ``import aiokafka as name``."""
        name = get_full_name_for_node(node.name) or ""
        if name == "aiokafka":
            self.bound.add(node.evaluated_alias or name)
        elif name.startswith("aiokafka.") and node.asname is None:
            self.binds_by_submodule = True


class _PackageMembers(cst.CSTVisitor):
    """Looks whether the drop-in has all that is used as ``aiokafka.name``."""

    def __init__(self, bound: Collection[str]) -> None:
        super().__init__()
        self._bound = bound
        self.are_in_drop_in: bool = True

    def visit_Import(self, node: cst.Import) -> bool:
        """Leave imports out: their dotted names are modules."""
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        """Leave these out, too."""
        return False

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        """Look at a whole dotted name, up to the first class in it."""
        package, *parts = (get_full_name_for_node(node) or "").split(".")
        if package not in self._bound:
            return True
        first_class = next((place for place, part in enumerate(parts) if part[:1].isupper()), len(parts))
        self.are_in_drop_in &= has_drop_in(".".join(("aiokafka", *parts[: first_class + 1])))
        return False


class _ImportChanger(cst.CSTTransformer):
    """Changes imports; that of the package as a whole only where that is certain."""

    def __init__(self, *, keeps_package: bool) -> None:
        super().__init__()
        self._keeps_package = keeps_package

    def leave_Import(self, original_node: cst.Import, updated_node: cst.Import) -> cst.Import:
        return updated_node.with_changes(names=[self._changed_alias(alias) for alias in updated_node.names])

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> cst.ImportFrom:
        module = get_full_name_for_node(updated_node.module) if updated_node.module is not None else None
        names = updated_node.names
        if (
            module is None
            or module not in DROP_IN_MODULES
            or updated_node.relative
            or isinstance(names, cst.ImportStar)
        ):
            return updated_node
        if not all(has_drop_in(f"{module}.{get_full_name_for_node(alias.name)}") for alias in names):
            return updated_node
        return updated_node.with_changes(module=_dotted(f"aiokafkawire.{module}"))

    def _changed_alias(self, alias: cst.ImportAlias) -> cst.ImportAlias:
        name = get_full_name_for_node(alias.name) or ""
        if name not in DROP_IN_MODULES or (name == "aiokafka" and self._keeps_package):
            return alias
        if name != "aiokafka" and alias.asname is None:
            return alias
        bound = alias.asname or cst.AsName(
            name=cst.Name("aiokafka"),
            whitespace_before_as=cst.SimpleWhitespace(" "),
            whitespace_after_as=cst.SimpleWhitespace(" "),
        )
        return alias.with_changes(name=_dotted(f"aiokafkawire.{name}"), asname=bound)


def _dotted(name: str) -> cst.Attribute | cst.Name:
    first, *others = name.split(".")
    node: cst.Attribute | cst.Name = cst.Name(first)
    for part in others:
        node = cst.Attribute(value=node, attr=cst.Name(part))
    return node
