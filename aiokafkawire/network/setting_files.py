"""Reads the files that settings name."""

from typing import Final

from ..config.security import FilePath
from ..errors import ConfigError

__all__ = ("read_setting_file",)

_MAX_FILE: Final = 16 * 1024 * 1024


def read_setting_file(setting: str, location: FilePath) -> bytes:
    """Return the content of the file that the setting names; block.

    Raises:
        ConfigError: the file cannot be read, or is larger than 16 MiB; the message names the setting and the file.
    """
    try:
        with open(location, "rb") as file:
            data = file.read(_MAX_FILE + 1)
    except OSError as error:
        raise ConfigError(f"{setting} {location!r} cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a NUL in the name
        raise ConfigError(f"{setting} {location!r} cannot be read: {error}") from None
    if len(data) > _MAX_FILE:
        raise ConfigError(f"{setting} {location!r} is larger than {_MAX_FILE} bytes: is it the right file?")
    return data
