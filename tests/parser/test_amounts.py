"""Numbers as people write them."""

import pytest

from skimql.parser.amounts import BadNumber, byte_count, literal_fault, meant_percent, share, whole


@pytest.mark.parametrize("text", ["4096", "4,096", "4096.", "4096.0", "4.096e3"])
def test_whole_numbers_are_read_in_every_spelling(text):
    assert whole(text) == 4096


@pytest.mark.parametrize(
    ("text", "value"), [("8 MB", 8 << 20), ("8MiB", 8 << 20), ("0.5 GB", 1 << 29), ("17", 17)]
)
def test_bytes_have_units_of_1024(text, value):
    assert byte_count(text) == value


@pytest.mark.parametrize("text", ["", "4x", "1.5", "-1", "9" * 400, "nan"])
def test_what_is_no_whole_number_is_refused(text):
    with pytest.raises(BadNumber):
        whole(text)


def test_a_share_is_strictly_between_nothing_and_all():
    assert share("5%") == share("0.05") == 0.05
    for text in ("0", "1", "100%", "5"):
        with pytest.raises(BadNumber):
            share(text)
    assert (meant_percent("5"), meant_percent("0.5")) == ("5%", "")


def test_spark_has_no_number_beyond_a_double():
    assert literal_fault("1e400")
    assert not literal_fault("1e300")
