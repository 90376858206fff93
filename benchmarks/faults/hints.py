"""Ways out, typed: random EXISTS conditions and grouped values whose errors print SQL, held against the exact answer."""

from __future__ import annotations

import random
from pathlib import Path

from skimql import Answer, Session
from skimql.errors import SkimqlError

from .record import Tally

TRIES = 60

EXISTS = "EXISTS (SELECT {item} FROM b {alias} WHERE {conditions})"


def run(tries: int, seed: int, folder: Path) -> Tally:
    """Type the ways out of `tries` refused statements."""
    tally, chosen = Tally("hints"), random.Random(seed)
    session = Session()
    spark = session.spark
    rows = [(chosen.choice([None, *range(6)]), chosen.randrange(9), chosen.choice("uvw")) for _ in range(40)]
    session.table("a", spark.createDataFrame(rows, "k INT, x INT, t STRING"))
    session.table("b", spark.createDataFrame([(k, x) for k, x, _ in rows[:15]], "m INT, y INT"))
    for _ in range(tries):
        text, place = _exists(chosen) if chosen.random() < 0.7 else _grouped(chosen)
        with tally.trying(text):
            try:
                session.sql(text)
            except SkimqlError as error:
                typed = text.replace(place, error.hint.split(", or ")[0])
            else:
                continue
            if "EXACT SELECT" in typed:
                continue
            answer, exact = session.sql(typed), session.sql(text.replace("APPROXIMATE", "")).collect()
            assert isinstance(answer, Answer)
            if sorted(_plain(answer.rows)) != sorted(_plain(exact)):
                tally.wrong.append(f"{text} -> {typed}")
    return tally


def _exists(chosen: random.Random) -> tuple[str, str]:
    equality = chosen.choice(
        ["b.m = a.k", "a.k = b.m", "m = a.k", "a.x + 1 = b.y", "b.m = a.k + 0", "a.k < b.m"]
    )
    conditions = [
        equality,
        *chosen.sample(["b.y > 3", "y < 7 OR m = 2", "b.m IS NOT NULL"], chosen.randrange(3)),
    ]
    chosen.shuffle(conditions)
    own = " AND ".join(f"({c})" if " OR " in c else c for c in conditions)
    exists = EXISTS.format(item=chosen.choice(["1", "*", "b.y"]), alias="", conditions=own)
    around = chosen.choice(["{}", "a.x > 2 AND {}", "NOT {}", "({}) AND a.t <> 'u'", "{} OR a.x = 1"])
    return f"SELECT APPROXIMATE COUNT(*) FROM a WHERE {around.format(exists)}", exists


def _grouped(chosen: random.Random) -> tuple[str, str]:
    value = chosen.choice(["a.t || '!'", "upper(a.t)", "concat(a.t, a.t)", "length(a.t) + 1"])
    return f"SELECT APPROXIMATE {value} AS v, COUNT(*) AS n FROM a GROUP BY a.t", "GROUP BY a.t"


def _plain(rows: object) -> list[str]:
    return [str([str(getattr(c, "value", c)).removesuffix(".0") for c in row]) for row in rows]  # type: ignore[attr-defined]
