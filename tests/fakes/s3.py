"""A real S3 server in this process (moto), behind a door that can be shut or made to answer with faults."""

import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from memory_gateway.blobs.choose import open_blobs
from memory_gateway.blobs.port import BlobStore
from memory_gateway.settings import Settings

ACCESS_KEY, SECRET_KEY = "AKIAEXAMPLE", "a-secret-that-nobody-shows"
_ACCOUNT = "123456789012"
_REFUSAL = b"<Error><Code>%s</Code><Message>of the bucket's own words</Message></Error>"

Answer = tuple[int, str]
"""A status and the code that S3 gives it."""
Plan = Callable[[str, str], Answer | None]
"""What is answered instead, to a method and a query; None for what the server itself says."""


class _Quiet(WSGIRequestHandler):
    def log(self, *_: Any) -> None:
        pass


class S3Server:
    """Listens on one port for as long as it lives; what it stores survives a `stop`."""

    def __init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._server: BaseWSGIServer | None = None
        self._port = 0
        self.plan: Plan | None = None
        self.silent: threading.Event | None = None
        self.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        self._server = make_server("127.0.0.1", self._port, self._answer, threaded=True, request_handler=_Quiet)
        self._port = self._server.port
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        """From now on connections are refused."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def open(self) -> None:
        """All is well again."""
        self.plan = None
        if self.silent is not None:
            self.silent.set()
            self.silent = None
        if self._server is None:
            self.start()

    def hush(self) -> None:
        """Take requests and say nothing."""
        self.silent = threading.Event()

    def new_bucket(self) -> str:
        name = f"box-{uuid4().hex[:12]}"
        httpx.put(f"{self.endpoint}/{name}", trust_env=False).raise_for_status()
        return name

    def objects(self, bucket: str) -> dict[str, bytes]:
        """What the bucket holds, as the server itself sees it; without what was written to try it."""
        keys = s3_backends[_ACCOUNT]["aws"].buckets[bucket].keys
        return {key: keys[key].value for key in keys if not key.endswith("~probe")}

    def unfinished_uploads(self, bucket: str) -> int:
        return len(s3_backends[_ACCOUNT]["aws"].buckets[bucket].multiparts)

    def settings(self, bucket: str, data_dir: Path, **more: Any) -> Settings:
        return Settings(
            data_dir=data_dir,
            blob_url=f"s3://{bucket}/files/of/users",
            s3_endpoint=self.endpoint,
            s3_region="us-east-1",
            s3_access_key_id=ACCESS_KEY,
            s3_secret_access_key=SECRET_KEY,
            **more,
        )

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if self.silent is not None:
            self.silent.wait(30)
        answer = self.plan(environ["REQUEST_METHOD"], environ["QUERY_STRING"]) if self.plan else None
        if answer is None:
            found: Iterable[bytes] = self._moto(environ, start_response)
            return found
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        body = _REFUSAL % answer[1].encode()
        start_response(f"{answer[0]} Refused", [("Content-Length", str(len(body)))])
        return [body]


class Bucket:
    """A bucket of the test's own, and gateways' views of it."""

    def __init__(self, server: S3Server, folder: Path) -> None:
        self.server = server
        self.name = server.new_bucket()
        self.folder = folder

    def blobs(self) -> BlobStore:
        """As one process opens it."""
        return open_blobs(self.server.settings(self.name, self.folder))

    def objects(self) -> dict[str, bytes]:
        """By the keys that the store gave them."""
        return {key.removeprefix("files/of/users/"): content for key, content in self.server.objects(self.name).items()}


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    server = S3Server()
    yield server
    server.stop()


@pytest.fixture
def bucket(s3_server: S3Server, tmp_path: Path) -> Iterator[Bucket]:
    yield Bucket(s3_server, tmp_path)
    s3_server.open()
