"""What an attachment is called: the name by which a search finds it again."""

from urllib.parse import unquote, urlsplit

from memory_gateway.engine.schemas import ContentItem
from memory_gateway.kit.files import safe_name

_PLAIN = "attachment"


def attachment_name(item: ContentItem) -> str:
    """The item's own name as given; else a safe one from the URI's path; else ``attachment.{ext}``."""
    if item.name and item.name.strip():
        return item.name
    if item.uri and (segment := _last_segment(item.uri)):
        return safe_name(segment, _PLAIN)
    return safe_name(f"{_PLAIN}.{item.ext.lstrip('.')}" if item.ext else _PLAIN, _PLAIN)


def _last_segment(uri: str) -> str:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    return "" if parts.scheme == "data" else unquote(parts.path).rstrip("/").rpartition("/")[2]
