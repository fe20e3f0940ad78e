"""The command that starts an engine, as a script holds it: its options by one name, each with its place.

A script is read, not run: variables and substitutions stay unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eaglelint.exceptions import UnreadableInput
from eaglelint.finding import Position, Span

__all__ = ["Launch", "LaunchOption", "commands", "parse_launch", "read_launch"]

MAX_BYTES = 128 * 1024

# SGLang 0.5.9 and 0.5.23, server_args.py; vLLM 0.33.0, engine/arg_utils.py. "-" and "_" are the same to both.
_OPTIONS: Mapping[str, str] = {
    "speculative-algorithm": "algorithm",
    "speculative-algo": "algorithm",
    "speculative-draft-model-path": "draft",
    "speculative-draft-model": "draft",
    "speculative-token-map": "token_map",
    "speculative-draft-model-quantization": "draft_quantization",
    "speculative-config": "speculative_config",
    "sc": "speculative_config",
    "dtype": "dtype",
    "context-length": "context_length",
    "max-model-len": "context_length",
    "pp-size": "pipeline_stages",
    "pp": "pipeline_stages",
    "pipeline-parallel-size": "pipeline_stages",
    "tp-size": "tensor_parallel",
    "tp": "tensor_parallel",
    "tensor-parallel-size": "tensor_parallel",
    "kv-cache-dtype": "kv_cache_dtype",
    "model-path": "model",
    "model": "model",
    "quantization": "quantization",
}
# Keys of vLLM's --speculative-config, a JSON object.
_SPECULATIVE: Mapping[str, str] = {"method": "algorithm", "model": "draft", "max_model_len": "draft_context_length"}
_STARTS = (
    ("sglang", re.compile(r"sglang\.launch_server|(?:^|/)sglang$")),
    ("vllm", re.compile(r"vllm\.entrypoints\.\S*api_server|(?:^|/)vllm$")),
)
_WORD = re.compile(r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|\\\n|\\.|[^\s'"\\;&|#]|(?<=[^\s])#)+""", re.DOTALL)
_BREAK = re.compile(r"\n|;|&&?|\|\|?|#[^\n]*")
_UNKNOWN = re.compile(r"[$`]")


@dataclass(frozen=True, slots=True)
class LaunchOption:
    """One option of the command.

    Attributes:
        name: As it is called here, whatever the engine calls it.
        value: Its value; ``None`` where the script leaves it to a variable.
        span: The value's place, else the option's.
        flag: The option as written.
    """

    name: str
    value: str | None
    span: Span
    flag: str

    @property
    def number(self) -> int | None:
        """The value as a whole number, ``32k`` as vLLM reads it (32,000; ``32K`` is 32,768)."""
        match = re.fullmatch(r"(\d{1,12})([kKmM]?)", self.value or "")
        if match is None:
            return None
        return int(match[1]) * {"": 1, "k": 1_000, "K": 1_024, "m": 1_000_000, "M": 1_048_576}[match[2]]


@dataclass(frozen=True, slots=True)
class Launch:
    """A command that starts an engine.

    Attributes:
        path: The script, as messages name it.
        engine: ``sglang`` or ``vllm``.
        span: Where the command begins.
        options: The options that matter, by name; the last one where one stands twice.
    """

    path: str
    engine: str
    span: Span
    options: Mapping[str, LaunchOption]

    def get(self, name: str) -> LaunchOption | None:
        return self.options.get(name)


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int
    end: int
    known: bool


def read_launch(path: Path, display: str) -> Launch:
    """Read the first command in a script that starts an engine.

    Raises:
        UnreadableInput: The file cannot be read, or holds no such command.
    """
    try:
        if path.exists() and not path.is_file():
            raise UnreadableInput(f"{display} is not a regular file. Name the script with the command.")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UnreadableInput(f"{display} cannot be read: {error.strerror or error}. Check --launch.") from None
    if len(data) > MAX_BYTES:
        raise UnreadableInput(f"{display} is larger than {MAX_BYTES // 1024} KiB. Name the script with the command.")
    found = parse_launch(display, data.decode("utf-8", "replace"))
    if found is None:
        raise UnreadableInput(
            f"{display} holds no command that starts an engine: python -m sglang.launch_server, sglang serve, "
            "vllm serve. Name the script that does."
        )
    return found


