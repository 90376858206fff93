"""`skimql demo`: its questions."""

from skimql.cli import demo
from skimql.parser.statement import is_approximate


def test_every_question_is_a_statement_of_the_language():
    questions = next(
        v
        for v in vars(demo).values()
        if isinstance(v, (tuple, list)) and v and isinstance(v[0], demo.Question)
    )
    assert len(questions) == 4
    assert all(is_approximate(q.sql) for q in questions)
    assert all(q.text for q in questions)
