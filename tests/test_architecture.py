"""The direction of imports: grammar <- parser <- optimizer <- engine <- cli, sketches <- engine, errors below all.

Within a folder its sub-packages have an order too, and no modules import each other in a circle.
"""

from __future__ import annotations

import ast
import tomllib

import networkx as nx
import pytest
from support.imports import FOLDERS, ROOT, graph, parsed, room
from support.imports import modules as all_modules

# What a folder may import from the package, and which libraries it may not.
ALLOWED = {
    "grammar": set(),
    "parser": {"grammar", "parser", "errors"},
    "optimizer": {"parser", "optimizer", "sketches", "errors"},
    "sketches": {"sketches"},
    "engine": {"parser", "optimizer", "sketches", "engine", "errors", "grammar"},
    "cli": {"cli", "errors", "root", "engine", "parser"},
}
# What the command line takes beside the names that the package offers to everybody.
CLI_TAKES = {
    "engine.extension.jar": {"JDK_HINT", "NotBuilt", "build", "find", "own_place"},
    "engine.extension.thrift": {"serving"},
    "engine.queries.exact": {"collected"},
    "engine.queries.in_parts": {"each_part"},
    "engine.results.display": {"cell_text"},
    "engine.sources.paths": {"near_file"},
    "engine.spark.doctor": {"checks"},
    "engine.spark.scratch": {"watch"},
    "parser.statement": {"is_approximate", "split_statements"},
}
# Sub-packages, each may import those before it; modules outside of sub-packages stand wherever there is no circle.
ORDER = {
    "engine": (
        "catalog",
        "spark",
        "sources",
        "execution",
        "statistics",
        "results",
        "materialized",
        "queries",
        "streams",
        "memory_backend",
        "extension",
    ),
    "optimizer": ("prediction", "candidates", "workload", "describe"),
    "sketches": ("hashing", "intervals", "joins", "samples", "distinct", "reference"),
}
# Until a query runs on a context alone.
CIRCLES_KNOWN: set[tuple[str, str]] = set()
FORBIDDEN_LIBRARIES = {
    "grammar": {"pyspark", "sqlglot", "lark", "numpy", "networkx"},
    "parser": {"pyspark", "numpy", "networkx", "pyarrow", "scipy"},
    "optimizer": {"pyspark", "sqlglot", "lark", "pyarrow"},
    "sketches": {"pyspark", "sqlglot", "lark", "networkx", "pyarrow"},
    "engine": {"typer", "rich", "prompt_toolkit"},
    "cli": {"pyspark", "sqlglot", "lark", "numpy", "networkx"},
}
# Only the shared vocabulary may be read by the optimizer from the parser, only sizes and variances from sketches.
OPTIMIZER_READS_FROM_PARSER = {"join_graph", "diagram"}
SELF_NAMES = {"skimql", *FOLDERS, "errors"}


def modules():
    for folder in FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))


def imports_of(path):
    """Pairs (library or None, package part or None, module) of every import in the file."""
    depth = len(path.relative_to(ROOT).parts) - 1
    for node in ast.walk(parsed(path)):
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


def test_the_command_line_takes_what_everybody_may_and_a_few_things_more():
    imports = graph()
    taken = {
        target: data["names"]
        for name, target, data in imports.edges(data=True)
        if name.startswith("cli") and not target.startswith("cli") and target not in ("", "errors")
    }
    assert taken == CLI_TAKES


def test_no_modules_import_each_other_in_a_circle():
    """Imports in functions and for types count."""
    imports = graph()
    imports.remove_edges_from(CIRCLES_KNOWN)
    circles = [sorted(c) for c in nx.strongly_connected_components(imports) if len(c) > 1]
    assert not circles


def test_known_circles_are_there():
    assert set(graph().edges) >= CIRCLES_KNOWN


@pytest.mark.parametrize("folder", ORDER)
def test_sub_packages_import_those_before_them(folder):
    order = ORDER[folder]
    found = {p.parent.name for p in (ROOT / folder).glob("*/__init__.py")}
    assert found == set(order), "a new sub-package gets its place in the order"
    rooms = nx.DiGraph()
    for name, target in set(graph().edges) - CIRCLES_KNOWN:
        own, other = room(name), room(target)
        if own == other or not own.startswith(f"{folder}.") or not other.startswith(f"{folder}."):
            continue
        rooms.add_edge(own, other)
        places = [order.index(r.partition(".")[2]) for r in (own, other) if r.partition(".")[2] in order]
        assert places == sorted(places, reverse=True), f"{name} imports {target}"
    assert nx.is_directed_acyclic_graph(rooms), nx.find_cycle(rooms)


def test_the_wheel_has_every_package():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    there = {path.parent for name, path in all_modules().items() if path.name == "__init__.py"}
    assert set(listed) == {".".join(("skimql", *p.relative_to(ROOT).parts)) for p in there}


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
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"eval", "exec"}, f"{path}:{node.lineno}"


def test_the_engine_uses_the_dataframe_api_only():
    """Spark Connect has neither a JVM to talk to nor RDDs.

    `checkpoints` looks for a class of Spark's, `jobs` asks for progress and `meter` for what jobs took where there is a context, `isolation` clones sessions where they are of this
    process, and `plan_facts` looks at analysed plans there; `session` makes PySpark forget a JVM that it has ended. The extension is for sessions of this process alone.
    """
    for path in sorted((ROOT / "engine").rglob("*.py")):
        names = {n.attr for n in ast.walk(parsed(path)) if isinstance(n, ast.Attribute)}
        allowed = {
            "checkpoints.py": {"_jvm"},
            "isolation.py": {"_jvm", "_jdf", "_jsparkSession"},
            "plan_facts.py": {"_jdf", "_jvm"},
            "meter.py": {"_jvm"},
            "session.py": {"_jvm"},
        }
        own = (
            {"_jvm", "_jdf", "_jsparkSession"}
            if path.parent.name == "extension"
            else allowed.get(path.name, set())
        )
        assert not names & ({"_jvm", "_jdf", "_jsparkSession", "rdd"} - own), path
        if path.parent.name != "spark" or path.name not in ("jobs.py", "meter.py", "session.py"):
            assert not names & {"_jsc", "sparkContext"}, path
