"""The multilingual-e5-small encoder as an ONNX graph: token ids ``(1, n)`` in, one normalised vector out.

Word embeddings stay in their 4-bit blocks and are unpacked for the tokens at hand, exactly. The dense layers are
requantised to 7 bits a row and multiplied as integers: with 8 bits, processors without VNNI overflow in their 16-bit
sums and would give other vectors than those with it. Activations are quantised for a whole text at a time, so a text's
vector does not depend on its neighbours as long as each run holds one text.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from memory_gateway.embeddings.e5_weights import BLOCK, E5Weights

OPSET = 21
IR_VERSION = 10
_SEVEN_BITS = 63


class _Graph:
    """Collects nodes and constants; every method returns the name of its output."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}
        self._quantised: set[str] = set()

    def constant(self, name: str, value: NDArray[Any]) -> str:
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def node(self, kind: str, inputs: Sequence[str], output: str, *, domain: str = "", **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, list(inputs), [output], domain=domain, **attributes))
        return output

    def split(self, source: str, outputs: Sequence[str]) -> None:
        self.nodes.append(helper.make_node("Split", [source], list(outputs), axis=-1, num_outputs=len(outputs)))

    def dense(self, source: str, weights: NDArray[np.float32], bias: NDArray[np.float32], name: str) -> str:
        """``source @ weights.T + bias`` in integers, one scale a row of weights."""
        if source not in self._quantised:
            outputs = [f"{source}.{part}" for part in ("integers", "scale", "zero")]
            self.nodes.append(helper.make_node("DynamicQuantizeLinear", [source], outputs))
            self._quantised.add(source)
        scales = np.abs(weights).max(axis=1) / _SEVEN_BITS
        integers = np.rint(weights / scales[:, None]).astype(np.int8)
        factors = [self.constant(f"{name}.weights", integers.T), f"{source}.zero"]
        product = self.node("MatMulInteger", [f"{source}.integers", *factors], f"{name}.product")
        floats = self.node("Cast", [product], f"{name}.floats", to=TensorProto.FLOAT)
        row_scales = self.constant(f"{name}.scales", scales.astype(np.float32))
        scale = self.node("Mul", [f"{source}.scale", row_scales], f"{name}.scale")
        scaled = self.node("Mul", [floats, scale], f"{name}.scaled")
        return self.node("Add", [scaled, self.constant(f"{name}.bias", bias)], name)


def build(weights: E5Weights) -> onnx.ModelProto:
    """The whole model, about 73 MB."""
    graph = _Graph()
    hidden = _embeddings(graph, weights)
    for layer in range(weights.sizes.layers):
        hidden = _layer(graph, weights, hidden, f"l{layer}")
    axis = graph.constant("token_axis", np.array([1], np.int64))
    mean = graph.node("ReduceMean", [hidden, axis], "mean", keepdims=0)
    graph.node("LpNormalization", [mean], "vector", axis=-1, p=2)
    return helper.make_model(
        helper.make_graph(
            graph.nodes,
            "multilingual-e5-small",
            [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "tokens"])],
            [helper.make_tensor_value_info("vector", TensorProto.FLOAT, [1, weights.sizes.width])],
            list(graph.constants.values()),
        ),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)],
        ir_version=IR_VERSION,
    )


def _embeddings(graph: _Graph, weights: E5Weights) -> str:
    """Word plus position plus the one token type, layer-normalised."""
    words = _words(graph, weights)
    positions = weights.floats("emb.pos").reshape(weights.sizes.positions, -1)
    types = weights.floats("emb.type").reshape(-1, weights.sizes.width)[0]
    table = graph.constant("positions", positions + types)
    shape = graph.node("Shape", ["ids"], "shape", start=1)
    zero = graph.constant("zero", np.array([0], np.int64))
    used = graph.node("Slice", [table, zero, shape, zero], "used_positions")
    return _layer_norm(graph, weights, graph.node("Add", [words, used], "embedded"), "emb.ln")


def _words(graph: _Graph, weights: E5Weights) -> str:
    """Looks the tokens' 4-bit rows up and unpacks them: ``(half - 8) * scale``."""
    halves, scales = weights.blocks("emb.word", weights.sizes.width)
    blocks = weights.sizes.width // BLOCK
    packed = graph.node("Gather", [graph.constant("words", halves), "ids"], "packed")
    low = graph.node("BitwiseAnd", [packed, graph.constant("fifteen", np.array(15, np.uint8))], "low")
    four = graph.constant("four", np.array(4, np.uint8))
    high = graph.node("BitShift", [packed, four], "high", direction="RIGHT")
    both = graph.node("Concat", [low, high], "both", axis=-1)
    floats = graph.node("Cast", [both], "both.floats", to=TensorProto.FLOAT)
    centred = graph.node("Sub", [floats, graph.constant("eight", np.array(8, np.float32))], "centred")
    half_scales = graph.node("Gather", [graph.constant("word_scales", scales[..., None]), "ids"], "block_scales")
    full_scales = graph.node("Cast", [half_scales], "block_scales.floats", to=TensorProto.FLOAT)
    scaled = graph.node("Mul", [centred, full_scales], "words.blocks")
    shape = graph.constant("word_shape", np.array([1, -1, blocks * BLOCK], np.int64))
    return graph.node("Reshape", [scaled, shape], "words.floats")


def _layer(graph: _Graph, weights: E5Weights, hidden: str, name: str) -> str:
    """One BERT encoder layer: attention, then two dense layers, each with its residual and norm after it."""
    width = weights.sizes.width
    parts = [f"{name}.{part}" for part in "qkv"]
    matrix = np.concatenate([weights.matrix(f"{part}.w", width) for part in parts])
    bias = np.concatenate([weights.floats(f"{part}.b") for part in parts])
    graph.split(graph.dense(hidden, matrix, bias, f"{name}.qkv"), parts)
    context = graph.node(
        "MultiHeadAttention",
        parts,
        f"{name}.context",
        domain="com.microsoft",
        num_heads=weights.sizes.heads,
        scale=1 / math.sqrt(width // weights.sizes.heads),
    )
    attended = _dense(graph, weights, context, f"{name}.ao", width)
    hidden = _layer_norm(graph, weights, graph.node("Add", [hidden, attended], f"{name}.attended"), f"{name}.aln")
    inner = _dense(graph, weights, hidden, f"{name}.fi", width)
    active = graph.node("Gelu", [inner], f"{name}.active", approximate="none")
    outer = _dense(graph, weights, active, f"{name}.fo", weights.sizes.inner_width)
    return _layer_norm(graph, weights, graph.node("Add", [hidden, outer], f"{name}.sum"), f"{name}.oln")


def _dense(graph: _Graph, weights: E5Weights, source: str, name: str, columns: int) -> str:
    return graph.dense(source, weights.matrix(f"{name}.w", columns), weights.floats(f"{name}.b"), name)


def _layer_norm(graph: _Graph, weights: E5Weights, source: str, name: str) -> str:
    scale = graph.constant(f"{name}.scale", weights.floats(f"{name}.w"))
    shift = graph.constant(f"{name}.shift", weights.floats(f"{name}.b"))
    return graph.node(
        "LayerNormalization", [source, scale, shift], f"{name}.out", axis=-1, epsilon=weights.sizes.epsilon
    )
