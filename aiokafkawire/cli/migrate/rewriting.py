"""Changes the imports of aiokafka to those of the drop-in, where that is certain."""

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
    module = parse_source(source)
    found = _BoundNames()
    module.visit(found)
    return module.visit(_ImportChanger(keeps_package=found.binds_package_by_submodule)).bytes


class _BoundNames(cst.CSTVisitor):
    """Looks whether ``import aiokafka.module`` binds the name of the package."""

    def __init__(self) -> None:
        super().__init__()
        self.binds_package_by_submodule: bool = False

    def visit_ImportAlias(self, node: cst.ImportAlias) -> None:
        name = get_full_name_for_node(node.name) or ""
        if name.startswith("aiokafka.") and node.asname is None:
            self.binds_package_by_submodule = True


class _ImportChanger(cst.CSTTransformer):
    """Changes imports. The package's own import stays if the package is bound by that of a submodule as well."""

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
        if name not in DROP_IN_MODULES or (alias.asname is None and (name != "aiokafka" or self._keeps_package)):
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
