"""Diagrams as Mermaid."""

from skimql.parser.diagram import Diagram


def test_texts_are_escaped():
    diagram = Diagram()
    diagram.box("v0", "a", "x = '\"<b>#'\n AND `y` > 2")
    assert diagram.mermaid().splitlines()[1] == "  v0[\"a<br/>x = '#quot;#lt;b#gt;#35;' AND y #gt; 2\"]"


def test_boxes_come_before_lines_and_arrows_are_told_apart():
    diagram = Diagram()
    diagram.box("a", "one")
    diagram.box("b", "two")
    diagram.line("a", "b", "k = k", arrow=True)
    diagram.line("b", "a")
    assert diagram.mermaid().splitlines()[3:] == ['  a -->|"k = k"| b', "  b --- a"]
