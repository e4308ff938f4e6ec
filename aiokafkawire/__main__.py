"""Runs the ``aiokafkawire`` command for ``python -m aiokafkawire``."""

import sys

from .cli.main import main

if __name__ == "__main__":
    sys.exit(main())
