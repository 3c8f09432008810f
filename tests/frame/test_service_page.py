"""The page on the Memory-Service's API has every route of the app, and no other."""

import re
from pathlib import Path

from litestar.routes import HTTPRoute

from tests.fakes.memory_service import open_house
from tests.frame.pages import DOCS

PAGE = DOCS / "reference" / "memory-service-api.md"


async def test_every_route_has_its_heading_on_the_page_and_every_heading_its_route(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        routes = {
            f"{method} {re.sub(r':str', '', route.path_format)}"
            for route in house.app().routes
            if isinstance(route, HTTPRoute)
            for method in route.methods - {"OPTIONS"}
        }
    headings = set(re.findall(r"^### `([A-Z]+ /\S*)`$", PAGE.read_text("utf-8"), re.MULTILINE))
    assert len(routes) == 14
    assert headings == routes
