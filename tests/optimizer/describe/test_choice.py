"""A choice as text: every edge, every candidate, every source of figures."""

from support.questions import query
from support.schemas import schema, table
from support.statistics import counted

from skimql.optimizer.candidates.enumerate import Objective, choose_method
from skimql.optimizer.describe.choice import describe_choice
from skimql.optimizer.messages import tree_of


def test_edges_candidates_and_statistics_are_told_by_the_users_names():
    found = query(
        "COUNT(*) FROM facts f JOIN dim d ON f.k = d.k",
        schema(table("facts", k="bigint"), table("dim", k="bigint")),
    )
    statistics = [counted(2e9, 1000, scanned=2e9), counted(1000, 1000)]
    choice = choose_method(tree_of(found.graph), statistics, Objective(relative_error=0.05))
    text = describe_choice(choice, found.graph, statistics, 0.0)
    lines = text.split("\n")
    assert lines[0].startswith(f"choice: {choice.taken.name}, predicted ±")
    assert any(line.strip().startswith("f - d on k:") for line in lines)
    assert sum(": taken" in line or "; taken" in line for line in lines) == 1
    assert "  statistics of d: spark column statistics, 1,000 tuples" in lines
    assert "table 0" not in text
