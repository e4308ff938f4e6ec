"""Object stores through fsspec: Amazon S3, Google Cloud Storage, Azure, local files, memory and others."""

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

try:
    from fsspec.core import url_to_fs
except ImportError as _missing:
    raise ImportError("FsspecStore needs fsspec: pip install 'aiokafkawire[claim-check]'") from _missing

from ..argument_checks import check_text
from ..errors import UsageError

__all__ = ("FsspecStore",)


class FsspecStore:
    """A folder of a file system of fsspec as an object store.

    Args:
        url: the folder, such as ``"s3://bucket/folder"``, ``"file:///var/lib/orders"`` or ``"memory://tests"``.
        storage_options: the options of fsspec's file system, such as ``key`` and ``secret`` of s3fs.

    Raises:
        UsageError: the URL is wrong.
        ImportError: the library of this kind of URL is not installed; the message names it.
    """

    def __init__(self, url: str, **storage_options: Any) -> None:
        check_text("url", url)
        try:
            self._fs, root = url_to_fs(url, **storage_options)
        except (ValueError, TypeError) as error:
            raise UsageError(f"fsspec cannot open {_without_login(url)!r}: {error}") from error
        self._root = root.rstrip("/")
        self._url = _without_login(url)
        if "file" in ((self._fs.protocol,) if isinstance(self._fs.protocol, str) else self._fs.protocol):
            self._fs.auto_mkdir = True

    def __repr__(self) -> str:
        return f"<FsspecStore {self._url}>"

    def write(self, key: str, data: bytes) -> None:
        """Store an object, in folders that are made if they are needed, as by SFTP.

        Raises:
            FileNotFoundError: the store itself is not there.
        """
        path = self._path(key)
        try:
            self._fs.pipe_file(path, data)
        except FileNotFoundError:
            if not self._fs.isdir(self._root):
                raise
            self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._fs.pipe_file(path, data)

    def read(self, key: str, limit: int) -> bytes:
        """Return the first ``limit`` bytes of an object, or all if it has less.

        Raises:
            FileNotFoundError: there is no such object.
        """
        data: bytes = self._fs.cat_file(self._path(key), start=0, end=limit)
        return data

    def names(self, folder: str) -> Iterable[str]:
        """Return the names in a folder, without those in folders below; none if it is an object, or is not there."""
        path = self._path(folder)
        self._fs.invalidate_cache(path)
        try:
            found = self._fs.ls(path, detail=False)
        except (FileNotFoundError, NotADirectoryError):
            return []
        names = [name.rstrip("/") for name in found]
        return [name.rpartition("/")[2] for name in names if name != path]  # fsspec lists an object as itself

    def delete(self, key: str) -> None:
        """Delete an object; ignore one that is not there."""
        with suppress(FileNotFoundError):
            self._fs.rm_file(self._path(key))

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}" if key else self._root


def _without_login(url: str) -> str:
    """Return a URL without the name and password before its host, as in ``sftp://me:secret@host/folder``."""
    return re.sub(r"(?<=://)[^/]*@", "", url)
