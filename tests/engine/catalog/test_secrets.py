"""What a catalog does not keep."""

import pytest

from skimql.engine.catalog.secrets import has_secret, redacted, split_options


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://me:word@host/t", "s3://***@host/t"),
        ("https://h/t?a=1&access_token=xyz&b=2", "https://h/t?a=1&access_token=***&b=2"),
        ("/data/token/t.parquet", "/data/token/t.parquet"),
    ],
)
def test_addresses_are_shown_without_their_secrets(text, shown):
    assert redacted(text) == shown
    assert has_secret(text) == (text != shown)


def test_options_with_secrets_are_named_not_kept():
    assert split_options({"header": True, "password": "p", "url": "jdbc://u:p@h"}) == (
        {"header": True},
        ("password", "url"),
    )
