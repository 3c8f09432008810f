"""What a model folder says of itself, readable without loading the model."""

from pathlib import Path

import msgspec

GRAPH_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.model"
CARD_FILE = "card.json"


class ModelCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``normalise`` maps single characters before tokenizing; ``max_tokens`` counts begin and end."""

    model: str
    dimensions: int
    max_tokens: int
    begin: int
    end: int
    query_prefix: str
    passage_prefix: str
    normalise: dict[str, str]


def read_card(folder: Path) -> ModelCard:
    """Raises `OSError` or `msgspec.MsgspecError` when the folder is no model folder."""
    return msgspec.json.decode((folder / CARD_FILE).read_bytes(), type=ModelCard)


def write_card(folder: Path, card: ModelCard) -> None:
    (folder / CARD_FILE).write_bytes(msgspec.json.encode(card))
