"""What a stored sketch says of itself, as plain values and as JSON.

A stored sketch is one virtual relation with its join attributes and one or several weights: the tuples, and for
SUM the values and where they are not NULL, each a sketch of the same hashes; with GROUP BY, all of that for each
group. Everything that decides whether two of them may be combined stands in the metadata; `metadata` writes them.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...optimizer.plan import Attribute, Weight
from ...parser.join_graph import Column
from ...sketches.hashing.xi import Family
from ..synopses import Tally
from .kinds.kind import Kind, Size
from .kinds.registry import KINDS


@dataclass(frozen=True, slots=True)
class LineageFile:
    """A file whose tuples a sketch has: its path or URI, bytes, and time of change in milliseconds (None unknown)."""

    path: str
    size: int | None
    modified: int | None


@dataclass(frozen=True, slots=True)
class SourceState:
    """What a table of Spark's, a view or a DataFrame was when it was read, beside its files.

    Attributes
    ----------
    kind : str
        "table" for a plain table of Spark's catalog, else "other".
    plan : str or None
        What tells its plan from another: that of a view that was replaced, say; None of a plain table.
    roots : tuple of str or None
        The local folders of which the files were all that it had; None where that cannot be said.
    complete : bool
        Whether its files, plan and versions tell every change of it.
    """

    kind: str
    plan: str | None
    roots: tuple[str, ...] | None
    complete: bool


@dataclass(frozen=True, slots=True)
class Lineage:
    """One helping: the table or path it came from, the condition on it, and what was there.

    `times` says how often each tuple counts, negative where it deletes; None for once. `snapshot` is the version of
    the table, where its source tells one; `state` is that of what Spark knows by name, None of files and of what an
    earlier SkimQL has read.
    """

    source: str
    is_table: bool
    condition: str | None
    files: tuple[LineageFile, ...]
    snapshot: str | None
    at: str
    state: SourceState | None = None
    times: str | None = None


@dataclass(frozen=True, slots=True)
class Measure:
    """One sketch of the set: its weight, the type of its counters, the factor in its weights, and its tally.

    `exact` says whether it has lost nothing; `nbytes` are the in-memory bytes of its arrays. A sketch that keeps all
    weights of a key has its bytes in its first measure. With groups all figures are those of all groups together.
    """

    weight: Weight
    dtype: str
    scale: float
    tally: Tally
    exact: bool
    nbytes: int


@dataclass(frozen=True, slots=True)
class Part:
    """The synopsis of one group and one weight: its tally, whether it has lost nothing, its bytes in memory."""

    tally: Tally
    exact: bool
    nbytes: int


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a stored sketch with GROUP BY.

    Attributes
    ----------
    expressions, types : tuple of str
        What it is grouped by, in the words in which queries say it, and their Spark types.
    values : tuple of tuples
        The values of the expressions in each group, as `texts.as_text` writes them.
    parts : tuple of tuple of Part
        For each group one for each measure.
    """

    expressions: tuple[str, ...]
    types: tuple[str, ...]
    values: tuple[tuple[str | None, ...], ...]
    parts: tuple[tuple[Part, ...], ...]


