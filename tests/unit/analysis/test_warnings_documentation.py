"""docs/reference/warnings.md says all that there is, and nothing else."""

import re

from etude.analysis.warnings import KINDS, Thresholds
from support.places import DOCS

PAGE = (DOCS / "reference" / "warnings.md").read_text(encoding="utf-8")


def test_every_kind_has_its_section_in_order_of_importance():
    assert re.findall(r"^### `(.+)`$", PAGE, re.MULTILINE) == list(KINDS)


def test_every_section_says_what_to_do():
    sections = re.split(
        r"^###? .*$", PAGE.partition("## The kinds")[2].partition("## One cause")[0], flags=re.MULTILINE
    )
    assert len(sections) == len(KINDS) + 1
    assert all("**Do:**" in section for section in sections[1:])


def test_the_thresholds_are_those_of_the_code():
    stated = re.findall(
        r"^\| `([a-z-]+)` \| (\S+) \| (.+) \|$", PAGE.partition("## Thresholds")[2], re.MULTILINE
    )
    assert stated == Thresholds.described()
