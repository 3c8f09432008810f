"""Bytes to text, by libraries that do it well, in processes that may die of it."""

from memory_gateway.documents.extract import Extraction, Extractor
from memory_gateway.documents.sniff import HEAD_BYTES, ContentType, Sniffed, sniff

__all__ = ["HEAD_BYTES", "ContentType", "Extraction", "Extractor", "Sniffed", "sniff"]
