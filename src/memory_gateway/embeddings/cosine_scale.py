"""How a model's cosines lie, so that they can be weighed against other signs.

Models differ: texts that have nothing to do with each other have a cosine of 0.74 under one and of 0.15 under another,
and Chinese ones lie elsewhere than English ones. So the model is asked: a few questions, and texts that do not answer
them.
"""

import asyncio
import re

import numpy as np
from msgspec import Struct

from memory_gateway.embeddings.port import Embedder

_HAN = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LEAST_SPREAD = 0.001

_QUESTIONS = {
    "latin": (
        "What did the doctor say about the knee?",
        "Which film won the prize?",
        "When is the rent due?",
        "Who repaired the printer?",
    ),
    "han": ("谁送来了蛋糕？", "考试什么时候开始？", "那只猫叫什么名字？", "我们上次在哪里吃的火锅？"),
}
_UNRELATED = {
    "latin": (
        "Ann: The plumber comes on Thursday morning to fix the kitchen tap.",
        "Ben: I have started to read a novel about whales.",
        "Carla: Our flight to Lisbon was two hours late.",
        "David: My daughter plays the cello in the school orchestra.",
        "Eva: The deployment failed because a certificate had run out.",
        "Finn: We painted the fence green at last.",
    ),
    "han": (
        "小王: 我昨天去医院检查了眼睛。",
        "小李: 周末我们打算去爬山。",
        "小陈: 这个接口的超时时间改成三十秒了。",
        "小赵: 我妈妈做的红烧肉最好吃。",
        "小孙: 新买的自行车被偷了。",
        "小周: 他们公司下个月搬到深圳。",
    ),
}


class CosineScale(Struct, frozen=True):
    """The mean cosine of a question and an unrelated text, and the standard deviation."""

    unrelated: float
    spread: float


class CosineScales:
    """Measured once. Raises `memory_gateway.kit.errors.EmbeddingUnavailable`, and is then asked again."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._measured: dict[str, CosineScale] = {}
        self._measuring = asyncio.Lock()

    async def of(self, question: str) -> CosineScale:
        """The scale of questions in this script."""
        if not self._measured:
            await self.measure()
        return self._measured["han" if _HAN.search(question) else "latin"]

    async def measure(self) -> None:
        """Ask the model, unless it has been asked."""
        async with self._measuring:
            if not self._measured:
                self._measured = {script: await self._measure(script) for script in _QUESTIONS}

    async def _measure(self, script: str) -> CosineScale:
        texts = await self._embedder.passages(_UNRELATED[script])
        questions = np.stack([await self._embedder.query(question) for question in _QUESTIONS[script]])
        cosines = questions @ texts.T
        return CosineScale(float(cosines.mean()), max(float(cosines.std()), _LEAST_SPREAD))
