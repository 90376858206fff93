"""The direction of imports: grammar <- parser <- optimizer <- engine <- cli, sketches <- engine, errors below all."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("grammar", "parser", "optimizer", "sketches", "engine", "cli")

# What a folder may import from the package, and which libraries it may not.
ALLOWED = {
    "grammar": set(),
    "parser": {"grammar", "parser", "errors"},
    "optimizer": {"parser", "optimizer", "sketches", "errors"},
    "sketches": {"sketches"},
    "engine": {"parser", "optimizer", "sketches", "engine", "errors", "grammar"},
    "cli": {"cli", "errors", "root"},
}
FORBIDDEN_LIBRARIES = {
    "grammar": {"pyspark", "sqlglot", "lark", "numpy", "networkx"},
    "parser": {"pyspark", "numpy", "networkx", "pyarrow", "scipy"},
    "optimizer": {"pyspark", "sqlglot", "lark", "pyarrow"},
    "sketches": {"pyspark", "sqlglot", "lark", "networkx", "pyarrow"},
    "engine": {"typer", "rich", "prompt_toolkit"},
    "cli": {"pyspark", "sqlglot", "lark", "numpy", "networkx"},
}
# Only the shared vocabulary may be read by the optimizer from the parser, only sizes and variances from sketches.
OPTIMIZER_READS_FROM_PARSER = {"join_graph"}
SELF_NAMES = {"skimql", *FOLDERS, "errors"}


def modules():
    for folder in FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))


def imports_of(path):
    """Pairs (library or None, package part or None, module) of every import in the file."""
    depth = len(path.relative_to(ROOT).parts) - 1
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.split(".")[0], None, alias.name
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0:
                yield node.module.split(".")[0], None, node.module
                continue
            base = path.relative_to(ROOT).parts[:-1][: depth - (node.level - 1)]
            target = [*base, *(node.module or "").split(".")]
            target = [t for t in target if t]
            names = (
                [[*target, a.name] for a in node.names] if not node.module or len(target) == 1 else [target]
            )
            for parts in names:
                part = parts[0] if parts[0] in (*FOLDERS, "errors") else "root"
                yield None, part, ".".join(parts)


@pytest.mark.parametrize("path", list(modules()), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_follow_the_direction(path):
    folder = path.relative_to(ROOT).parts[0]
    for library, part, module in imports_of(path):
        if library is not None:
            assert library not in FORBIDDEN_LIBRARIES[folder], f"{path} imports {library}"
            assert library not in SELF_NAMES, f"{path}: inside the package imports are relative, not {module}"
        else:
            assert part in ALLOWED[folder], f"{path} imports {module}"
            if folder == "optimizer" and part == "parser":
                assert module.split(".")[1] in OPTIMIZER_READS_FROM_PARSER, f"{path} imports {module}"


@pytest.mark.parametrize("folder", [f for f in FOLDERS if f != "sketches"])
def test_package_pages_hold_a_docstring_and_nothing_else(folder):
    body = ast.parse((ROOT / folder / "__init__.py").read_text()).body
    assert len(body) == 1
    assert ast.get_docstring(ast.parse((ROOT / folder / "__init__.py").read_text()))


def test_the_library_of_sketches_imports_what_it_offers_when_it_is_asked_for():
    """`skimql.sketches` is for people who use it by itself; importing it must cost nothing."""
    tree = ast.parse((ROOT / "sketches" / "__init__.py").read_text())
    imported = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert imported == {"typing"}
    assert not any(isinstance(node, ast.Import) for node in tree.body)


def test_only_the_engine_names_pyspark():
    for path in [*modules(), ROOT / "errors.py", ROOT / "__init__.py"]:
        if "engine" not in path.relative_to(ROOT).parts:
            assert not any(lib == "pyspark" for lib, _, _ in imports_of(path)), path


def test_nothing_is_pickled_or_evaluated_by_name():
    for path in modules():
        for library, _, module in imports_of(path):
            assert library not in {"pickle", "cloudpickle", "marshal", "shelve"}, f"{path} imports {module}"
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"eval", "exec"}, f"{path}:{node.lineno}"


def test_the_engine_uses_the_dataframe_api_only():
    """Spark Connect has neither a JVM to talk to nor RDDs.

    `jobs` asks for progress where there is a context, `isolation` clones sessions where they are of this
    process, and `source_state` looks at analysed plans there.
    """
    for path in sorted((ROOT / "engine").rglob("*.py")):
        names = {n.attr for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Attribute)}
        allowed = {"isolation.py": {"_jvm", "_jdf", "_jsparkSession"}, "source_state.py": {"_jdf"}}
        assert not names & ({"_jvm", "_jdf", "_jsparkSession", "rdd"} - allowed.get(path.name, set())), path
        if path.parent.name != "spark" or path.name not in ("jobs.py", "session.py"):
            assert not names & {"_jsc", "sparkContext"}, path
