"""The frozen plan."""

from support.questions import query
from support.schemas import XYZ
from support.tables import folded

from skimql.optimizer.choose import choose
from skimql.optimizer.plan import BYTES_PER_COUNTER, Attribute, Message, Synopsis, Weight, most_bytes

CHAIN = query("SUM(n), COUNT(*) FROM x JOIN y ON x.id = y.id JOIN z ON y.m = z.id", XYZ)
KEY = Attribute(("`id`",), ("int",), "id")


def test_a_sketch_takes_its_counters():
    synopsis = Synopsis("x", None, (KEY,), Weight(), "hash", 11, 64)
    assert most_bytes(synopsis) == 11 * 64 * BYTES_PER_COUNTER


def test_messages_of_several_weights_are_one_relation_senders_first():
    plan = choose(CHAIN, 1, 11, 64, residual=folded(CHAIN.graph, 2, 1))
    assert [m.table for m in plan.messages] == ["z", "y"]


def test_the_relation_of_a_message_only_counts():
    message = Message("z", None, KEY, KEY, Weight("`w`"))
    assert message.relation.weight == Weight()
    assert message.relation == Message("z", None, KEY, KEY, Weight("`w`", presence=True)).relation
