"""What a view needs of its streams."""

from __future__ import annotations

from support.continuous import declared, stream_of

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.cells import WHOLE
from skimql.engine.streams.planned import read_by
from skimql.engine.streams.store import continuous
from skimql.engine.streams.views import planned

SCHEMA = "k BIGINT, ts TIMESTAMP"
TEXT = "SELECT APPROXIMATE COUNT(*) AS n FROM a JOIN b ON a.k = b.k"


def test_a_view_of_windows_needs_every_synopsis_by_panes(tmp_path):
    windows = {"window": "1 hour", "time": "ts"}
    streams = [stream_of("a", SCHEMA), stream_of("b", SCHEMA)]
    catalog = declared(Catalog(tmp_path / "c"), streams, {"q": (TEXT, windows), "r": TEXT})
    found = continuous(catalog)
    q, r = (planned(found.views[n], found.streams) for n in "qr")
    for name in ("a", "b"):
        ((synopsis, split),) = q.needs_of(name)
        assert (split.windows, q.synopses_of(name)) == (q.windows[name], ())
        assert r.needs_of(name.upper()) == ((synopsis, WHOLE),)
        assert r.synopses_of(name) == (synopsis,)
    assert (q.zone, r.zone, list(read_by(q.plan))) == ("UTC", None, [(0, 0), (1, 1)])
