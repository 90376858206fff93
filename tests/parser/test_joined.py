"""What FROM and WHERE say, flattened."""

from support.schemas import XYZ

from skimql.parser.fragment import Fragment, Ref
from skimql.parser.join_graph import Span
from skimql.parser.joined import Join, Occurrence


def test_the_type_of_a_column_is_its_tables_and_of_anything_else_unknown():
    join = Join(XYZ, occurrences=[Occurrence(XYZ["z"], "z", Span(0, 1))])
    assert join.type_of(Fragment((Ref(0, "w"),), simple=True)) == "string"
    assert join.type_of(Fragment((Ref(0, "w"), " || 'x'"))) is None
