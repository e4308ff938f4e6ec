"""Benchmarks of aiokafkawire beside its peers; see README.md."""

import sys
from pathlib import Path

# The Kafka that is booted for a run is the tests' own: tests/support/apache_kafka.py.
sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
