"""A client of Spark Connect has pyspark-client alone, and no py4j."""

from __future__ import annotations

import importlib.util
import re
import sys

from support.imports import ROOT

from skimql.engine.spark import java_faults


def test_the_errors_are_there_without_py4j(monkeypatch):
    for name in ("py4j", "py4j.protocol"):
        monkeypatch.setitem(sys.modules, name, None)
    spec = importlib.util.spec_from_file_location("without_py4j", java_faults.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert issubclass(module.Py4JJavaError, module.Py4JError)
    assert issubclass(module.Py4JNetworkError, module.Py4JError)
    assert module.Py4JError is not java_faults.Py4JError


def test_no_module_imports_py4j_where_it_is_read():
    top = re.compile(r"^(?:from|import) py4j", re.MULTILINE)
    assert [p.name for p in (ROOT / "engine").rglob("*.py") if top.search(p.read_text())] == []
