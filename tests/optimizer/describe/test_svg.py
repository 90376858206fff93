"""Diagrams as SVG."""

import xml.etree.ElementTree as ET

import pytest

from skimql.optimizer.describe.svg import as_svg
from skimql.parser.diagram import Diagram

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*lines, boxes=("a", "b", "c", "d"), arrow=True):
    found = Diagram()
    for name in boxes:
        found.box(name, f"box {name}", "rows < 5 & 'x'")
    for start, end in lines:
        found.line(start, end, "k = k", arrow=arrow)
    return found


def rectangles(diagram):
    """Of every box of an SVG: left, top, right, bottom."""
    found = [r for r in ET.fromstring(as_svg(diagram)).iter(f"{SVG}rect") if r.get("rx")]
    sides = [[float(r.get(n)) for n in ("x", "y", "width", "height")] for r in found]
    return [(x, y, x + width, y + height) for x, y, width, height in sides]


SHAPES = {
    "nothing": [],
    "chain": [("a", "b"), ("b", "c"), ("c", "d")],
    "star": [("a", "d"), ("b", "d"), ("c", "d")],
    "two parts": [("a", "b"), ("c", "d")],
    "circle": [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")],
    "twice": [("a", "b"), ("a", "b")],
}


@pytest.mark.parametrize("arrow", [True, False])
@pytest.mark.parametrize("shape", list(SHAPES))
def test_no_box_of_a_drawing_covers_another_or_leaves_it(shape, arrow):
    diagram = drawn(*SHAPES[shape], arrow=arrow)
    boxes = rectangles(diagram)
    assert len(boxes) == 4
    for i, (left, top, right, bottom) in enumerate(boxes):
        assert all(
            right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
            for other in boxes[i + 1 :]
        )
    size = ET.fromstring(as_svg(diagram))
    assert max(b[2] for b in boxes) <= float(size.get("width"))
    assert max(b[3] for b in boxes) <= float(size.get("height"))


def test_arrows_lead_from_left_to_right():
    boxes = rectangles(drawn(*SHAPES["star"]))
    assert all(box[2] < boxes[3][0] for box in boxes[:3])


def test_texts_are_escaped():
    diagram = Diagram()
    diagram.box("v0", "a", "x = '\"<b>#'\n AND `y` \x07> 2")
    told = [t.text for t in ET.fromstring(as_svg(diagram)).iter(f"{SVG}text")]
    assert told == ["a", "x = '\"<b>#' AND y > 2"]
