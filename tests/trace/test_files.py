"""On which lines words stand: what is looked for in the files of another word is found all the same."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from eaglelint.trace.files import Files

_WORDS = ["aux", "hidden_states", "aux_hidden_states", "_get_hidden_states", "Model(", "LlamaModel(", "MyLlamaModel("]


@given(st.lists(st.lists(st.sampled_from(_WORDS), max_size=3), min_size=1, max_size=6), st.permutations(_WORDS))
def test_words_of_one_kind_share_a_search(files: list[list[str]], asked: list[str]) -> None:
    """In whichever order words are asked for, the lines are those of a plain search."""
    looked = Files([])
    looked.sources = {str(Path.cwd() / f"{i}.py"): "\n".join(lines).encode() for i, lines in enumerate(files)}
    for word in asked:
        pattern = re.escape(word) if word.endswith("(") else None
        plain = re.compile(pattern or rf"(?<!\w){re.escape(word)}(?!\w)")
        expected = {
            f"{i}.py": [n for n, line in enumerate(lines, 1) if plain.search(line)] for i, lines in enumerate(files)
        }
        found = {outline.path.name: lines for outline, lines in looked.lines_with(word, pattern).items()}
        assert found == {name: lines for name, lines in expected.items() if lines}
