from __future__ import annotations

import pytest

from ripple.exchange.wire.errors import LocalProtocolError
from ripple.exchange.wire.traceparent import Traceparent, parse

TRACE, SPAN = "17380abc6f63f3cdaf093916e327df84", "88b8fa2222fd7ba5"


def test_the_books_example_comes_back() -> None:
    text = f"00-{TRACE}-{SPAN}-01"
    assert parse(text) == Traceparent(TRACE, SPAN, sampled=True)
    assert str(parse(text)) == text
    assert str(parse(f"00-{TRACE}-{SPAN}-00")) == f"00-{TRACE}-{SPAN}-00"


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    assert parse(f"cc-{TRACE}-{SPAN}-03-more") == Traceparent(TRACE, SPAN, sampled=True)
    assert parse(f"cc-{TRACE}-{SPAN}-02") == Traceparent(TRACE, SPAN, sampled=False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-01-more",
        f"cc-{TRACE}-{SPAN}-01.more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-01\n",
        f" 00-{TRACE}-{SPAN}-01",
        f"00_{TRACE}_{SPAN}_01",
    ],
)
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(LocalProtocolError):
        parse(text)


def test_an_identifier_that_is_none_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="span_id"):
        Traceparent(TRACE, "xyz")
