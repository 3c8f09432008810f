"""A clock that stands still until a test turns it."""


class TurnedClock:
    """Milliseconds since the epoch; starts at 2026-05-28T20:26:40Z."""

    def __init__(self, now_ms: int = 1_780_000_000_000) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms

    def forward(self, *, seconds: float) -> None:
        self.now_ms += round(seconds * 1000)
