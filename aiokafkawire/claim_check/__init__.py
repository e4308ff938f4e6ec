"""Large values in an object store: records have a reference instead of the value."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from .._lazy_exports import lazy_exports

if TYPE_CHECKING:
    from .expired_objects import delete_expired
    from .fsspec_store import FsspecStore
    from .object_store import ObjectStore
    from .serializers import ClaimCheckDeserializer, ClaimCheckSerializer

__all__ = ("ClaimCheckDeserializer", "ClaimCheckSerializer", "FsspecStore", "ObjectStore", "delete_expired")

# fsspec is needed only where FsspecStore is used.
_MODULES = {
    "ClaimCheckDeserializer": ".serializers",
    "ClaimCheckSerializer": ".serializers",
    "FsspecStore": ".fsspec_store",
    "ObjectStore": ".object_store",
    "delete_expired": ".expired_objects",
}
__getattr__: Callable[[str], object] = lazy_exports(__name__, _MODULES)
