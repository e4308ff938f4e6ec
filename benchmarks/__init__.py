"""Benchmarks of aiokafkawire and its peers; see README.md."""

import sys
from pathlib import Path

# A run boots Kafka with the tests' own code: tests/support/apache_kafka.py.
sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
