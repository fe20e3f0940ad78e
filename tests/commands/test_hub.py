"""Models named by their id on the Hugging Face Hub: from the local cache, from a server when asked, else a sentence."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from eaglelint.artifacts.checkpoint import read_checkpoint
from eaglelint.hub import hub_cache, located
from tests.checkpoints import header_bytes

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TARGET = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 36, "hidden_size": 4096}
DRAFT = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "hidden_size": 4096,
    "draft_vocab_size": 32000,
    "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 17, 32]},
}
SIZE = 4096 * 8192 * 2
CHECKPOINT = header_bytes({"fc.weight": {"dtype": "BF16", "shape": [4096, 8192], "data_offsets": [0, SIZE]}})


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the Hub."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_ENDPOINT"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    return tmp_path / "hf/hub"


def cached(cache: Path, config: dict[str, Any], revision: str = "main") -> Path:
    """A model in it, laid out as huggingface_hub does: a link from the snapshot to the blob."""
    home = cache / "models--org--Model-1.5"
    for name in ("refs", "blobs", f"snapshots/{COMMIT}"):
        (home / name).mkdir(parents=True, exist_ok=True)
    (home / "refs" / revision).write_text(COMMIT)
    (home / "blobs/abc").write_text(json.dumps(config))
    link = home / f"snapshots/{COMMIT}/config.json"
    link.symlink_to("../../blobs/abc")
    return link.parent


class Hub(BaseHTTPRequestHandler):
    """As much of the Hub as a fetch asks for; it counts the bytes that it sends of weights."""

    sent = 0
    files: ClassVar = {"config.json": json.dumps(DRAFT).encode(), "model.safetensors": CHECKPOINT}

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path.startswith("/api/models/org/draft"):
            siblings = [{"rfilename": name} for name in (*self.files, "README.md", "optimizer.pt")]
            body = json.dumps({"id": "org/draft", "modelId": "org/draft", "sha": COMMIT, "siblings": siblings}).encode()
            return self.answer(200, body, {"Content-Type": "application/json"})
        name = path.removeprefix(f"/org/draft/resolve/{COMMIT}/")
        if name == path or name not in self.files:
            return self.answer(404, b"{}", {"X-Error-Code": "RepoNotFound"})
        data, whole = self.files[name], len(CHECKPOINT) + SIZE
        wanted = re.fullmatch(r"bytes=0-(\d+)", self.headers.get("Range", ""))
        if name.endswith(".safetensors"):
            assert wanted is not None, "weights are asked for by range"
            end = min(int(wanted[1]) + 1, whole)
            data = data[:end] + bytes(max(0, end - len(data)))
            type(self).sent += len(data)
            return self.answer(206, data, {"Content-Range": f"bytes 0-{end - 1}/{whole}"})
        return self.answer(200, data, {})

    def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def hub(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server on this machine in the place of the Hub."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    monkeypatch.setenv("HF_ENDPOINT", address)
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
    yield address
    server.shutdown()
    server.server_close()


def test_the_local_cache(cache: Path) -> None:
    """``main`` unless a branch or a commit is named; what is not there stays what it was."""
    snapshot = cached(cache, TARGET)
    assert hub_cache() == cache
    for name in ("org/Model-1.5", "org/Model-1.5@main", f"org/Model-1.5@{COMMIT}"):
        assert located(Path(name)) == snapshot
    for name in ("org/Model-1.5@other", "org/Other", "org/Model-1.5@../../../x", "one", "a/b/c"):
        assert located(Path(name)) == Path(name)


def test_a_directory_comes_first(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that exists is that path."""
    cached(cache, TARGET)
    (tmp_path / "org/Model-1.5").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert located(Path("org/Model-1.5")) == Path("org/Model-1.5")


def test_a_scan_with_a_target_from_the_cache(run: Callable[..., Any], cache: Path, tmp_path: Path) -> None:
    """Named on the command line or in the settings."""
    cached(cache, {**TARGET, "hidden_size": 5120})
    (tmp_path / "draft").mkdir()
    (tmp_path / "draft/config.json").write_text(json.dumps(DRAFT))
    flags = run("scan", "--draft", "draft", "--target", "org/Model-1.5", "--output-format", "concise", cwd=tmp_path)
    assert "error[SHP004] the draft is 4096 wide and the target 5120" in flags.stdout
    (tmp_path / "eaglelint.toml").write_text('[[pipeline]]\ndraft = "draft"\ntarget = "org/Model-1.5"\n')
    assert run("scan", "--output-format", "concise", cwd=tmp_path).stdout == flags.stdout


def test_offline_it_says_how_to_proceed(run: Callable[..., Any], cache: Path, tmp_path: Path) -> None:
    """A sentence with the ways out, and exit code 2."""
    (tmp_path / "draft").mkdir()
    (tmp_path / "draft/config.json").write_text(json.dumps(DRAFT))
    outcome = run("scan", "--draft", "draft", "--target", "moonshotai/Kimi-K2.5", cwd=tmp_path)
    assert outcome.code == 2
    for part in (str(cache), "--online", "hf download moonshotai/Kimi-K2.5", "name a directory"):
        assert part in outcome.stderr
    assert "does not exist. Check the path." in run("scan", "--draft", "no/such/dir", cwd=tmp_path).stderr


def test_online_only_headers_are_fetched(run: Callable[..., Any], hub: str, own_cache: Path, tmp_path: Path) -> None:
    """The finding rests on the shape of a tensor of 64 MiB, of which less than 64 KiB came over the wire; once."""
    Hub.sent = 0
    outcome = run("scan", "--draft", "org/draft", "--online", "--output-format", "concise", cwd=tmp_path)
    assert "SHP001" in outcome.stdout, outcome.stderr
    assert "fc.weight takes 8192 features" in outcome.stdout
    assert len(CHECKPOINT) <= Hub.sent <= 64 * 1024
    (config,) = own_cache.glob(f"hub/org--draft/{COMMIT}/config.json")
    checkpoint = read_checkpoint(config, "config.json")
    assert checkpoint is not None and checkpoint.problems == ()
    assert [tensor.shape for tensor in checkpoint.tensors.values()] == [(4096, 8192)]
    before = Hub.sent
    assert run("scan", "--draft", "org/draft", "--online", "--output-format", "concise", cwd=tmp_path).code == 1
    assert Hub.sent == before


@pytest.mark.parametrize(("model", "said"), [("org/none", "has no such model"), ("org/draft", "cannot be fetched")])
def test_online_and_not_there(
    model: str, said: str, run: Callable[..., Any], hub: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that the Hub does not have, and a Hub that does not answer."""
    if model == "org/draft":
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    outcome = run("scan", "--draft", model, "--online", cwd=tmp_path)
    assert outcome.code == 2
    assert f"{model}: " in outcome.stderr and said in outcome.stderr
