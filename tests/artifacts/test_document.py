"""A JSON document keeps places, equals what json reads, and never fails on what it is given."""

from __future__ import annotations

import json
import math
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eaglelint.artifacts.document import MAX_BYTES, MAX_DEPTH, MAX_TOKENS, Document, Node, config_path, read_document
from eaglelint.exceptions import UnreadableInput
from eaglelint.finding import Position, Span

DRAFT = """{
  "architectures": ["LlamaForCausalLMEagle3"],
  "größe": "日本", "eagle_config": {
    "eagle_aux_hidden_state_layer_ids": [
      2,
      30, 58
    ]
  }
}
"""


def parse(text: str | bytes) -> Document:
    return Document.parse("config.json", text.encode() if isinstance(text, str) else text)


def place(node: Node | None) -> str:
    assert node is not None
    return span(node.span)


def span(found: Span | None) -> str:
    assert found is not None and found.end is not None
    return f"{found.start.line}:{found.start.column}-{found.end.line}:{found.end.column}"


def problems(text: str | bytes) -> list[str]:
    return [f"{error.span.start.line}:{error.span.start.column} {error.message}" for error in parse(text).errors]


# Plain data as json writes it; one more level of nesting than a config has.
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)
# Fragments that make almost-JSON far more often than random characters do.
FRAGMENTS = [
    *'{}[],:" \n\t\r-.x\'\\', '"a"', '"b', "1", "-1", "01", "1.5", "1e+5", ".5", "5.", "0x1", "NaN", "Infinity", "-Infinity",
    "true", "null", "True", '"\\ud83d\\ude00"', '"\\ud800"', '"é😀"', '"\\q"', '"a\\"b"', '"\t"', "// c", '"a":', "\x00", "\xa0",
]  # fmt: skip


def test_a_value_in_a_nested_list_knows_its_line_and_column() -> None:
    """Lines and columns are 1-based, the end is exclusive, brackets and quotes belong to the value."""
    document = parse(DRAFT)
    ids = document.find("eagle_config", "eagle_aux_hidden_state_layer_ids")
    assert ids is not None
    assert place(ids) == "4:41-7:6"
    assert [place(element) for element in ids.elements] == ["5:7-5:8", "6:7-6:9", "6:11-6:13"]
    assert span(document.key_span("eagle_config", "eagle_aux_hidden_state_layer_ids")) == "4:5-4:39"
    assert ids.value == [2, 30, 58]


def test_columns_count_characters_not_bytes() -> None:
    """Letters of two and three bytes before a value shift it by one column each."""
    document = parse(DRAFT)
    assert span(document.key_span("größe")) == "3:3-3:10"
    assert place(document.find("größe")) == "3:12-3:16"
    assert span(document.key_span("eagle_config")) == "3:18-3:32"
    assert place(parse('["😀",1]').find("1")) == "1:6-1:7"


def test_a_byte_order_mark_is_no_column() -> None:
    """A file that an editor on Windows saved reads as any other."""
    document = parse(b"\xef\xbb\xbf" + b'{"a": 1}')
    assert document.errors == ()
    assert place(document.find("a")) == "1:7-1:8"


def test_carriage_returns_do_not_shift_lines() -> None:
    """Windows line ends count as one."""
    assert place(parse('{\r\n"a": 1,\r\n"b": 2}').find("a")) == "2:6-2:7"


def test_objects_and_arrays_are_walked_by_key_and_index() -> None:
    """``get``, ``items``, ``elements`` and ``find`` give nodes; what is not there is None."""
    document = parse('{"a": {"b": [10, {"c": null}]}, "e": {}}')
    root = document.root
    assert root is not None
    assert [key for key, _ in root.items()] == ["a", "e"]
    assert getattr(document.find("a", "b", "0"), "value", None) == 10
    assert getattr(document.find("a", "b", "1", "c"), "kind", None) == "word"
    assert document.find("a", "b", "2") is None
    assert document.find("a", "b", "-1") is None
    assert document.find("a", "x", "y") is None
    assert root.get("b") is None
    assert root.key_span("b") is None
    assert document.key_span() is None
    assert document.root is document.find()


def test_the_span_of_a_missing_key_is_that_of_the_value_around_it() -> None:
    """A finding about a key that is absent points at the object that should hold it."""
    document = parse('{"a": {"b": 1}}')
    assert span(document.span("a", "eagle_aux_hidden_state_layer_ids")) == "1:7-1:15"
    assert Position(1, 1) == document.span("x").start
    assert Position(1, 1) == parse("").span("x").start


