"""The files that ship with the demo, and its conversation with real times."""

import base64
from datetime import UTC, datetime, time, timedelta
from importlib.resources import files
from typing import Any

import msgspec

from memory_gateway.kit.clock import Clock

Wire = dict[str, Any]


def sample(name: str) -> bytes:
    """One file of ``demo/samples``."""
    return files("memory_gateway.demo").joinpath("samples", name).read_bytes()


def conversation(clock: Clock) -> list[Wire]:
    """The sample conversation as messages for ``POST /memories/add``.

    In the sample ``day`` counts back from today, ``time`` is UTC, and an item's ``file`` names a sample.
    """
    today = datetime.fromtimestamp(clock() / 1000, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return [_message(written, today) for written in msgspec.json.decode(sample("conversation.json"))]


def _message(written: Wire, today: datetime) -> Wire:
    message = {name: value for name, value in written.items() if name not in {"day", "time"}}
    at = time.fromisoformat(written["time"])
    moment = today + timedelta(days=written["day"], hours=at.hour, minutes=at.minute)
    message["timestamp"] = round(moment.timestamp() * 1000)
    if isinstance(message["content"], list):
        message["content"] = [_item(item) for item in message["content"]]
    return message


def _item(item: Wire) -> Wire:
    if "file" not in item:
        return item
    item = dict(item)
    name = item.pop("file")
    return {**item, "base64": base64.b64encode(sample(name)).decode(), "ext": name.rpartition(".")[2]}
