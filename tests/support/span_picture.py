"""The picture of spans in docs/opentelemetry.md: `python -m support.span_picture`, in tests, draws a real run's."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

import anyio
from opentelemetry.sdk.trace import ReadableSpan
from support.collected import Collected, linked, parent_id, span_id

from aiokafkawire import Client
from aiokafkawire.opentelemetry import instrument, process_span
from aiokafkawire.testing.broker import Broker

PICTURE: Final = Path(__file__).parent.parent.parent / "docs" / "plots" / "spans.svg"
_COLORS: Final = {"send": "#2a78b8", "poll": "#8a6fb0", "process": "#2f8f5b"}
_WIDTH: Final = 900
_BAR_AT: Final = 300
_ROW: Final = 34


async def run() -> list[ReadableSpan]:
    """Return the spans of a service that handles a request, and of one that bills the order."""
    collected = Collected()
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        broker.create_topic("orders", partitions=1)
        broker.create_topic("invoices", partitions=1)
        instrument(kafka, collected.tracers, collected.meters)
        reads = kafka.consumer("orders", auto_offset_reset="earliest")
        async with kafka.producer() as producer, reads as consumer:
            await producer.partitions_for("orders")
            await producer.partitions_for("invoices")
            with collected.tracer.start_as_current_span("POST /orders"):
                await anyio.sleep(0.002)
                await producer.send("orders", b"an order", key=b"42")
                await anyio.sleep(0.001)
            (record,) = await consumer.poll()
            with process_span(record, tracer_provider=collected.tracers):
                with collected.tracer.start_as_current_span("UPDATE accounts"):
                    await anyio.sleep(0.003)
                await producer.send("invoices", b"an invoice", key=b"42")
    return collected.spans()


def draw(spans: list[ReadableSpan]) -> str:
    """Return the spans as an SVG, each below its parent."""
    rows = list(_rows(spans, None, 0))
    first = min(span.start_time or 0 for span in spans)
    length = max(span.end_time or 0 for span in spans) - first
    scale = (_WIDTH - _BAR_AT - 170) / length
    height = _ROW * len(rows) + 20
    place = {span_id(span): (row, depth) for row, (span, depth) in enumerate(rows)}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"',
        'font-family="sans-serif" font-size="14">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for row, (span, depth) in enumerate(rows):
        top, left = 10 + row * _ROW, 16 + depth * 22
        began = _BAR_AT + ((span.start_time or 0) - first) * scale
        width = max(2.0, ((span.end_time or 0) - (span.start_time or 0)) * scale)
        color = _COLORS.get(span.name.split()[0], "#6b7280")
        if span.parent is not None and span.parent.span_id in place:
            above, depth_above = place[span.parent.span_id]
            corner = 22 + depth_above * 22
            parts.append(
                f'<path d="M{corner} {10 + above * _ROW + 24} V{top + 14} H{left - 3}" fill="none" stroke="#9ca3af"/>'
            )
        links = " (linked)" if linked(span) else ""
        milliseconds = ((span.end_time or 0) - (span.start_time or 0)) / 1e6
        kind = span.kind.name.lower()
        parts += [
            f'<text x="{left}" y="{top + 19}" fill="#111827">{escape(span.name)}</text>',
            f'<rect x="{began:.1f}" y="{top + 5}" width="{width:.1f}" height="18" rx="3" fill="{color}"/>',
            f'<text x="{began + width + 6:.1f}" y="{top + 19}" font-size="12" fill="#374151">',
            f"{milliseconds:.1f} ms, {kind}{links}</text>",
        ]
    parts.append("</svg>\n")
    return "\n".join(parts)


def _rows(spans: list[ReadableSpan], parent: int | None, depth: int) -> list[tuple[ReadableSpan, int]]:
    found = []
    for span in sorted(spans, key=lambda each: each.start_time or 0):
        if parent_id(span) == parent:
            found.append((span, depth))
            found += _rows(spans, span_id(span), depth + 1)
    return found


if __name__ == "__main__":
    PICTURE.write_text(draw(anyio.run(run)))
