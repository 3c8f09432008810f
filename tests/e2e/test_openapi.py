"""The OpenAPI document tells the truth: no surprise status, no fault of the server, whatever is sent."""

from contextlib import suppress
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.generation import GenerationMode

from tests.e2e.conftest import StartServer, register

EXAMPLES = 12


def test_no_generated_request_breaks_the_server_or_its_own_description(start_server: StartServer) -> None:
    server = start_server(auth_failure_limit="1000000")
    ann = register(server, "ann")
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    headers = {"X-User-ID": "ann", "X-User-Key": ann.user_key, "X-Admin-Key": server.admin_key}
    faults: dict[str, str] = {}
    operations: list[Any] = [result.ok() for result in schema.get_all_operations()]  # type: ignore[union-attr]
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            probe(operation, mode, server.url, headers, faults)
    assert faults == {}
    assert len(operations) >= 19


def probe(operation: Any, mode: GenerationMode, url: str, headers: dict[str, str], faults: dict[str, str]) -> None:
    documented = set(operation.definition.raw["responses"])

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case: Any) -> None:
        if case.method == "DELETE" and case.path == "/users/{user_id}":
            return  # the user must outlive the test
        response = case.call(base_url=url, headers=headers)
        if response.status_code >= 500 or str(response.status_code) not in documented:
            faults[f"{operation.label} -> {response.status_code}"] = response.text[:300]

    with suppress(Unsatisfiable):  # an operation without input has nothing to get wrong
        send()