def test_the_later_of_two_equal_keys_counts_and_both_are_known() -> None:
    """json keeps the last; the document also says where both stand."""
    document = parse('{"a": {"ids": [1],\n "ids": [2]}}')
    assert document.data == {"a": {"ids": [2]}}
    (duplicate,) = document.duplicate_keys
    assert duplicate.key_path == ("a", "ids")
    assert (span(duplicate.span), span(duplicate.first)) == ("2:2-2:7", "1:8-1:13")
    assert place(document.find("a", "ids")) == "2:9-2:12"


def test_big_integers_stay_exact_and_pythons_words_for_floats_are_read() -> None:
    """Python writes NaN and Infinity into JSON, and reads them back."""
    document = parse('{"big": 123456789012345678901234567890, "x": [NaN, Infinity, -Infinity, 1e+3, -0.5]}')
    assert document.errors == ()
    assert document.data["big"] == 123456789012345678901234567890
    assert math.isnan(document.data["x"][0])
    assert [math.inf, -math.inf, 1000.0, -0.5] == document.data["x"][1:]
    assert place(document.find("x", "1")) == "1:52-1:60"


@pytest.mark.parametrize(
    ("text", "data", "first"),
    [
        ('{"ids": [2, 30, 58', {"ids": [2, 30, 58]}, "1:19 the file ends inside the list opened at line 1, column 9"),
        ('{"ids": [2, 30,], "n": 1}', {"ids": [2, 30], "n": 1}, "1:16 a ',' right before ']'"),
        (
            '{"e": {"ids": [2, 30}, "n": 1}',
            {"e": {"ids": [2, 30]}, "n": 1},
            "1:21 expected ']' to close the list opened at line 1",
        ),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}, "1:9 expected ',' or '}' before this key"),
        ('{"a"\n "b": 2}', {"b": 2}, "2:2 expected ':' after the key before this one"),
        ('{"a":\n "b": 2}', {"b": 2}, "2:5 a ':' that does not follow a key"),
        ('{"ke\n "b": 2}', {"b": 2}, "1:2 a string that is not closed on its line"),
        ('{"a": "x,\n "b": 2}', {"a": "x,", "b": 2}, "1:7 a string that is not closed on its line"),
        ('{"a": , "b": 2}', {"b": 2}, "1:7 expected a value before ','"),
        ('{"a": 01, "b": 2}', {"a": None, "b": 2}, "1:7 '01' is not a JSON number"),
        ('{"a": 1} {"b": 2}', {"a": 1}, "1:10 more text after the end of the document"),
        ('{"a": True, "b": 2}', {"b": 2}, "1:7 True is Python; JSON writes true"),
        ('// note\n{"b": 2}', {"b": 2}, "1:1 JSON has no comments"),
        ("{'a': 1}", {}, "1:2 JSON strings and keys stand in double quotes"),
        ('{"é": "\\q", "b": 2}', {"é": "\\q", "b": 2}, "1:7 a string with a bare control character or an unknown"),
        ("[1 2]", [1, 2], "1:4 expected ',' or ']' before this"),
        ("[2, , 3]", [2, 3], "1:5 expected a value before ','"),
        ('{1: 2, "b": 2}', {"b": 2}, "1:2 expected a key in double quotes"),
        ("}", None, "1:1 a '}' that closes nothing"),
        ("", None, "1:1 the file is empty"),
        (b'{"a": "\xff"}', {"a": "\N{REPLACEMENT CHARACTER}"}, "1:8 a byte that is not UTF-8"),
    ],
)
def test_a_half_typed_document_keeps_what_stands_and_says_where_it_breaks(
    text: str | bytes, data: Any, first: str
) -> None:
    """An editor needs the values around a mistake, a person the place of the first one."""
    assert data == parse(text).data
    assert problems(text)[0].startswith(first)


def test_hostile_nesting_is_refused_with_a_place() -> None:
    """A hundred thousand brackets neither overflow the stack nor pass."""
    assert [f"1:{MAX_DEPTH + 1} nested deeper than {MAX_DEPTH} levels"] == problems("[" * 100_000)
    assert problems('{"a":' * 30_000)[0].endswith(f"nested deeper than {MAX_DEPTH} levels")
    assert problems("[" * MAX_DEPTH + "]" * MAX_DEPTH) == []


def test_hostile_size_is_refused_before_it_is_read() -> None:
    """Neither many bytes nor many tokens cost more than a glance."""
    assert problems(b" " * (MAX_BYTES + 1)) == ["1:1 larger than 16 MiB, too large for a model config"]
    assert problems("[" + "1," * MAX_TOKENS + "1]")[0].startswith("1:1 more than 200,000 values")
    assert problems(b"\x80\x04" * MAX_TOKENS)[0].startswith("1:1 a byte that is not UTF-8")
    assert problems("9" * 10_000)[0] == "1:1 a number of 10000 digits"


