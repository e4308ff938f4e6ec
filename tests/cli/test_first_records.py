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
        send, read = programs(broker.bootstrap)
        for _ in range(2):  # the topic exists the second time
            sent = subprocess.run([sys.executable, "-c", send], check=True, capture_output=True, text=True)
            assert len(re.findall(r"^order \d is at offset \d+ of partition [0-2]$", sent.stdout, re.MULTILINE)) == 10
        reading = subprocess.Popen([sys.executable, "-u", "-c", read], stdout=subprocess.PIPE, text=True)
        assert reading.stdout is not None
        try:
            lines = [reading.stdout.readline() for _ in range(20)]
        finally:
            reading.send_signal(signal.SIGINT)
            reading.communicate(timeout=PATIENCE)
    assert sorted(line.split(None, 3)[3] for line in lines) == sorted(
        f"b'order {n}'\n" for n in range(10) for _ in "12"
    )
