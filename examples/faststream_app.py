"""A FastStream application that bills orders, on the in-process broker or on your own.

python examples/faststream_app.py
python examples/faststream_app.py localhost:9092
"""

import asyncio
import sys

from faststream import AckPolicy

from aiokafkawire.faststream import KafkaBroker
from aiokafkawire.testing import Broker


async def run(servers: str) -> None:
    """Send three orders, and print their invoices."""
    broker, billed = KafkaBroker(servers), asyncio.Semaphore(0)

    @broker.subscriber("orders", group_id="billing", auto_offset_reset="earliest", ack_policy=AckPolicy.NACK_ON_ERROR)
    @broker.publisher("invoices")
    async def bill(order: dict[str, int]) -> dict[str, int]:
        return {"number": order["number"], "cents": order["amount"] * 100}

    # With the default policy, ACK_FIRST, an invoice whose handler fails would not be mailed again.
    @broker.subscriber("invoices", group_id="mail", auto_offset_reset="earliest", ack_policy=AckPolicy.NACK_ON_ERROR)
    async def mail(invoice: dict[str, int]) -> None:
        print(f"invoice {invoice['number']}: {invoice['cents']} cents")
        billed.release()

    async with broker:
        await broker.start()
        for number in (1, 2, 3):
            await broker.publish({"number": number, "amount": number * 5}, "orders", key=b"ann")
        for _ in range(3):
            await billed.acquire()


async def main() -> None:
    if len(sys.argv) > 1:
        await run(sys.argv[1])
    else:
        async with Broker() as cluster:
            await run(cluster.bootstrap)


if __name__ == "__main__":
    asyncio.run(main())