def test_a_document_survives_pickling() -> None:
    """Work is handed to processes; also a document nested as deeply as is allowed."""
    document = pickle.loads(pickle.dumps(parse("[" * MAX_DEPTH + "]" * MAX_DEPTH)))
    assert isinstance(document, Document)
    assert document.errors == ()
    assert parse(DRAFT).data == pickle.loads(pickle.dumps(parse(DRAFT))).data


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_make_parsing_raise(text: bytes) -> None:
    """Whatever stands in a file, there is a document."""
    document = parse(text)
    assert document.errors or document.root is not None


@settings(max_examples=200, deadline=None)
@given(json_values, st.booleans(), st.sampled_from([None, 1]))
def test_valid_json_reads_as_json_reads_it(value: Any, escaped: bool, indent: int | None) -> None:
    """With escapes or without, on one line or on many."""
    text = json.dumps(value, ensure_ascii=escaped, indent=indent).encode("utf-8", "surrogatepass")
    document = parse(text)
    assert document.errors == ()
    assert json.loads(text) == document.data


@settings(max_examples=600, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=10).map("".join))
def test_exactly_what_json_refuses_is_a_problem(text: str) -> None:
    """The document is as strict as json, however it recovers."""
    try:
        expected = json.loads(text)
    except ValueError:
        assert parse(text).errors
    else:
        document = parse(text)
        assert document.errors == ()
        assert repr(expected) == repr(document.data)


@settings(max_examples=100, deadline=None)
@given(json_values)
def test_every_span_holds_its_value(value: Any) -> None:
    """What stands between start and end of a node is the JSON of its value."""
    text = json.dumps(value, ensure_ascii=False, indent=1)
    lines = text.split("\n")
    pending = [parse(text.encode("utf-8", "surrogatepass")).root]
    while pending:
        node = pending.pop()
        assert node is not None and node.span.end is not None
        start, end = node.span.start, node.span.end
        inside = lines[start.line - 1 : end.line]
        inside[-1] = inside[-1][: end.column - 1]
        inside[0] = inside[0][start.column - 1 :]
        assert json.loads("\n".join(inside)) == node.value
        pending += [*node.elements, *(child for _, child in node.items())]


def test_reading_says_what_where_and_what_to_do(tmp_path: Path) -> None:
    """Each way in which a named config cannot be read has its own sentence."""
    cases: dict[str, bytes] = {
        "broken.json": b'{\n  "a": 1,\n  "b": [2,\n}',
        "list.json": b"\n [1]",
        "null.json": b"null",
        "empty.json": b"",
        "binary.json": b"\x80\x04\x95" * 100,
        "huge.json": b" " * (MAX_BYTES + 1),
    }
    for name, data in cases.items():
        (tmp_path / name).write_bytes(data)

    def sentence(name: str) -> str:
        with pytest.raises(UnreadableInput) as caught:
            read_document(tmp_path / name, f"draft/{name}")
        return str(caught.value)

    assert sentence("nowhere.json") == "draft/nowhere.json does not exist. Check the path."
    assert sentence("list.json/x").startswith("draft/list.json/x does not exist")
    assert sentence(".") == "draft/. is a directory without a config.json. Name the config file itself."
    assert sentence("broken.json") == (
        "draft/broken.json:4:1: not valid JSON: expected ']' to close the list opened at line 3, column 8, found '}'. "
        "Mend it there and run again."
    )
    assert sentence("list.json").startswith("draft/list.json:2:2: holds a list where a config is one JSON object.")
    assert sentence("null.json").startswith("draft/null.json:1:1: holds null")
    assert sentence("empty.json").startswith("draft/empty.json:1:1: not valid JSON: the file is empty.")
    assert sentence("binary.json").startswith("draft/binary.json:1:1: not valid JSON: a byte that is not UTF-8")
    assert sentence("huge.json").startswith("draft/huge.json is larger than 16 MiB")
    assert sentence("nul\0byte").startswith("draft/nul\0byte cannot be read")
    assert sentence("x" * 5000).endswith("Check the path and its permissions.")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    """Reading a pipe would hang for ever."""
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(UnreadableInput, match="not a regular file"):
        read_document(tmp_path / "config.json", "config.json")


def test_a_model_directory_stands_for_its_config(tmp_path: Path) -> None:
    """``--draft models/draft`` means the config.json in it; any other path stands for itself."""
    assert (tmp_path, "models/draft") == config_path(tmp_path, "models/draft")
    (tmp_path / "config.json").write_text("{}")
    assert (tmp_path / "config.json", "models/draft/config.json") == config_path(tmp_path, "models/draft/")
