"""docs/methods.md: what each method can, by the registry, and which combinations are refused, by `benchmarks.matrix`.

``python tests/support/methods_page.py [FILE]`` writes it, FILE being what the benchmark has written; without one the table of
the registry alone.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "methods.md"
HEAD = """# Methods

What each method can; `optimizer/methods.py` is where the engine looks it up, and this table is made from it. `USING name`
asks for a method; the others are taken where they fit. A combination is honoured or refused with a code and a way out:
`python -m benchmarks.matrix --json FILE` asks every question with every clause, and exits with 1 if one is silently
answered otherwise. `Answer.method` says by which method an answer came.

"""
REFUSED = """
## Refused combinations

Of the demo tables, as `python -m benchmarks.matrix --only-plan` finds them (by footers alone; a run looks at the tables first and may
plan what is refused here for its accuracy), with nothing kept, sketches kept, and `cache = true`, by
each route. `*` stands for all values of a column.

"""


def table() -> str:
    """The registry as a table."""
    from skimql.optimizer.methods import METHODS

    lines = [
        "| method | `USING` | what it does | COUNT, SUM, AVG | COUNT(DISTINCT) | groups | `SIZE` | `ERROR WITHIN` "
        "| catalog | route | streams |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for m in METHODS.values():
        sums, counting = {"count", "sum", "avg"} <= m.aggregates, "count_distinct" in m.aggregates
        cells = [
            f"`{m.name}`",
            _yes(m.named),
            m.what,
            _yes(sums),
            "also of sets" if "set" in m.aggregates else _yes(counting),
            _yes(m.groups),
            _yes(m.sized),
            m.error,
            _yes(m.stored),
            ", ".join(sorted(m.routes)),
            _yes(m.streams),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def refused(records: list[dict]) -> str:
    """The refused cells: those of one shape, clause, code and reason in one line."""
    lines = ["| question | clause | kept | route | code | reason | try |", "|---|---|---|---|---|---|---|"]
    kinds = {name: {r[name] for r in records} for name in ("kept", "route", "clause")}
    groups: dict[tuple[str, ...], list[dict]] = {}
    for record in (r for r in records if r["outcome"] == "refused"):
        reason = re.sub(r"\d[\d.,]*(?=[ ;]|$)", "n", record["reason"])
        key = (record["shape"], record["code"], reason, record["way_out"])
        groups.setdefault(key, []).append(record)
    for (shape, code, reason, way_out), found in groups.items():
        told = {name: sorted({r[name] for r in found}) for name in kinds}
        if len({(r["clause"], r["kept"], r["route"]) for r in found}) == len(found):
            parts = {
                name: "*"
                if set(values) == kinds[name]
                else ", ".join(f"`{v}`" if v else "none" for v in values)
                for name, values in told.items()
            }
            cells = (
                shape,
                parts["clause"],
                parts["kept"].replace("`", ""),
                parts["route"],
                f"`{code}`",
                reason,
                way_out,
            )
            lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    return "\n".join(lines) + "\n"


def page(records: list[dict]) -> str:
    """The whole page."""
    if not records:
        return HEAD + table()
    outcomes = Counter(r["outcome"] for r in records)
    counts = f"{len(records):,} combinations: {outcomes['answered']:,} answered, {outcomes['refused']:,} refused.\n\n"
    return HEAD + table() + REFUSED + counts + refused(records)


def _yes(holds: bool) -> str:
    return "yes" if holds else ""


if __name__ == "__main__":
    PAGE.write_text(page(json.loads(Path(sys.argv[1]).read_text()) if len(sys.argv) > 1 else []))
