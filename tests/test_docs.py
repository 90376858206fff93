"""What README, CONTRIBUTING and docs name is there: error codes, paths, modules, commands, names of the glossary."""

from __future__ import annotations

import ast
import importlib.util
import re
import tomllib
from pathlib import Path

import pytest
from support.architecture import page
from support.imports import ROOT

import skimql
import skimql.sketches

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
LINKED = [*PAGES, ROOT / "CHANGELOG.md"]

# Defaults of bases that are never raised themselves, or always with a code of their own.
VARIABLES = {"SKIMQL_DEBUG"}
# Names in the files of a catalog and of a project, settings of the shell and of Spark's configuration, of no module.
METADATA = {
    "skimql.arrays",
    "skimql.sha256",
    "skimql.toml",
    "skimql.confirm",
    "skimql.python",
    "skimql.catalog",
}
BASES = {
    "SKIMQL_ERROR",
    "SKIMQL_STREAM_ERROR",
    "SKIMQL_DATA_ERROR",
    "SKIMQL_ENVIRONMENT_FAULT",
    "SKIMQL_UNSUPPORTED_QUERY",
}

_CODE = re.compile(r"```\w*\n(.*?)```|`([^`\n]+)`", re.DOTALL)
_PATH = re.compile(
    r"^(?:engine|optimizer|sketches|parser|grammar|cli|tests|benchmarks|docs|\.ci)(?:/[\w.\-]+)*/?(?:::\w+)?$"
)
_LINK = re.compile(r"\]\(([^)#\s]+)")
_ANCHOR = re.compile(r"\]\(([^)#\s]*)#([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_MODULE = re.compile(r"\bskimql(?:\.[a-z_]\w*)+")
_RUN = re.compile(r"python -m ([\w.]+)|\bpytest ([\w./]+)|\bpython (tests/[\w./]+)|\bmake ([a-z][\w-]*)")


def test_every_code_is_documented():
    files = [p for f in ("parser", "optimizer", "engine", "cli") for p in (ROOT / f).rglob("*.py")]
    files += (ROOT / "engine" / "extension" / "java" / "src").rglob("*.java")
    text = "\n".join(p.read_text() for p in [*files, ROOT / "errors.py"])
    used = set(re.findall(r'"(SKIMQL_[A-Z_]+)"', text)) - BASES - VARIABLES
    documented = set(re.findall(r"`(SKIMQL_[A-Z_]+)`", (ROOT / "docs" / "errors.md").read_text()))
    assert used == documented


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_path_module_and_command_named_is_there(path):
    text = path.read_text()
    code = [whole or inline for whole, inline in _CODE.findall(text)]
    words = [w.strip(",;:()") for c in code for w in c.split()]
    missing = [w for w in words if _PATH.match(w) and not (ROOT / w.partition("::")[0]).exists()]
    missing += [x for x in _LINK.findall(text) if "://" not in x and not (path.parent / x).exists()]
    missing += [m for c in code for m in _MODULE.findall(c) if not _is_known(m)]
    missing += [" ".join(filter(None, run)) for c in code for run in _RUN.findall(c) if not _runs(*run)]
    assert not missing


@pytest.mark.parametrize("path", LINKED, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_anchor_is_a_heading(path):
    """`make docs` holds this for the site; here it is held for whoever reads the files."""
    links = [(page, anchor) for page, anchor in _ANCHOR.findall(path.read_text()) if "://" not in page]
    missing = [
        (page, anchor)
        for page, anchor in links
        if anchor not in _anchors(path.parent / page if page else path)
    ]
    assert not missing


def _anchors(path: Path) -> set[str]:
    headings = _HEADING.findall(re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL))
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def test_every_page_is_in_the_navigation_and_every_public_name_on_a_page():
    site = (ROOT / "mkdocs.yml").read_text()
    pages = {str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md")}
    assert [p for p in pages if f" {p}\n" not in site] == []
    shown = {
        name.rpartition(".")[2]
        for page in (ROOT / "docs" / "api").glob("*.md")
        for name in re.findall(r"^::: ([\w.]+)$", page.read_text(), re.MULTILINE)
    }
    assert shown == {*skimql.__all__, *skimql.sketches.__all__} - {"__version__"}


def _is_known(name: str) -> bool:
    """Whether a dotted name is a module of ours, something that one defines, a setting, or a key in our files."""
    parts = name.split(".")[1:]
    if f"skimql.{parts[0]}" in _settings() | METADATA:
        return True
    for length in range(len(parts), -1, -1):
        place = ROOT.joinpath(*parts[:length])
        file = place / "__init__.py" if (place / "__init__.py").is_file() else place.with_suffix(".py")
        if file.is_file():
            return length == len(parts) or re.search(rf"\b{parts[length]}\b", file.read_text()) is not None
    return False


def _settings() -> set[str]:
    tree = ast.parse((ROOT / "engine" / "settings.py").read_text())
    fields = [n.target for n in ast.walk(tree) if isinstance(n, ast.AnnAssign)]
    return {f"skimql.{f.id}" for f in fields if isinstance(f, ast.Name)}


def _runs(module: str, tests: str, script: str, target: str) -> bool:
    if module:
        ours = ROOT.joinpath(*module.split("."))
        return ours.with_suffix(".py").exists() or (ours / "__main__.py").exists() or _installed(module)
    if target:
        return re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE) is not None
    return (ROOT / (tests or script)).exists()


def _installed(module: str) -> bool:
    return module.split(".")[0] != "benchmarks" and importlib.util.find_spec(module) is not None


def test_the_diagrams_are_those_of_the_imports():
    text = (ROOT / "docs" / "architecture.md").read_text()
    assert page(text) == text, "python tests/support/architecture.py"


def test_the_page_of_the_architecture_names_every_sub_package():
    text = (ROOT / "docs" / "architecture.md").read_text()
    assert [
        p for p in (ROOT / "engine").glob("*/__init__.py") if f"`engine/{p.parent.name}/`" not in text
    ] == []


def test_scripts_of_the_project_are_those_that_are_documented():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    readme = (ROOT / "README.md").read_text()
    assert all(f"{name} " in readme for name in scripts)
