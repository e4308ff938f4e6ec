"""The measured program, traced by opentelemetry-instrumentation-aiokafka."""

from opentelemetry.instrumentation.aiokafka import AIOKafkaInstrumentor
from opentelemetry.sdk.trace import TracerProvider

from benchmarks.clients import aiokafka_peer


def main() -> None:
    """Run the program with spans that are recorded, and not exported."""
    AIOKafkaInstrumentor().instrument(tracer_provider=TracerProvider())
    aiokafka_peer.main()


if __name__ == "__main__":
    main()
