"""Memory Gateway: a self-hosted, many-user memory backend for agents and chat applications."""

from importlib.metadata import version

__version__ = version("memory-gateway")
