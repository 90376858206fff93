"""What the site needs beside the pages of docs/: files from outside of it, and diagrams drawn when it is built.

A link that leaves docs/ for a file of the project (README, CHANGELOG, an example, a picture) gets a page, or the file
itself, in the site; one that leads nowhere is left as it is, and the strict build fails on it. Diagrams in Mermaid
become SVG here: Mermaid itself would be fetched by the reader's browser.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from skimql.optimizer.describe.svg import as_svg
from skimql.parser.diagram import Diagram

ROOT = Path(__file__).resolve().parents[2]

# Files of the project that are pages of the navigation.
PAGES = {
    "README.md": "project/readme.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
}
_PICTURES = {".png", ".svg"}
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_MERMAID = re.compile(r"^```mermaid\n(.*?)^```", re.MULTILINE | re.DOTALL)
_NODE = re.compile(r"^  (\w+)\[(.*)\]$")
_EDGE = re.compile(r"^  (\w+) --> (\w+)$")


def on_files(files: Files, config: Any) -> Files:
    """Add what pages link to outside of docs/."""
    wanted = dict(PAGES)
    for file in files.documentation_pages():
        wanted |= _outside(f"docs/{file.src_uri}", file.content_string)
    for source in PAGES:
        wanted |= _outside(source, (ROOT / source).read_text(encoding="utf-8"))
    for source, target in wanted.items():
        path = ROOT / source
        if path.suffix in _PICTURES:
            files.append(File.generated(config, target, abs_src_path=str(path)))
        else:
            files.append(File.generated(config, target, content=_page(source, path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links that leave docs/ to their place in the site, and draw diagrams."""
    homes = {target: source for source, target in PAGES.items()}
    source = homes.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    markdown = _turned(markdown, source, page.file.src_uri)
    return _MERMAID.sub(lambda found: _drawn(found.group(1)), markdown)


def _turned(markdown: str, source: str, place: str) -> str:
    """Links of a file of the project, as its page in the site has them."""

    def link(found: re.Match[str]) -> str:
        path, mark, anchor = found.group(2).partition("#")
        meant = _meant(source, path)
        if meant is None:
            return found.group()
        target = _place(meant)
        return f"{found.group(1)}{os.path.relpath(target, os.path.dirname(place) or '.')}{mark}{anchor})"

    parts, last = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [_LINK.sub(link, markdown[last : fence.start()]), fence.group()]
        last = fence.end()
    return "".join([*parts, _LINK.sub(link, markdown[last:])])


def _outside(source: str, text: str) -> dict[str, str]:
    """Files outside of docs/ to which a text links, each with its place in the site."""
    meant = [_meant(source, link.partition("#")[0]) for _, link, _ in _LINK.findall(_FENCE.sub("", text))]
    return {m: _place(m) for m in meant if m is not None and not m.startswith("docs/")}


def _meant(source: str, link: str) -> str | None:
    """The file of the project that a link of `source` means; None for the web, anchors and what is not there."""
    if not link or "://" in link or link.startswith("mailto:"):
        return None
    path = os.path.normpath(os.path.join(os.path.dirname(source), link))
    return path if not path.startswith("..") and (ROOT / path).exists() else None


def _place(source: str) -> str:
    if source in PAGES:
        return PAGES[source]
    if source.startswith("docs/"):
        inside = source.removeprefix("docs/")
        return f"{inside}/index.md" if (ROOT / source).is_dir() else inside
    return f"files/{source}" if Path(source).suffix in _PICTURES | {".md"} else f"files/{source}.md"


def _page(source: str, path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    return f"# {source}\n\n````{path.suffix.removeprefix('.')}\n{text}````\n"


def _drawn(text: str) -> str:
    diagram = Diagram()
    for line in text.splitlines()[1:]:
        node, edge = _NODE.match(line), _EDGE.match(line)
        if node:
            diagram.box(*node.groups())
        elif edge:
            diagram.line(*edge.groups(), arrow=True)
        else:
            raise ValueError(f"a diagram has a line that is not drawn: {line}")
    return f'<div class="diagram">{as_svg(diagram)}</div>\n'
