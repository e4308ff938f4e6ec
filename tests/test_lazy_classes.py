"""Classes that attrs completes on first use: whatever touches them first, they are as attrs makes them."""

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import attrs
import pytest

from aiokafkawire import _lazy_classes


@attrs.frozen
class Eager:
    """A point."""

    ORIGIN: ClassVar[str] = "middle"

    x: int
    y: list[int] = attrs.field(factory=list, hash=False)

    @property
    def double(self) -> int:
        return 2 * self.x


def _body() -> type:
    """The same body for every test, in a class of its own that nothing has completed."""
    names = {"__doc__", "ORIGIN", "double", "__module__"}
    namespace: dict[str, Any] = {name: value for name, value in vars(Eager).items() if name in names}
    namespace["__annotations__"] = dict(Eager.__annotations__)
    namespace["y"] = attrs.field(factory=list, hash=False)
    return type("Eager", (), namespace)


def lazy(**options: bool) -> Any:
    make: Any = _lazy_classes.frozen
    return make(**options)(_body()) if options else make(_body())


def changeable(**options: bool) -> Any:
    make: Any = _lazy_classes.define
    return make(**options)(_body()) if options else make(_body())


def is_complete(cls: type) -> bool:
    return not any(isinstance(value, _lazy_classes._LazyAttribute) for value in vars(cls).values())


FIRST_USES: list[Callable[[Any], Any]] = [
    lambda cls: repr(cls(3)),
    lambda cls: repr(cls(3, [1])),
    lambda cls: cls(x=1).y,
    lambda cls: cls(1) == cls(1),
    lambda cls: cls(1) != cls(1),
    lambda cls: hash(cls(1)) == hash(cls(1)),
    lambda cls: cls(2).double,
    lambda cls: str(inspect.signature(cls)),
    lambda cls: [field.name for field in attrs.fields(cls)],
    lambda cls: attrs.has(cls),
    lambda cls: attrs.asdict(cls(1)),
    lambda cls: repr(attrs.evolve(cls(1), x=2)),
    lambda cls: cls.__match_args__,
    lambda cls: repr(copy.copy(cls(4))),
    lambda cls: cls.__slots__,
    lambda cls: cls.__doc__,
    lambda cls: cls.ORIGIN,
    lambda cls: hasattr(cls(1), "__dict__"),
    lambda cls: cls.__new__(cls) == 1,
]


@pytest.mark.parametrize("use", FIRST_USES)
def test_the_first_use_finds_what_attrs_makes(use: Callable[[Any], Any]) -> None:
    assert use(lazy()) == use(Eager)


def test_a_class_is_completed_by_its_first_use_and_no_earlier() -> None:
    cls = lazy()
    assert not is_complete(cls)
    assert vars(cls)["__init__"].__class__ is _lazy_classes._LazyAttribute
    cls(1)
    assert is_complete(cls)
    assert vars(cls).keys() ^ vars(Eager).keys() <= _OF_ATTRS_ALONE | _OF_THE_BODY


def test_a_method_is_bound_to_what_it_is_looked_up_for() -> None:
    cls = lazy()
    assert vars(cls)["__init__"].__get__(cls, type).__self__ is cls  # as inspect.signature of CPython 3.14 does


_OF_ATTRS_ALONE = {"__attrs_base_of_slotted__", "__attrs_own_setattr__"}
_OF_THE_BODY = {
    *("__annotations__", "__annotate_func__", "__annotations_cache__"),
    *("__firstlineno__", "__static_attributes__"),
}
"""What CPython 3.13 and 3.14 note of a class's body."""


def test_an_instance_made_without_its_method_does_not_change_either() -> None:
    cls = lazy()
    one = cls.__new__(cls)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        one.x = 3


def test_a_base_gives_its_fields_and_is_not_completed() -> None:
    base = lazy()
    cls: Any = _lazy_classes.frozen(
        type("Derived", (base,), {"__annotations__": {"z": int}, "z": attrs.field(default=7)})
    )
    assert repr(cls(1, [2])) == "Derived(x=1, y=[2], z=7)"
    assert [field.name for field in attrs.fields(cls)] == ["x", "y", "z"]
    assert vars(cls)["__slots__"] == ("z",)
    assert is_complete(cls)
    assert not is_complete(base)
    assert (cls(1, z=2).double, cls(1) == cls(1), cls(1) == base(1)) == (2, True, False)
    assert is_complete(base)
    assert repr(base(1)) == "Eager(x=1, y=[])"


def test_a_class_inherits_from_one_that_is_complete() -> None:
    base = lazy()
    assert attrs.fields(base).x.name == "x"
    derived: Any = _lazy_classes.frozen(type("Derived", (base,), {"__annotations__": {"z": int}, "z": 3}))
    assert repr(derived(1)) == "Derived(x=1, y=[], z=3)"
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        derived(1).z = 4


@pytest.mark.parametrize("change", [lambda one: setattr(one, "x", 2), lambda one: delattr(one, "x")])
def test_frozen_instances_do_not_change(change: Callable[[Any], None]) -> None:
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        change(lazy()(1))


def test_defined_classes_change_and_have_no_hash() -> None:
    cls = changeable()
    assert cls.__hash__ is None
    one = cls(1)
    one.x = 5
    assert one == cls(5)
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_classes_that_do_not_compare_are_equal_only_to_themselves() -> None:
    cls = changeable(eq=False)
    one = cls(1)
    assert one == one
    assert one != cls(1)
    assert hash(one) == object.__hash__(one)


def test_wrong_arguments_are_refused_on_the_first_use_too() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        lazy()()
    with pytest.raises(TypeError, match="positional"):
        lazy(kw_only=True)(1)


def test_weak_references_are_possible_unless_they_are_left_out() -> None:
    assert "__weakref__" in vars(lazy())
    assert "__weakref__" not in vars(lazy(weakref_slot=False))


@_lazy_classes.frozen
class Named:
    """A class that pickle finds by its name."""

    x: int


def test_instances_are_pickled() -> None:
    assert pickle.loads(pickle.dumps(Named(1))) == Named(1)


def test_methods_of_the_body_stay() -> None:
    @_lazy_classes.frozen
    class Shown:
        x: int

        def __repr__(self) -> str:
            return f"<{self.x}>"

    assert repr(Shown(1)) == "<1>"
    assert Shown(1) == Shown(1)
