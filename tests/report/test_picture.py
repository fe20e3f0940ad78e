"""The pictures: what they show, and that they are files which stand alone."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from eaglelint.report.mermaid import mermaid_document
from eaglelint.report.page import html_document
from eaglelint.report.picture import panels, svg_document
from eaglelint.wiring import Evidence, Slot, Wiring

TRAINED = Wiring(
    "training",
    "train/<dump> & co.py",
    tuple(Slot("stream", k) for k in (3, 31, 59)),
    "exact",
    num_layers=61,
    evidence=(Evidence("train/dump.py", 15, 'append("<h>")', 0),),
)
SERVED = Wiring(
    "serving",
    "sglang 0.5.9 (DeepseekV3ForCausalLM)",
    (Slot("stream", 3), Slot("stream", 30), Slot("norm", 61)),
    "exact",
    num_layers=61,
    evidence=(Evidence("srt/models/deepseek v2.py", 2728, "aux.append(hidden)", 1),),
)
SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]


def test_the_picture_shows_both_ends() -> None:
    """The layers between the taps, each tap with its slot, and fc with what differs; the names are text, not markup."""
    shown = texts(svg_document(panels([TRAINED, SERVED])))
    layers = [text for text in shown if text.startswith("layer")]
    assert layers == ["layers 0 to 2", "layers 3 to 29", "layer 30", "layers 31 to 58", "layers 59 to 60"]
    assert [text for text in shown if re.match(r"slots? \d+(, \d+)*: ", text)] == [
        "slot 0: h[3]",
        "slot 1: h[31] ≠",
        "slot 2: h[59] ≠",
        "slot 0: h[3]",
        "slot 1: h[30] ≠",
        "slot 2: norm(h[61]) ≠",
    ]
    assert [text for text in shown if re.search(r"\] [=≠?] ", text)] == [
        "h[3] = h[3]",
        "h[31] ≠ h[30]",
        "h[59] ≠ norm(h[61])",
    ]
    assert "train/<dump> & co.py" in shown


def test_a_difference_has_another_shape() -> None:
    """Whoever sees no colours still sees a diamond and a broken line in place of a dot and a whole one."""
    root = ET.fromstring(svg_document(panels([TRAINED, SERVED])))
    kinds = [element.get("class") for element in root.iter() if (element.get("class") or "").startswith("dot")]
    assert sorted(kinds) == ["dot-differs"] * 4 + ["dot-same"] * 2
    assert {element.tag for element in root.iter() if element.get("class") == "dot-differs"} == {f"{SVG}path"}
    assert {element.tag for element in root.iter() if element.get("class") == "dot-same"} == {f"{SVG}circle"}


def test_taps_lead_to_their_lines() -> None:
    """A tap whose capture is known is a link to it; one without is none."""
    root = ET.fromstring(svg_document(panels([TRAINED, SERVED])))
    links = [element.get("href") for element in root.iter(f"{SVG}a")]
    assert links == ["train/dump.py#L15", "srt/models/deepseek v2.py#L2728"]


def test_nothing_is_drawn_outside() -> None:
    """Every coordinate lies in the view, also with many slots in one place and a name that is long."""
    many = replace(SERVED, name="x" * 300, slots=tuple(Slot("stream", k) for k in range(0, 60, 4)))
    root = ET.fromstring(svg_document(panels([replace(TRAINED, name="y" * 300), many])))
    width, height = (float(root.get(side) or 0) for side in ("width", "height"))
    for group in root.iter(f"{SVG}g"):
        for element in group.iter():
            x, y = float(element.get("x") or 0), float(element.get("y") or 0)
            assert 0 <= x + float(element.get("width") or 0) <= width
            assert 0 <= y <= height


@pytest.mark.parametrize(
    "wirings",
    [
        [],
        [TRAINED],
        [SERVED],
        [replace(SERVED, slots=(), status="unknown", reason="a loop", num_layers=None)],
        [TRAINED, SERVED, replace(SERVED, name="vllm")],
        [replace(TRAINED, slots=(Slot("unknown"), Slot("partial", 2)))],
    ],
)
def test_every_set_of_wirings_can_be_drawn(wirings: list[Wiring]) -> None:
    """Well-formed, alone or in a page, and without any address that would be fetched."""
    ET.fromstring(svg_document(panels(wirings)))
    page = html_document(panels(wirings))
    HTMLParser().feed(page)
    for text in (page, svg_document(panels(wirings))):
        assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", text)
        assert "<script" not in text
    assert mermaid_document(panels(wirings)).startswith("flowchart LR\n")


def test_each_engine_has_its_panel() -> None:
    """The training stands beside each engine that comes after it, and alone where none does."""
    other = replace(SERVED, name="vllm")
    second = replace(TRAINED, name="another")
    assert [(panel.trained, panel.served) for panel in panels([TRAINED, SERVED, other, second])] == [
        (TRAINED, SERVED),
        (TRAINED, other),
        (second, None),
    ]


def test_the_page_says_it_in_words() -> None:
    """What differs, as a list, and the evidence as links."""
    page = html_document(panels([TRAINED, SERVED]))
    assert "<li><b>slot 1</b> was trained on h[31] and is served h[30]</li>" in page
    assert '<a href="train/dump.py#L15">train/dump.py:15</a> slot 0: <code>append(&quot;&lt;h&gt;&quot;)</code>' in page
    same = html_document(panels([TRAINED, replace(SERVED, slots=TRAINED.slots)]))
    assert "Every slot is served what it was trained on." in same


def test_mermaid() -> None:
    """A dotted arrow and another shape where a slot differs."""
    chart = mermaid_document(panels([replace(TRAINED, name='a "b" #1'), SERVED]))
    assert '["a #quot;b#quot; #35;1 / sglang 0.5.9 (DeepseekV3ForCausalLM)"]' in chart
    assert 'p0_s0["slot 0"] --> p0_fc' in chart
    assert 'p0_s1{{"slot 1"}} --> p0_fc' in chart
    assert '-. "served ≠" .-> p0_s1' in chart


def test_several_pairs_are_a_matrix() -> None:
    """A row for each draft, a column for each engine, and in each cell the slots that differ, leading to the picture."""
    right = replace(SERVED, slots=TRAINED.slots, name="vllm")
    shown = [replace(panel, about="draft") for panel in panels([TRAINED, SERVED, right])]
    shown += panels([replace(TRAINED, name="other"), replace(SERVED, status="conditional", slots=TRAINED.slots)])
    page = html_document(shown)
    table = ET.fromstring(page[page.index("<table>") : page.index("</table>")].replace("<br>", "") + "</table>")
    rows = [["".join(cell.itertext()) for cell in row] for row in table]
    assert rows == [
        ["", "sglang 0.5.9 (DeepseekV3ForCausalLM)", "vllm"],
        ["draft", "≠ slots 1, 2", "= the same"],
        ["other", "? none is known to differ", "–"],
    ]
    for link in table.iter("a"):
        assert f'<section id="{link.get("href", "")[1:]}">' in page
    assert "<table>" not in html_document(panels([TRAINED, SERVED]))
