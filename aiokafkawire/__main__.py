"""Runs the ``aiokafkawire`` command for ``python -m aiokafkawire``."""

from .cli.main import run

if __name__ == "__main__":
    run()
