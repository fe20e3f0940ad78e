"""A user's training config: YAML, JSON, or the command in a script, and what it says of ids, kind and dumps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eaglelint.artifacts.document import Document
from eaglelint.artifacts.launch import commands
from eaglelint.source.index import ClassInfo
from eaglelint.source.tree import SourceModule
from eaglelint.trainers.base import RecipeKeys
from eaglelint.trainers.bench import Bench, NotFollowed
from eaglelint.wiring import Evidence

if TYPE_CHECKING:
    from yaml.nodes import Node

__all__ = ["Recipe", "is_recipe", "marks_in", "read_recipe"]

_SUFFIXES = (".yaml", ".yml", ".json", ".sh", ".bash", ".txt")
_MAX_BYTES = 1024 * 1024
_MAX_NODES = 20_000
_ASSIGNED = re.compile(r"(?:\+{0,2}|--)([A-Za-z_][\w.]*)=(.*)", re.DOTALL)
_FIELD = re.compile(r"^ {4}(\w+)\s*:\s*[\"']?(?:Optional\[)?\s*(\w+)", re.M)
_REWRITES = re.compile(r"mode=[\"'](?:before|wrap)[\"']")

_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Recipe:
    """What training configs say.

    Attributes:
        layer_ids: The ids that they name, None where they name none; ``place`` is where.
        kind: The kind of draft, as the stack calls it.
        way: How the states come to the trainer (``Run.way``); None where nothing tells.
        values: Everything that was read, by key path; ``places`` says where each stands.
        problems: Sentences on files that cannot be read or parsed, and on keys that the stack does not know.
        unread: The names of those files.
    """

    layer_ids: tuple[int, ...] | None = None
    place: Evidence | None = None
    kind: str | None = None
    way: str | None = None
    values: Mapping[_Path, Any] = field(default_factory=dict)
    places: Mapping[_Path, Evidence] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Entry:
    path: _Path
    value: Any
    file: str
    line: int


def is_recipe(path: Path) -> bool:
    """Whether a path among the training code is a config or a script with a command."""
    return path.suffix.lower() in _SUFFIXES and path.is_file()


def read_recipe(paths: Sequence[Path], keys: RecipeKeys, bench: Bench, display: Mapping[Path, str]) -> Recipe:
    """Read training configs; a later one overrides an earlier one, a command overrides a file.

    Args:
        paths: YAML and JSON files and scripts.
        keys: Where the stack's configs say what.
        bench: The stack's source, whose schema says which keys there are.
        display: How messages name the files.
    """
    problems: list[str] = []
    unread: list[str] = []
    entries: list[_Entry] = []
    for path in sorted(paths, key=lambda path: path.suffix in (".sh", ".bash", ".txt")):
        name = display.get(path, path.as_posix())
        try:
            found = _read(path, name, keys)
        except ValueError as error:
            problems.append(str(error))
            unread.append(name)
            continue
        if path.suffix.lower() in (".yaml", ".yml", ".json"):
            problems += _unknown_keys(found, keys, bench)
        entries += found
    values = {entry.path: entry for entry in entries}
    ids = next((values[path] for path in keys.ids if path in values and values[path].value not in (None, [])), None)
    layer_ids: tuple[int, ...] | None = None
    if ids is not None:
        if isinstance(ids.value, list) and all(type(item) is int for item in ids.value):
            layer_ids = tuple(ids.value)
        else:
            problems.append(f"{ids.file}:{ids.line}: {'.'.join(ids.path)} is no list of integers: {ids.value!r}")
    kind = next((values[path].value for path in keys.kind if path in values), None)
    way = None
    if entries and keys.dump is not None:
        way = "dump" if keys.dump in values and values[keys.dump].value else "online"
    if keys.way is not None and keys.way in values:
        way = keys.ways.get(str(values[keys.way].value))
    return Recipe(
        layer_ids,
        Evidence(ids.file, ids.line, f"{'.'.join(ids.path)} = {list(layer_ids)}") if ids and layer_ids else None,
        kind if isinstance(kind, str) else None,
        way,
        {path: entry.value for path, entry in values.items()},
        {path: Evidence(entry.file, entry.line, ".".join(path)) for path, entry in values.items()},
        tuple(problems),
        tuple(unread),
    )


def marks_in(path: Path, name: str, keys: RecipeKeys) -> int:
    """How many of the places at which a stack looks for ids, kind and dump a file sets.

    Raises:
        ValueError: It cannot be read or does not parse; the message is for a person.
    """
    places = {*keys.ids, *keys.kind, *keys.architecture, *filter(None, (keys.dump, keys.way))}
    return len(places & {entry.path for entry in _read(path, name, keys)})


def _read(path: Path, name: str, keys: RecipeKeys) -> list[_Entry]:
    """Everything in one file.

    Raises:
        ValueError: It cannot be read or does not parse; the message is for a person.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error.strerror or error}. Check --training.") from None
    if len(text) > _MAX_BYTES:
        raise ValueError(f"{name} is larger than {_MAX_BYTES // 1024} KiB, which no training config is: not read.")
    return list(_entries(path, name, text, keys))


def _entries(path: Path, name: str, text: bytes, keys: RecipeKeys) -> Iterator[_Entry]:
    """The values of one file, with their key paths.

    Raises:
        ValueError: The file does not parse; the message is for a person.
    """
    suffix = path.suffix.lower()
    if suffix == ".json":
        document = Document.parse(name, text)
        if document.errors:
            first = document.errors[0]
            raise ValueError(f"{first.span}: not valid JSON: {first.message}. Mend it there and run again.")
        for key_path in _paths(document.data, ()):
            span = document.key_span(*key_path)
            line = span.start.line if span is not None else 1
            yield _Entry(key_path, _at(document.data, key_path), name, line)
    elif suffix in (".yaml", ".yml"):
        yield from _from_yaml(name, text)
    else:
        yield from _from_commands(name, text.decode("utf-8", "replace"), keys)


