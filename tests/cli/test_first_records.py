"""The programs of docs/first-records.md do what the page says."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

from support.patience import PATIENCE

from aiokafkawire.testing import BackgroundBroker

PAGE = Path(__file__).parents[2] / "docs" / "first-records.md"


def programs(bootstrap: str) -> list[str]:
    """The programs of the page, at another broker."""
    found = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return [program.replace("localhost:9092", bootstrap) for program in found]


def test_records_are_sent_and_read() -> None:
    with BackgroundBroker() as broker:
        broker.create_topic("orders", partitions=3)
        send, read = programs(broker.bootstrap)
        printed = [
            subprocess.run([sys.executable, "-c", send], check=True, capture_output=True, text=True).stdout
            for _ in range(2)
        ]
        assert all(re.match(r"(order \d is at offset \d+ of partition [0-2]\n){10}$", lines) for lines in printed)
        assert "".join(printed[0].splitlines(keepends=True)[:3]) in PAGE.read_text()
        reading = subprocess.Popen(
            [sys.executable, "-u", "-c", read], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert reading.stdout is not None
        try:
            lines = [reading.stdout.readline() for _ in range(20)]
        finally:
            reading.send_signal(signal.SIGINT)
            _, errors = reading.communicate(timeout=PATIENCE)
    assert (reading.returncode, errors) == (0, "")
    values = [line.partition(" b'order ")[2] for line in lines]
    assert sorted(values) == sorted(f"{number}'\n" for number in range(10) for _ in "12")