@dataclass(frozen=True, slots=True)
class Head:
    """All of a stored sketch but its counters.

    Attributes
    ----------
    name : str
        As its maker spells it; look-ups ignore case.
    table, filter : str, str or None
        The virtual relation, in the words of `Vertex`.
    attributes : tuple of Attribute
        Key expressions, comparison types and join class of each.
    key_types : tuple of (tuple of str)
        For each attribute the types of its key expressions themselves, before the comparison.
    families : tuple of Family
        One for each attribute.
    method : str
        One of `kinds.KINDS`.
    seed, rows, buckets : int
        `rows` and `buckets` as in `Synopsis`: the levels and buckets of a level sketch, the keys of a sample.
    limit_bytes : int
        Size up to which an exact map is kept; 0 keeps none.
    measures : tuple of Measure
    columns : tuple of Column
        The schema of the table when it was read.
    ansi : bool
        ``spark.sql.ansi.enabled`` at that time.
    time_zone : str
        The session's time zone at that time.
    zoned : bool
        Whether the time zone could change what the sketch has.
    lineage : tuple of Eaten
    created, updated : str
        UTC, ISO 8601.
    group : str
        The workload that it was planned with, or the empty text.
    made_by : str
        "statement", or "cache" where `skimql.cache` kept it.
    last_batch_id : int or None
        The last batch of a stream that it has.
    program : str
        What wrote it.
    settings : tuple of (str, str)
        Other settings of Spark at that time that change what a text means, those off their defaults.
    cell : tuple of int
        The parts of its attributes' domains that its tuples lie in, as in `Synopsis`: only together with the other
        cells of its workload does it stand for the virtual relation.
    imported_from : str
        The file that it was imported from by somebody who has not said that it is to be trusted; else empty.
    parameters : tuple of (str, int)
        Further sizes of its kind, by name.
    groups : Groups or None
        Where it has a synopsis for each group.
    """

    name: str
    table: str
    filter: str | None
    attributes: tuple[Attribute, ...]
    key_types: tuple[tuple[str, ...], ...]
    families: tuple[Family, ...]
    method: str
    seed: int
    rows: int
    buckets: int
    limit_bytes: int
    measures: tuple[Measure, ...]
    columns: tuple[Column, ...]
    ansi: bool
    time_zone: str
    zoned: bool
    lineage: tuple[Lineage, ...]
    created: str
    updated: str
    group: str = ""
    made_by: str = "statement"
    last_batch_id: int | None = None
    program: str = ""
    cell: tuple[int, ...] = ()
    imported_from: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    parameters: tuple[tuple[str, int], ...] = ()
    groups: Groups | None = None

    @property
    def kind(self) -> Kind:
        """What knows the form of its synopses."""
        return KINDS[self.method]

    @property
    def weights(self) -> tuple[Weight, ...]:
        """What its tuples weigh, one for each measure."""
        return tuple(m.weight for m in self.measures)

    @property
    def tuples(self) -> int:
        """Tuples that it has, those with a NULL key left out."""
        return self.measures[0].tally.tuples

    @property
    def nbytes(self) -> int:
        """In-memory bytes of its arrays."""
        return sum(m.nbytes for m in self.measures)

    @property
    def exact(self) -> bool:
        """Whether all of it are still exact maps."""
        return all(m.exact for m in self.measures)

    @property
    def empty(self) -> bool:
        """Whether it is known to have no tuples."""
        return self.exact and not any(m.tally.mass for m in self.measures)

    @property
    def synopses(self) -> int:
        """How many synopses of their own its weights have, in each group."""
        return 1 if self.kind.joint else len(self.measures)

    @property
    def most_bytes(self) -> int:
        """Bytes of all its synopses when none of them is an exact map any more."""
        groups = 1 if self.groups is None else len(self.groups.values)
        return groups * sum(self.kind.most_bytes(self.size(m)) for m in self.measures[: self.synopses])

    def size(self, measure: Measure) -> Size:
        """What decides the form of one of its synopses."""
        columns = len(self.measures) if self.kind.joint else 1
        return Size(
            self.families, self.rows, self.buckets, measure.dtype, columns, self.limit_bytes, self.parameters
        )

    def parts(self) -> tuple[tuple[Part, ...], ...]:
        """The synopses of each group, one for each measure; one group where there is no GROUP BY."""
        if self.groups is not None:
            return self.groups.parts
        return (tuple(Part(m.tally, m.exact, m.nbytes) for m in self.measures),)


def together(parts: tuple[tuple[Part, ...], ...], measures: tuple[Measure, ...]) -> tuple[Measure, ...]:
    """The measures with the figures of all their groups added up."""
    found = []
    for number, measure in enumerate(measures):
        tally, own = Tally(), [row[number] for row in parts]
        for part in own:
            tally.add(part.tally)
        exact, nbytes = all(p.exact for p in own), sum(p.nbytes for p in own)
        found.append(Measure(measure.weight, measure.dtype, measure.scale, tally, exact, nbytes))
    return tuple(found)
