"""A rule's page is read as the projects that it shows and the findings that it promises."""

from __future__ import annotations

import pytest

from eaglelint.rule_page import SECTIONS, Example, Expected, parse_page

PAGE = """\
# boundary-mismatch (CAP002)

## What it does
Compares.

## Why it is bad
```python
# a comment, not a heading
```

## Example
Some words.

```json title="draft/config.json"
{"architectures": ["LlamaForCausalLMEagle3"]}
```
```python title="training/dump.py"
ids = [2, 30, 58]
hook(ids)  # warning: CAP001
```
```console
$ eaglelint scan draft \\
    --serving sglang==0.5.9
Found 2 errors
```
```expect
draft/config.json:1:2 error[CAP002] certain ~ slot 1: h[3]
```

### Nested under eagle_config
````json title="config.json"
{}
````
```expect
```

## Use instead
```text include="mini-sglang" title="serving"
A small engine.
```
```json title="config.json"
{}
```

## References
- SGLang 0.5.9
"""


def test_sections_in_order() -> None:
    """The sections keep their order and their text, code included."""
    page = parse_page(PAGE)
    assert (page.name, page.code) == ("boundary-mismatch", "CAP002")
    assert tuple(section.heading for section in page.sections) == SECTIONS
    assert page.sections[1].text == "```python\n# a comment, not a heading\n```"
    assert page.sections[4].text == "- SGLang 0.5.9"


def test_examples() -> None:
    """Each heading with files is one project; its findings come from the block and from marked lines."""
    assert parse_page(PAGE).examples == (
        Example(
            "Example",
            "Example",
            {
                "draft/config.json": '{"architectures": ["LlamaForCausalLMEagle3"]}\n',
                "training/dump.py": "ids = [2, 30, 58]\nhook(ids)  # warning: CAP001\n",
            },
            ("scan", "draft", "--serving", "sglang==0.5.9"),
            (
                Expected("training/dump.py", 2, "warning", "CAP001"),
                Expected("draft/config.json", 1, "error", "CAP002", 2, "certain", "slot 1: h[3]"),
            ),
        ),
        Example("Example", "Nested under eagle_config", {"config.json": "{}\n"}, ("scan", "."), ()),
        Example("Use instead", "Use instead", {"config.json": "{}\n"}, ("scan", "."), (), {"serving": "mini-sglang"}),
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('```json title="a.json"\n{}\n```', "does not say what is found"),
        ('```json title="../a.json"\n{}\n```', "must lie inside the project"),
        ('```json title="a.json"\n{}\n```\n```json title="a.json"\n{}\n```', "has the file 'a.json' twice"),
        ('```json title="a.json"\n{}', "line 3: the fenced block that begins here never ends"),
        ('```text include="a" title="../b"\n```', "must lie inside the project"),
        ('```text include="a"\n```\n```text include="b"\n```', "includes two trees at '.'"),
        ('```text include="a"\n```', "has no files"),
        ("```expect\na.json:1 error[CAP002]\n```", "does not read like"),
        ("```expect\na.json:1:1 error[CAP002] certain\n```", "has no files"),
        ("```console\n$ rm -r .\n```", "a console block holds one command"),
    ],
)
def test_a_malformed_page_is_refused(body: str, message: str) -> None:
    """What would silently test nothing is an error."""
    with pytest.raises(ValueError, match=message.replace("[", r"\[")):
        parse_page(f"# boundary-mismatch (CAP002)\n## Example\n{body}\n")


def test_a_page_names_its_rule() -> None:
    """The first heading holds the name and the code."""
    with pytest.raises(ValueError, match="begins with its name and code"):
        parse_page("# Boundary mismatch\n")
