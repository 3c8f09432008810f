"""What the suite searches: five closed sessions of Ann's, one of them with Ben, and two that are still open.

The word "note" stands in every message of a user, so that a search for it finds every episode.
"""

from collections.abc import Callable

from memory_gateway.engine.schemas import AddRequest, Caller, FlushRequest, FunctionCall, Message, ToolCall
from memory_gateway.upstream.port import Upstream

APP = "conformance"
OPEN_APP = "conformance-open"
ANN = Caller(user_id="ann")
EVE = Caller(user_id="eve")

DAY = 86_400_000
START = 1_780_000_000_000  # 2026-05-28T20:26:40Z

# When each session's last message was sent, which is its episode's time.
ENDS = {
    "chat:tea": START + 1_000,
    "chat:falcon": START + DAY + 1_000,
    "chat:group": START + 2 * DAY + 2_000,
    "chat:late": START + 3 * DAY,
    "chat:tools": START + 4 * DAY + 9_000,
}
SESSIONS = frozenset(ENDS)
NEWEST_FIRST = ["chat:tools", "chat:late", "chat:group", "chat:falcon", "chat:tea"]


def user(text: str, at: int, sender: str = "ann", name: str | None = None) -> Message:
    return Message(sender, "user", at, text, name)


def bot(text: str, at: int, calls: list[ToolCall] | None = None) -> Message:
    return Message("bot", "assistant", at, text, tool_calls=calls)


def call(number: int, name: str, arguments: str) -> list[ToolCall]:
    return [ToolCall(f"call_{number}", FunctionCall(name, arguments))]


def outcome(number: int, text: str, at: int) -> Message:
    return Message("tool-runner", "tool", at, text, tool_call_id=f"call_{number}")


TEA = (
    user("Note: I prefer green tea and I never drink coffee after lunch.", START, name="Ann"),
    bot("Noted: green tea, no coffee after lunch.", ENDS["chat:tea"]),
)
FALCON = (
    user("Note: the falcon service moves to the Lisbon data centre on 12 June.", START + DAY),
    bot("I will remember the Lisbon migration date.", ENDS["chat:falcon"]),
)
GROUP = (
    user("Note: let us meet on Monday about the budget.", START + 2 * DAY),
    user("Monday at nine works for the budget note.", START + 2 * DAY + 1_000, sender="ben"),
    bot("Meeting on Monday at nine.", ENDS["chat:group"]),
)
LATE = (user("Note: the heron gateway listens on port 9000. 茶在厨房。", ENDS["chat:late"]),)
TOOLS = (
    user("Note: the falcon API returns 502 errors, please find the cause and fix it.", START + 4 * DAY),
    bot("Step 1", START + 4 * DAY + 1_000, call(0, "read_logs", '{"service":"falcon"}')),
    outcome(0, "upstream timeout to queue worker", START + 4 * DAY + 2_000),
    bot("Step 2", START + 4 * DAY + 3_000, call(1, "check_config", '{"file":"worker.toml"}')),
    outcome(1, "max_connections = 1", START + 4 * DAY + 4_000),
    bot("Step 3", START + 4 * DAY + 5_000, call(2, "edit_config", '{"max_connections":50}')),
    outcome(2, "saved", START + 4 * DAY + 6_000),
    bot("Fixed: raised max_connections to 50, the 502 errors are gone.", ENDS["chat:tools"]),
)
OPEN = (
    user("Note: the kettle is broken.", START, name="Ann"),
    bot("I will look for a repair shop.", START + 1_000, call(7, "find_shop", '{"near":"office"}')),
    outcome(7, "Kettle Clinic, 2 km", START + 2_000),
)
CLOSED = {"chat:tea": TEA, "chat:falcon": FALCON, "chat:group": GROUP, "chat:late": LATE, "chat:tools": TOOLS}


async def seed(upstream: Upstream, settle: Callable[[], None] = lambda: None) -> None:
    """``settle`` waits where indexing takes its time: EverOS makes a profile of what it has indexed before."""
    for session, messages in CLOSED.items():
        await upstream.add(AddRequest(session, messages, APP), ANN)
        await upstream.flush(FlushRequest(session, APP), ANN)
        settle()
    await upstream.add(AddRequest("chat:open", OPEN, OPEN_APP), ANN)
