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


def embedder_of(settings: Settings, model: str, dimensions: int) -> Embedder | None:
    """One for a model that vectors were stored of, whatever the settings ask for now; None where it cannot be had.

    A local model if its packages or its built folder are there, else a model of the same endpoint. Loads nothing. An
    endpoint may answer to a name that it does not know: whoever asks it for vectors compares one.
    """
    if not _missing(local_model.PACKAGES) and _is_built_from_the_package(model):
        return CachedQueries(_built(settings.data_dir))
    folder = settings.data_dir / "models" / Path(model).name
    if not _missing(_RUNTIME_PACKAGES) and _is_model_folder(folder, model):
        return CachedQueries(_from_folder(folder))
    if settings.embedder == "openai" and settings.embedder_url:
        name = model.removesuffix(f"@{dimensions}")
        asked = dimensions if name != model else None
        return CachedQueries(_endpoint(settings, settings.embedder_url, name, asked))
    return None


def _is_built_from_the_package(model: str) -> bool:
    try:
        return model == local_model.model_name()
    except EmbeddingUnavailable:
        return False


def _is_model_folder(folder: Path, model: str) -> bool:
    try:
        return read_card(folder).model == model
    except (OSError, msgspec.MsgspecError):
        return False


def _openai(settings: Settings) -> Embedder:
    if not settings.embedder_url:
        raise SettingsError("settings: embedder = openai needs embedder_url")
    if not settings.embedder_model:
        raise SettingsError("settings: embedder = openai needs embedder_model")
    return _endpoint(settings, settings.embedder_url, settings.embedder_model, settings.embedder_dim)


def _endpoint(settings: Settings, url: str, model: str, dimensions: int | None) -> Embedder:
    from memory_gateway.embeddings.openai import OpenAIEmbedder  # noqa: PLC0415 - the others need no HTTP client

    return OpenAIEmbedder(url=url, model=model, key=settings.embedder_key, dimensions=dimensions)


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
