"""Trees in the terminal."""

from __future__ import annotations

import json

from skimql.cli.shell.tree import as_tree, drawn, join_tree


def edge(left, right, key):
    return {"left": left, "right": right, "left_keys": [f"`{key}`"], "right_keys": [f"`{key}`"]}


TOLD = {
    "vertices": [
        {"table": "planes", "alias": "p", "filter": "`seats` > 100"},
        {"table": "flights", "alias": "f", "filter": None},
        {"table": "weather", "alias": "weather", "filter": None},
        {"table": "airports", "alias": "a", "filter": None},
    ],
    "edges": [edge(0, 1, "tailnum"), edge(1, 2, "origin"), edge(3, 2, "faa")],
}


def test_a_join_graph_hangs_on_the_table_with_most_joins():
    assert join_tree(TOLD) == [
        "flights f",
        "├ f.tailnum = p.tailnum  planes p where seats > 100",
        "└ f.origin = weather.origin  weather",
        "  └ weather.faa = a.faa  airports a",
    ]


def test_what_closes_a_circle_stands_below_and_a_table_alone_by_itself():
    told = {**TOLD, "edges": [edge(0, 1, "x"), edge(1, 2, "y"), edge(2, 0, "z")]}
    assert join_tree(told)[3:] == ["and weather.z = p.z", "airports a"] or sorted(join_tree(told)[3:]) == [
        "airports a",
        "and weather.z = p.z",
    ]
    assert join_tree({}) == []


def test_indentation_becomes_a_tree_of_the_same_width():
    lines = ["plan", "  scan a", "    0: hash", "    1: hash", "  scan b", "done"]
    assert as_tree(lines) == ["plan", "├ scan a", "│ ├ 0: hash", "│ └ 1: hash", "└ scan b", "done"]
    assert all(line.isascii() for line in as_tree(lines, unicode=False))


def test_the_graph_of_a_text_is_drawn_in_its_place():
    text = "join graph: chain, 2 tables\n  0  planes p\n  0 -- 1 ...\nanswer: hash\n  more"
    assert drawn(text, json.dumps(TOLD))[-3:] == ["", "answer: hash", "└ more"]
    assert drawn("answer: x\n  y", "{}") == ["answer: x", "└ y"]
