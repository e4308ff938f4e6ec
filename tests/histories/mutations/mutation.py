"""One change of the client that breaks a guarantee, and the import of its module with that change."""

import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

import attrs

__all__ = ("Mutation", "NotApplied", "import_mutated")

PACKAGE = Path(__file__).parent.parent.parent.parent / "aiokafkawire"


class NotApplied(Exception):
    """The code to replace is not in its module, or is there several times."""


@attrs.frozen
class Mutation:
    """Source code of a module of the client, and what takes its place. The run of `scenario` must fail then."""

    name: str
    guarantee: str
    """What no longer holds."""
    module: str
    """The module's name in the package, such as ``producer.batch``."""
    before: str
    after: str
    scenario: str
    """The scenario of the simulation in which the guarantee matters."""

    @property
    def path(self) -> Path:
        """The module's file."""
        return PACKAGE.joinpath(*self.module.split(".")).with_suffix(".py")

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables of the process that runs it: a module that has a compiled twin must be chosen."""
        twins = {"protocol": "AIOKAFKAWIRE_MESSAGES"}
        package, _, module = self.module.rpartition(".")
        return {twins.get(package, "AIOKAFKAWIRE_RECORDS"): "pure"} if module.startswith("_pure") else {}

    def apply(self, source: str) -> str:
        """Return the module's source with the change.

        Raises:
            NotApplied: the code to replace does not occur once.
        """
        count = source.count(self.before)
        if count != 1:
            raise NotApplied(f"{self.name}: {self.before!r} occurs {count} times in {self.module}, and not once")
        return source.replace(self.before, self.after)

    def compile(self, path: Path) -> CodeType:
        """Return the code of the changed module. Raises as :meth:`apply`."""
        return compile(self.apply(path.read_text()), str(path), "exec", dont_inherit=True)


class _Loader(SourceFileLoader):
    def __init__(self, mutation: Mutation, fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self._mutation = mutation

    def get_code(self, fullname: str) -> CodeType:
        return self._mutation.compile(Path(self.path))


class _Finder(MetaPathFinder):
    def __init__(self, mutation: Mutation) -> None:
        self._mutation, self._name = mutation, f"aiokafkawire.{mutation.module}"

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = _Loader(self._mutation, fullname, spec.origin)
        return spec


def import_mutated(mutation: Mutation) -> None:
    """Let every later import of the mutation's module in this process load the changed one."""
    assert f"aiokafkawire.{mutation.module}" not in sys.modules, "the module was imported before"
    sys.meta_path.insert(0, _Finder(mutation))
