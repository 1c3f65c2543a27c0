"""Stock statistics: count, lowest and average price of each stock, in windows of five seconds."""

import random

from stage import Stage, latest, topology_of

BEGIN = 1_773_316_800_000

with Stage(__doc__) as stage:
    stage.topics("trades", "stock-statistics")
    stage.streams(topology_of("stock_statistics"), "stock-statistics")
    random.seed(7)
    seconds = 12 if stage.short else 120
    prices = {"MOLD": 10_000, "VLTV": 25_000}
    trades: list[tuple[str, int, int]] = []
    stage.fact("trades", lambda: len(trades))
    for second in range(seconds):
        for stock in prices:
            prices[stock] += random.randint(-50, 50)
            trades.append((stock, BEGIN + second * 1000, prices[stock]))
    for stock, time_ms, price in trades:
        stage.send("trades", stock, {"price": price}, timestamp=time_ms)
    stage.producer.flush()

    def window(stock: str, start: int) -> dict[str, int]:
        inside = [
            price for name, at, price in trades if name == stock and start <= at < start + 5000
        ]
        average = sum(inside) // len(inside)
        return {"start": start, "trades": len(inside), "lowest": min(inside), "average": average}

    expected = [
        window(stock, BEGIN + second * 1000) for stock in prices for second in range(seconds)
    ]
    found: dict[tuple[str, int], dict[str, int]] = {}

    def complete() -> bool:
        rows = stage.read("stock-statistics")
        found.update(latest(((stock, row["start"]), row) for stock, row in rows))
        return all(row in found.values() for row in expected)

    stage.fact("windows", lambda: len(found))
    stage.until(complete, "all windows are final")
    stage.check("every window has the right count, lowest and average price", complete())
