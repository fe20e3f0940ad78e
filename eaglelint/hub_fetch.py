"""Config, tokenizer and the headers of a checkpoint from the Hugging Face Hub. Needs the extra ``hub``.

Of a checkpoint's files only the first bytes are asked for, by range; what is kept of one ends with its header, and the
whole size stands beside it. So tensors have names, shapes and types, and no values.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from huggingface_hub import HfApi, get_session, hf_hub_url
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError
from huggingface_hub.utils._headers import build_hf_headers

from eaglelint.artifacts.safetensors_header import SIZE_SUFFIX
from eaglelint.artifacts.tensors import LIMIT_BYTES
from eaglelint.cache.units import cache_directory
from eaglelint.exceptions import UnreadableInput

__all__ = ["fetch"]

_WHOLE = re.compile(r"(config|tokenizer|tokenizer_config|added_tokens|.*\.index)\.json")
_FIRST_BYTES = 64 * 1024
_MOST_FILES = 300
_AT_ONCE = 8
# What the client raises where nobody answers is of the library that it is built on.
_FAILURES: tuple[type[BaseException], ...] = (HfHubHTTPError, OSError, *HfHubHTTPError.__mro__[1:2])


def fetch(repo: str, revision: str) -> Path:
    """A directory with what a scan reads of a model.

    Raises:
        UnreadableInput: The Hub does not have it, or cannot be reached.
    """
    endpoint = os.environ.get("HF_ENDPOINT") or None
    try:
        info = HfApi(endpoint=endpoint).model_info(repo, revision=revision)
        commit, names = info.sha or revision, [file.rfilename for file in info.siblings or ()]
        home = cache_directory() or Path(tempfile.gettempdir()) / "eaglelint"
        directory = home / "hub" / repo.replace("/", "--") / commit
        if not (directory / "config.json").is_file():
            _fetch_into(directory, repo, commit, names, endpoint)
    except RepositoryNotFoundError:
        raise UnreadableInput(
            f"{repo}: the Hub has no such model, or asks for a login (hf auth login). Check the name."
        ) from None
    except _FAILURES as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnreadableInput(
            f"{repo}: cannot be fetched from the Hub: {said[:160]}. Check the network, or name a directory."
        ) from None
    return directory


def _fetch_into(directory: Path, repo: str, commit: str, names: list[str], endpoint: str | None) -> None:
    """All files or none: a directory that is there is complete."""
    if "config.json" not in names:
        raise UnreadableInput(f"{repo}: this model has no config.json on the Hub. Name another, or a directory.")
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent) as work:
        whole = [name for name in names if _WHOLE.fullmatch(name)]
        headers = [name for name in names if name.endswith(".safetensors") and "/" not in name][:_MOST_FILES]

        def get(name: str) -> None:
            url = hf_hub_url(repo, name, revision=commit, endpoint=endpoint)
            if name in whole:
                text, size = _get(url, LIMIT_BYTES)
                if size <= LIMIT_BYTES:
                    Path(work, name).write_bytes(text)
                return
            start, size = _get(url, _FIRST_BYTES, ranged=True)
            length = int.from_bytes(start[:8], "little")
            if _FIRST_BYTES < 8 + length <= LIMIT_BYTES:
                start, size = _get(url, 8 + length, ranged=True)
            Path(work, name).write_bytes(start[: 8 + min(length, LIMIT_BYTES)])
            Path(work, f"{name}{SIZE_SUFFIX}").write_text(str(size), "ascii")

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(get, [*whole, *headers]))
        if not directory.exists():
            shutil.move(Path(work).rename(f"{work}.done"), directory)


def _get(url: str, most: int, *, ranged: bool = False) -> tuple[bytes, int]:
    """The first bytes of a file, never more than ``most``, and the size of the whole."""
    headers: Mapping[str, str] = build_hf_headers() | ({"Range": f"bytes=0-{most - 1}"} if ranged else {})
    data = b""
    with get_session().stream("GET", url, headers=headers, follow_redirects=True) as response:
        response.raise_for_status()
        for chunk in response.iter_bytes():
            data += chunk
            if len(data) >= most:  # a server that knows no ranges sends on
                break
        _, _, whole = response.headers.get("Content-Range", "").rpartition("/")
        size = int(whole) if whole.isdigit() else int(response.headers.get("Content-Length") or len(data))
    return data[:most], size
