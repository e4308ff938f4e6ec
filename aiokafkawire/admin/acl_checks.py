"""Checks of the ACLs and filters that users give to the admin."""

from typing import Final, TypeVar

from ..argument_checks import check_text, items_of, shown
from ..errors import UsageError
from ..protocol.acl_codes import AclOperation, AclPermissionType, PatternType, ResourceType
from .acl_bindings import AclBinding, AclBindingFilter, ResourcePattern

__all__ = ("checked_bindings", "checked_filter", "checked_filters")

T = TypeVar("T")

_BINDING: Final = "AclBinding(ResourcePattern.topic('orders'), 'User:alice', AclOperation.READ)"
_FILTER: Final = "AclBindingFilter(principal='User:alice')"


def checked_bindings(given: object) -> list[AclBinding]:
    """Return the ACLs to create, given as one or as a collection; raise UsageError unless brokers can store each."""
    bindings = _items("acls", given, AclBinding, _BINDING)
    for binding in bindings:
        _check_binding(binding)
    return bindings


def checked_filters(given: object) -> list[AclBindingFilter]:
    """Return filters, given as one or as a collection; raise UsageError unless brokers can use each."""
    return [checked_filter(one) for one in _items("filters", given, AclBindingFilter, _FILTER)]


def checked_filter(given: object) -> AclBindingFilter:
    """Return a filter; raise UsageError unless brokers can use it."""
    if not isinstance(given, AclBindingFilter):
        raise UsageError(f"a filter of ACLs must be like {_FILTER}, got {shown(given)}")
    _check_choice("resource_type of a filter", given.resource_type, ResourceType, ("UNKNOWN",))
    _check_choice("pattern_type of a filter", given.pattern_type, PatternType, ("UNKNOWN",))
    _check_choice("operation of a filter", given.operation, AclOperation, ("UNKNOWN",))
    _check_choice("permission_type of a filter", given.permission_type, AclPermissionType, ("UNKNOWN",))
    for name in ("resource_name", "host"):
        if getattr(given, name) is not None:
            check_text(f"{name} of a filter", getattr(given, name))
    if given.principal is not None:
        _check_principal(given.principal)
    return given


def _items(name: str, given: object, kind: type[T], example: str) -> list[T]:
    """Return one object or the objects of a collection; raise UsageError for anything else."""
    items = [given] if isinstance(given, kind) else items_of(name, given, f"[{example}]")
    for item in items:
        if not isinstance(item, kind):
            raise UsageError(f"{name} must be like [{example}]; got {shown(item)}")
    return items


def _check_binding(binding: AclBinding) -> None:
    """Raise UsageError unless brokers can store the ACL."""
    pattern = binding.pattern
    if not isinstance(pattern, ResourcePattern):
        raise UsageError(f"pattern must be like ResourcePattern.topic('orders'), got {shown(pattern)}")
    _check_choice("type of a ResourcePattern", pattern.type, ResourceType, ("UNKNOWN", "ANY"))
    _check_choice("pattern_type of a ResourcePattern", pattern.pattern_type, PatternType, ("UNKNOWN", "ANY", "MATCH"))
    check_text("name of a ResourcePattern", pattern.name)
    _check_principal(binding.principal)
    check_text("host of an AclBinding", binding.host)
    _check_choice("operation of an AclBinding", binding.operation, AclOperation, ("UNKNOWN", "ANY"))
    _check_choice("permission_type of an AclBinding", binding.permission_type, AclPermissionType, ("UNKNOWN", "ANY"))


def _check_principal(given: object) -> None:
    check_text("principal", given)
    assert isinstance(given, str)
    if ":" not in given:
        raise UsageError(f"principal must be a type and a name such as 'User:alice', got {shown(given)}")


def _check_choice(
    name: str,
    given: object,
    kind: type[ResourceType | PatternType | AclOperation | AclPermissionType],
    unusable: tuple[str, ...],
) -> None:
    """Raise UsageError unless the value is a member of the enumeration, and none of ``unusable``."""
    if not isinstance(given, kind) or given.name in unusable:
        known = ", ".join(member.name for member in kind if member.name not in unusable)
        raise UsageError(f"{name} must be one of {kind.__name__}: {known}; got {shown(given)}")