def _paths(data: Any, prefix: _Path) -> Iterator[_Path]:
    for key, value in data.items() if isinstance(data, dict) else ():
        yield (*prefix, str(key))
        yield from _paths(value, (*prefix, str(key)))


def _at(data: Any, path: _Path) -> Any:
    for key in path:
        data = data[key]
    return data


def _from_yaml(name: str, text: bytes) -> Iterator[_Entry]:
    import yaml

    try:
        root = yaml.compose(text.decode("utf-8-sig", "replace"), Loader=yaml.SafeLoader)
        seen = 0
        for entry, nodes in _walk_yaml(root, (), name):
            seen += nodes
            if seen > _MAX_NODES:
                raise ValueError(f"{name}: more than {_MAX_NODES:,} values, which no training config has: not read.")
            yield entry
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark is not None else name
        raise ValueError(f"{where}: not valid YAML: {error.problem or error.context}. Mend it there.") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"{name}: not valid YAML: {str(error) or 'nested too deeply'}.") from None


def _walk_yaml(node: Node | None, prefix: _Path, name: str) -> Iterator[tuple[_Entry, int]]:
    import yaml

    if not isinstance(node, yaml.MappingNode) or len(prefix) > 20:
        return
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        path = (*prefix, str(key.value))
        plain = _plain(value, 0)
        yield _Entry(path, plain, name, key.start_mark.line + 1), 1
        yield from _walk_yaml(value, path, name)


def _plain(node: Node, depth: int) -> Any:
    """A scalar, or a list of scalars; anything larger is only walked through."""
    import yaml

    if isinstance(node, yaml.ScalarNode):
        return yaml.SafeLoader("").construct_object(node) if node.tag in _TAGS else node.value
    if isinstance(node, yaml.SequenceNode) and depth < 2 and len(node.value) <= 1024:
        return [_plain(item, depth + 1) for item in node.value]
    return {} if isinstance(node, yaml.MappingNode) else None


_TAGS = tuple(f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "null", "str"))


def _from_commands(name: str, text: str, keys: RecipeKeys) -> Iterator[_Entry]:
    """``--flag 1 2 3``, ``--flag=1`` and ``a.b.c=[1,2,3]`` in every command of a script."""
    for words in commands(text):
        for index, (word, line) in enumerate(words):
            flag, _, attached = word.partition("=")
            path = keys.flags.get(flag)
            if path is not None:
                values = [attached] if attached else _following([text for text, _ in words[index + 1 :]])
                value: Any = [_scalar(item) for item in values]
                yield _Entry(path, value if path in keys.ids else (value[0] if value else True), name, line)
            elif flag.startswith("--no-") and f"--{flag[5:]}" in keys.flags:
                yield _Entry(keys.flags[f"--{flag[5:]}"], False, name, line)
            elif (found := _ASSIGNED.fullmatch(word)) is not None and "." in found.group(1):
                yield _Entry(tuple(found.group(1).split(".")), _literal(found.group(2)), name, line)


def _following(words: list[str]) -> list[str]:
    taken = []
    for word in words:
        if word.startswith("-") and not re.fullmatch(r"-\d+", word):
            break
        taken += word.split(",") if re.fullmatch(r"-?\d+(?:,-?\d+)+", word) else [word]
    return taken


def _literal(text: str) -> Any:
    if text.startswith("[") and text.endswith("]"):
        return [_scalar(item.strip()) for item in text[1:-1].split(",") if item.strip()]
    return _scalar(text)


def _scalar(text: str) -> Any:
    if re.fullmatch(r"[-+]?\d{1,9}", text):
        return int(text)
    return {"null": None, "true": True, "false": False}.get(text.lower(), text)


# --- keys that the stack knows -------------------------------------------------------------------------------------


def _unknown_keys(entries: list[_Entry], keys: RecipeKeys, bench: Bench) -> Iterator[str]:
    """Keys that the stack's own schema has not; nothing where the schema is not found."""
    if keys.schema is None:
        return
    try:
        schema = _fields(bench.module(keys.schema[0]), keys.schema[1])
    except NotFollowed:
        return
    refused: set[_Path] = set()
    for entry in entries:
        known: Any = schema
        for depth, key in enumerate(entry.path):
            if known is None or entry.path[: depth + 1] in refused:
                break
            if key not in known:
                refused.add(entry.path[: depth + 1])
                near = get_close_matches(key, known, n=1)
                hint = f" Did you mean {near[0]}?" if near else ""
                where = ".".join(entry.path[: depth + 1])
                yield f"{entry.file}:{entry.line}: {bench.package.name} has no key {where}.{hint}"
                break
            known = known[key]


def _fields(module: SourceModule, name: str) -> dict[str, Any]:
    """The fields of a schema's class, those of its bases too; below each the fields of the class that it holds."""
    info = module.index.classes.get(name)
    found: dict[str, Any] = {}
    if not isinstance(info, ClassInfo):
        return found
    for base in info.bases:
        found.update(_fields(module, base))
    text = module.text(info.line, info.end_line)
    if _REWRITES.search(text):  # it may take keys under older names, which it then mentions
        found.update(dict.fromkeys(re.findall(r"""["'](\w+)["']""", text)))
    for key, annotation in _FIELD.findall(text):
        if not key.startswith("_"):
            found[key] = _fields(module, annotation) or None
    return found
