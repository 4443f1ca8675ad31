"""A model goes to the hub as it is saved; the hub is a stub on this machine."""

import base64
import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from huggingface_hub import ModelCard, constants

from adaptiveembed.errors import ModelFormatError
from adaptiveembed.pipeline.card import model_card
from adaptiveembed.pipeline.model import AdaptiveEmbed
from adaptiveembed.pipeline.saving import local_folder
from tests.pipeline.test_saving import files

TOKEN = "hf_" + "x" * 34


class Hub(BaseHTTPRequestHandler):
    """Makes a repository, takes a commit of plain files, and remembers both."""

    def do_POST(self):
        content = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.tokens.add(self.headers["Authorization"])
        if self.path == "/api/repos/create":
            self.server.made = json.loads(content)
            self.answer({"url": "https://huggingface.co/someone/tiny", "id": "someone/tiny"})
        elif self.path == "/api/validate-yaml":
            self.answer({"errors": [], "warnings": []})
        elif "/preupload/" in self.path:
            paths = [one["path"] for one in json.loads(content)["files"]]
            kinds = [{"path": p, "uploadMode": "regular", "shouldIgnore": False} for p in paths]
            self.answer({"files": kinds})
        elif "/commit/" in self.path:
            lines = [json.loads(line) for line in content.splitlines()]
            self.server.uploaded |= {
                line["value"]["path"]: base64.b64decode(line["value"]["content"])
                for line in lines
                if line["key"] == "file"
            }
            self.answer(
                {"commitUrl": "https://huggingface.co/someone/tiny/commit/1", "commitOid": "1"}
            )
        else:
            self.answer({"error": "unknown"}, 404)

    def do_GET(self):
        self.answer({"id": "someone/tiny", "siblings": [], "sha": "1"})

    def answer(self, content, status=200):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextmanager
def serving():
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        server.uploaded, server.tokens, server.made = {}, set(), None
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def hub(socket_enabled, monkeypatch):
    with serving() as server:
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        yield server


def test_the_hub_is_given_the_bytes_that_are_saved(hub, model, run):
    address = model.push_to_hub("someone/tiny", token=TOKEN)
    assert address == "https://huggingface.co/someone/tiny/commit/1"
    assert hub.uploaded == files(run / "model")
    assert hub.tokens == {f"Bearer {TOKEN}"}
    assert hub.made["name"] == "tiny"
    assert hub.made["organization"] == "someone"
    assert hub.made.get("private", hub.made.get("visibility")) in (True, "private")


def test_the_hub_can_read_the_front_matter_of_the_card(model):
    front = ModelCard(model_card(model)).data
    assert front.library_name == "adaptiveembed"
    assert front.tags == ["retrieval", "multi-vector", "text", "image"]


def test_what_was_uploaded_opens_as_the_model(hub, model, tmp_path):
    model.push_to_hub("someone/tiny", token=TOKEN)
    for name, content in hub.uploaded.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert AdaptiveEmbed.from_pretrained(tmp_path, check=True).thresholds == model.thresholds


def test_a_name_that_is_none_is_refused(model):
    with pytest.raises(ModelFormatError, match="a b/c could not be uploaded"):
        model.push_to_hub("a b/c", token=TOKEN)


@pytest.fixture
def no_hub(socket_enabled, monkeypatch):
    with serving() as server:
        port = server.server_port
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{port}")


def test_where_nobody_answers_that_is_said(no_hub, model):
    with pytest.raises(ModelFormatError, match="someone/tiny could not be uploaded"):
        model.push_to_hub("someone/tiny", token=TOKEN)


def test_a_folder_that_is_not_there_is_looked_for_on_the_hub(no_hub, tmp_path):
    for name in ("someone/nothing", str(tmp_path / "no" / "folder")):
        with pytest.raises(ModelFormatError, match="there is no folder"):
            local_folder(name)
