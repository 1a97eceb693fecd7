"""HdrHistograms as text: read as those who write them mean them, and nothing else is read."""

import base64
import json
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.results.histograms import BadHistogram, decode, encode
from support.places import DATA

VECTORS = json.loads((DATA / "histograms.json").read_text(encoding="utf-8"))["histograms"]
each = pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["name"])
TEXT = VECTORS[1]["text"]


@each
def test_what_other_implementations_wrote_has_their_classes(vector):
    found = decode(vector["text"])
    assert np.stack(found, axis=1).tolist() == vector["classes"] or not vector["classes"]
    assert found.counts.size == len(vector["classes"])


@each
def test_percentiles_are_theirs(vector):
    values, counts = decode(vector["text"])
    if not counts.size:
        return
    upto = np.cumsum(counts.astype(object))
    for share, expected in zip((0.5, 0.9, 0.99, 0.999), vector["quantiles"], strict=True):
        needed = (
            max(1, int(share * int(upto[-1]) + 0.5)) if vector["by"] == "python" else share * int(upto[-1])
        )
        place = next(i for i, total in enumerate(upto) if total >= needed)
        assert int(values[place]) == expected


@pytest.mark.parametrize("vector", [v for v in VECTORS if v["plain"]], ids=lambda v: v["name"])
def test_what_is_written_is_byte_for_byte_what_they_write(vector):
    values, counts = decode(vector["text"])
    written = encode(values, counts, digits=vector["digits"], lowest=vector["low"], highest=vector["high"])
    packed = base64.b64decode(written)
    assert packed[:4] == base64.b64decode(vector["text"])[:4]
    assert zlib.decompress(packed[8:]) == base64.b64decode(vector["plain"])


@given(
    st.dictionaries(st.integers(0, 10**15), st.integers(1, 2**62), max_size=30),
    st.integers(1, 5),
    st.integers(1, 10**6),
)
def test_what_is_written_is_read_again_within_its_digits(held, digits, lowest):
    values, counts = list(held), list(held.values())
    if sum(counts) > 2**63 - 1:
        counts = [1] * len(counts)
    found = decode(encode(values, counts, digits=digits, lowest=lowest))
    assert int(found.counts.sum()) == sum(counts)
    assert (np.diff(found.values) > 0).all()
    for value in values:
        largest = int(found.values[np.searchsorted(found.values, value)])
        assert 0 <= largest - value <= max(value / 10**digits, 2 * lowest)


def test_values_are_exact_up_to_twice_the_digits():
    assert decode(encode(range(2001), digits=3)).values.tolist() == list(range(2001))
    assert decode(encode([2048, 2049], digits=3)).values.tolist() == [2049]


@given(st.text(alphabet="ABCDHISTFabcd012+/=", max_size=80) | st.text(max_size=20))
def test_other_text_is_refused_in_one_line(text):
    with pytest.raises(BadHistogram) as refused:
        decode(text)
    assert "\n" not in str(refused.value)


def packed(plain):
    body = zlib.compress(plain)
    return base64.b64encode(struct.pack(">II", 0x1C849314, len(body)) + body).decode()


@given(st.binary(max_size=60), st.integers(0, 7), st.integers(1, 2**40), st.integers(0, 2**63 - 1))
def test_any_counts_are_read_or_refused(payload, digits, lowest, highest):
    head = struct.pack(">IIIIqqd", 0x1C849313, len(payload), 0, digits, lowest, highest, 1.0)
    try:
        values, counts = decode(packed(head + payload))
    except BadHistogram:
        return
    assert values.size == counts.size
    assert (counts > 0).all()
    assert (np.diff(values) > 0).all()


@given(st.data())
def test_a_byte_that_changed_is_noticed_or_changes_no_rule(data):
    raw = bytearray(base64.b64decode(TEXT))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = decode(base64.b64encode(bytes(raw)).decode())
    except BadHistogram:
        return
    assert np.stack(found, axis=1).tolist() == VECTORS[1]["classes"]


HEAD = struct.pack(">IIIIqqd", 0x1C849313, 1, 0, 3, 1, 3600, 1.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("HISTFA", "not base64"),
        ("", "cut short"),
        (TEXT[:-4], "its header has"),
        (base64.b64encode(b"{}" * 9).decode(), "not a compressed histogram"),
        (packed(HEAD), "0 bytes long, its header has 1"),
        (packed(HEAD + b"\x80"), "within a count"),
        (
            packed(HEAD[:4] + struct.pack(">I", 2) + HEAD[8:] + b"\xff\x7f"),
            "more classes than values up to 3600 need",
        ),
        (packed(HEAD.replace(struct.pack(">d", 1.0), struct.pack(">d", 0.5)) + b"\x02"), "scaled"),
        (packed(b"\x1c\x84\x93\x01" + HEAD[4:] + b"\x02"), "another version"),
        (packed(b"\x1c\x84"), "within its head"),
        (packed(b"\0" * (1 << 25)), "larger than 16 MiB"),
        (packed(HEAD[:15] + b"\x09" + HEAD[16:] + b"\x02"), "digits are 1 to 5"),
    ],
)
def test_what_is_wrong_is_said(text, said):
    with pytest.raises(BadHistogram, match=said):
        decode(text)


@pytest.mark.parametrize(
    ("values", "options", "said"),
    [
        ([1.5], {}, "whole numbers"),
        ([-1], {}, "whole numbers"),
        ([5], {"counts": [1, 2]}, "as many counts"),
        ([5000], {"highest": 1000}, "above the highest"),
        ([5], {"digits": 6}, "digits are 1 to 5"),
    ],
)
def test_what_cannot_be_counted_is_not_written(values, options, said):
    with pytest.raises(ValueError, match=said):
        encode(values, **options)
