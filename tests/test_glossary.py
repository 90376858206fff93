"""The code obeys the glossary: what modules, classes, functions and fields are not called, and where its terms live."""

from __future__ import annotations

import ast
import re

import pytest
from support.imports import ROOT, modules

GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
NOT_USED = {
    "kept",
    "making",
    "eaten",
    "standing",
    "fresh",
    "glance",
    "helping",
    "helpings",
    "decide",
    "plain",
    "memory",
}
# What they mean in these names is what everybody means by them.
ALLOWED = {
    "LEAST_MEMORY",  # of the machine
    "_memory",
    "_memory_bytes",
    "MemoryFolder",  # files that are on no disk
    "memory_backend",
    "NOT_IN_MEMORY",
    "PLAIN",  # types without parts
    "plain_request",  # a command line
}


def test_no_module_class_function_or_field_has_a_word_that_is_not_used():
    found = {
        (module, name)
        for module, path in modules().items()
        if module.startswith(("engine", "optimizer"))
        for name in _defined(module, path)
        if NOT_USED & set(re.findall(r"[a-z]+", re.sub(r"([A-Z])", r"_\1", name).lower()))
    }
    ours = {f for f in found if f[1] not in ALLOWED and not f[1].startswith("Memory")}
    assert ours == set()


def _defined(module, path):
    yield from module.split(".")
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef):
            yield node.name
            yield from (
                f.target.id
                for f in node.body
                if isinstance(f, ast.AnnAssign) and isinstance(f.target, ast.Name)
            )
        elif isinstance(node, ast.FunctionDef):
            yield node.name
    yield from (
        target.id
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    )


@pytest.mark.parametrize("line", [x for x in GLOSSARY.splitlines() if x.startswith("| **")])
def test_terms_stand_in_order_and_name_where_they_live(line):
    terms = [x.lower() for x in re.findall(r"^\| \*\*(.*?)\*\*", GLOSSARY, re.MULTILINE)]
    assert terms == sorted(terms)
    assert all((ROOT / place).exists() for place in re.findall(r"`([\w/.]+)`", line.rpartition(" | ")[2]))
