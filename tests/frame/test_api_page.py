"""The page on the HTTP API has every route of the app, and no other."""

import re
from pathlib import Path

from litestar import Litestar
from litestar.routes import HTTPRoute

from memory_gateway.server import open_faces
from memory_gateway.settings import Settings
from tests.frame.pages import DOCS

PAGE = DOCS / "reference" / "gateway-api.md"


def _routes(app: Litestar) -> set[str]:
    """``METHOD /path`` of every route that is not one of the API pages."""
    found = set()
    for route in app.routes:
        if isinstance(route, HTTPRoute) and not route.path.startswith("/docs"):
            path = re.sub(r"\{(\w+):\w+\}", r"{\1}", route.path_format)
            found |= {f"{method} {path}" for method in route.methods if method not in {"HEAD", "OPTIONS"}}
    return found


async def test_every_route_has_its_heading_on_the_page_and_every_heading_its_route(tmp_path: Path) -> None:
    settings = Settings(
        data_dir=tmp_path, embedder="none", admin_key="admin-of-the-test", key_secret="secret-of-the-test"
    )
    async with open_faces(settings, ["gateway"]) as (gateway,):
        routes = _routes(gateway)
    headings = set(re.findall(r"^### `([A-Z]+ /\S*)`$", PAGE.read_text("utf-8"), re.MULTILINE))
    assert len(routes) > 15
    assert headings == routes
