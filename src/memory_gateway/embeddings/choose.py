"""Which embedder the settings ask for."""

import importlib.util
from functools import partial
from pathlib import Path

import msgspec

from memory_gateway.embeddings import local_model
from memory_gateway.embeddings.cached import CachedQueries
from memory_gateway.embeddings.local import LocalEmbedder
from memory_gateway.embeddings.model_card import read_card
from memory_gateway.embeddings.port import Embedder
from memory_gateway.kit.errors import EmbeddingUnavailable
from memory_gateway.settings import Settings, SettingsError

EXTRA = "local-embedder"
_RUNTIME_PACKAGES = ("onnxruntime", "sentencepiece")


def choose_embedder(settings: Settings) -> Embedder | None:
    """None where there is none. Loads nothing: the model or the server is touched at first use.

    With ``embedder = "local"``, ``embedder_model`` may name a folder with a built model; else it is built once into
    ``data_dir/models``. Raises `SettingsError` naming what is missing.
    """
    match settings.embedder:
        case "none":
            return None
        case "openai":
            return CachedQueries(_openai(settings))
        case "local" if settings.embedder_model:
            return CachedQueries(_from_folder(Path(settings.embedder_model)))
        case "local":
            return CachedQueries(_built(settings.data_dir))
        case "auto":
            return None if _missing(local_model.PACKAGES) else CachedQueries(_built(settings.data_dir))


def _openai(settings: Settings) -> Embedder:
    from memory_gateway.embeddings.openai import OpenAIEmbedder  # noqa: PLC0415 - the others need no HTTP client

    if not settings.embedder_url:
        raise SettingsError("settings: embedder = openai needs embedder_url")
    if not settings.embedder_model:
        raise SettingsError("settings: embedder = openai needs embedder_model")
    return OpenAIEmbedder(
        url=settings.embedder_url,
        model=settings.embedder_model,
        key=settings.embedder_key,
        dimensions=settings.embedder_dim,
    )


def _from_folder(folder: Path) -> Embedder:
    _require(_RUNTIME_PACKAGES)
    try:
        card = read_card(folder)
    except (OSError, msgspec.MsgspecError) as error:
        raise SettingsError("settings: embedder_model names no folder with a built model") from error
    return LocalEmbedder(lambda: folder, model=card.model, dimensions=card.dimensions)


def _built(data_dir: Path) -> Embedder:
    _require(local_model.PACKAGES)
    try:
        name = local_model.model_name()
    except EmbeddingUnavailable as error:
        raise SettingsError(f"settings: embedder: {error.message}") from error
    folder = partial(local_model.ensure_built, data_dir / "models")
    return LocalEmbedder(folder, model=name, dimensions=local_model.DIMENSIONS)


def _require(packages: tuple[str, ...]) -> None:
    if missing := _missing(packages):
        raise SettingsError(
            f"settings: embedder = local needs the package {missing[0]}; install memory-gateway[{EXTRA}]"
        )


def _missing(packages: tuple[str, ...]) -> list[str]:
    return [package for package in packages if importlib.util.find_spec(package) is None]
