"""Fails unless the compiled modules that are imported are those that the sanitizers were built into."""

import sys
from importlib import import_module
from pathlib import Path

MODULES = ("records", "protocol", "network", "producer", "consumer", "share")


def main() -> int:
    """Print each compiled module; return 1 if one does not report to AddressSanitizer and UBSan."""
    plain = False
    for room in MODULES:
        file = import_module(f"aiokafkawire.{room}._hot").__file__
        assert file is not None
        code = Path(file).read_bytes()
        checked = b"__asan_report" in code and b"__ubsan_handle" in code
        print(f"{file}: {'sanitized' if checked else 'NOT SANITIZED'}")
        plain = plain or not checked
    return 1 if plain else 0


if __name__ == "__main__":
    sys.exit(main())