def parse_launch(path: str, text: str) -> Launch | None:
    """The first command that starts an engine; ``None`` where there is none."""
    for words in _commands(text):
        for index, word in enumerate(words):
            for engine, start in _STARTS:
                if start.search(word.text) and _serves(words, index):
                    place = _Places(path, text)
                    options = {option.name: option for option in _options(words[index + 1 :], place)}
                    return Launch(path, engine, place.span(word.start, word.end), options)
    return None


def commands(text: str) -> Iterator[list[tuple[str, int]]]:
    """The words of each command of a script, each with its line; a line that ends in a backslash goes on."""
    for words in _commands(text):
        yield [(word.text, text.count("\n", 0, word.start) + 1) for word in words]


def _serves(words: Sequence[_Word], index: int) -> bool:
    """Whether this is the engine's server: a module, or the command with ``serve`` behind it."""
    if "." in words[index].text.rpartition("/")[2]:
        return True
    return index + 1 < len(words) and words[index + 1].text == "serve"


def _commands(text: str) -> Iterator[list[_Word]]:
    """The words of each command of a script; a line that ends in a backslash goes on."""
    words: list[_Word] = []
    position = 0
    while position < len(text):
        if (match := _BREAK.match(text, position)) is not None:
            if words:
                yield words
            words = []
        elif (match := _WORD.match(text, position)) is not None:
            raw = match[0]
            plain = _unquoted(raw)
            if plain or not raw.startswith("\\\n"):
                known = _UNKNOWN.search(re.sub(r"'[^']*'", "", raw)) is None
                words.append(_Word(plain, match.start() + len(raw) - len(raw.lstrip("\\\n")), match.end(), known))
        position = max(position + 1, match.end() if match is not None else 0)
    if words:
        yield words


def _unquoted(raw: str) -> str:
    pieces = re.findall(r"""'([^']*)'|"((?:\\.|[^"\\])*)"|\\(\n)|\\(.)|([^'"\\]+)""", raw, re.DOTALL)
    found = []
    for single, double, joined, escaped, bare in pieces:
        found.append(single or re.sub(r'\\(["\\$`])', r"\1", double) or ("" if joined else escaped) or bare)
    return "".join(found)


class _Places:
    """From offsets of a text to lines and columns."""

    def __init__(self, path: str, text: str) -> None:
        self._path, self._text = path, text

    def span(self, start: int, end: int) -> Span:
        return Span(self._path, self._position(start), self._position(end))

    def _position(self, offset: int) -> Position:
        before = self._text[:offset]
        return Position(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


def _options(words: Sequence[_Word], place: _Places) -> Iterator[LaunchOption]:
    for index, word in enumerate(words):
        if not word.text.startswith("-"):
            if word.text != "serve" and (index == 0 or words[index - 1].text == "serve"):
                yield LaunchOption("model", word.text if word.known else None, place.span(word.start, word.end), "")
            continue
        flag, equals, rest = word.text.partition("=")
        name = _OPTIONS.get(flag.lstrip("-").replace("_", "-"))
        if name is None:
            continue
        value: str | None = rest
        span, known = place.span(word.start, word.end), word.known
        if not equals:
            follower = words[index + 1] if index + 1 < len(words) else None
            if follower is None or (follower.text.startswith("--") and follower.known):
                continue
            value, known, span = follower.text, follower.known, place.span(follower.start, follower.end)
        if name == "speculative_config":
            yield from _from_json(value or "", flag, span)
        else:
            yield LaunchOption(name, value if known else None, span, flag)


def _from_json(text: str, flag: str, span: Span) -> Iterator[LaunchOption]:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return
    for key, value in found.items() if isinstance(found, dict) else ():
        if key in _SPECULATIVE and isinstance(value, (str, int)):
            yield LaunchOption(_SPECULATIVE[key], str(value), span, f"{flag} {key}")
