"""The local model, built once a run."""

import importlib.util
import os
from pathlib import Path

import pytest

from memory_gateway.embeddings import local_model

pytest_plugins = ("tests.everos_live.fixtures", "tests.fakes.postgres", "tests.fakes.s3")


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shared by the processes of a parallel run: the first builds, the others wait."""
    if any(importlib.util.find_spec(package) is None for package in local_model.PACKAGES):
        pytest.skip("the local-embedder extra is not installed")
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    return local_model.ensure_built(shared / "models")
