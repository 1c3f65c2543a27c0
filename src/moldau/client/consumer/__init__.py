"""The consumer: `Consumer` for threads, `AsyncConsumer` for asyncio."""
