"""Deletes the objects that have expired."""

from ..runtime import system_wall_ms
from .object_store import ObjectStore
from .references import expired_folder, expires_ms_of

__all__ = ("delete_expired",)


def delete_expired(store: ObjectStore) -> int:
    """Delete the objects of claim checks that have expired; return their number.

    Records that refer to them can no longer be read. The function blocks: call it in a program of its own, or with
    ``anyio.to_thread.run_sync``. Objects that do not expire, and others in the store, stay.

    Raises:
        Exception: the store has failed; the call can be repeated.
    """
    now_ms, count = system_wall_ms(), 0
    # The names are lists, since a store may look for the next one while objects are deleted.
    for topic in list(store.names("")):
        for folder in list(store.names(topic)):
            if not expired_folder(folder, now_ms):
                continue
            for name in list(store.names(f"{topic}/{folder}")):
                key = f"{topic}/{folder}/{name}"
                expires_ms = expires_ms_of(key)
                if expires_ms is not None and expires_ms <= now_ms:
                    store.delete(key)
                    count += 1
    return count
