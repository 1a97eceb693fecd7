"""What ran beside the trials stands in the page under their charts, with its pictures inside."""

from __future__ import annotations

import re
from pathlib import Path

from etude.present.page import content_of, gather
from etude.present.to_html import to_html
from etude.present.to_markdown import to_markdown
from support.golden import Golden
from support.monitored import busy_second, trials_of_seconds

LENGTHS = [1] * 6 + [3] + [1] * 60
SCRIPT = "<script>x"


def results(directory: Path, name: str = SCRIPT) -> str:
    readings = [
        busy_second(n, 0.4, 1.5, name) if 7 <= n <= 9 else busy_second(n, 0.97)
        for n in range(1, sum(LENGTHS) + 1)
    ]
    return str(trials_of_seconds(directory, LENGTHS, readings))


def test_it_stands_under_the_charts(tmp_path: Path, golden: Golden) -> None:
    content = content_of(gather([results(tmp_path / "r")]))
    page = to_html(content)
    part = page.partition('<section id="monitor-0"')[2].partition("</section>")[0]
    assert page.index('<section id="charts"') < page.index('<section id="monitor-0"')
    assert '<a href="#monitor-0">' in page
    assert "trial 7 (3.002 s" in part
    assert part.count('src="data:image/svg+xml;base64,') == 2
    assert "69 readings" in part
    assert f"{SCRIPT} 1.5" not in page
    assert "&lt;script&gt;x 1.5 CPUs" in part
    (beside,) = content.beside
    for picture in beside.pictures:
        assert picture.caption in part
    lines = [line for each in beside.paragraphs for line in (each.heading, *each.lines)]
    golden("\n".join([beside.heading, *lines, *(picture.caption for picture in beside.pictures)]))


def test_the_trial_is_named_in_its_chart(tmp_path: Path) -> None:
    page = to_html(content_of(gather([results(tmp_path / "r")])))
    assert re.search(r'"7":\["outliers","outlier-explained"\]', page)


def test_in_markdown_it_is_in_words(tmp_path: Path) -> None:
    content = content_of(gather([results(tmp_path / "r", "make")]))
    text = to_markdown(content)
    assert f"### {content.beside[0].heading}\n" in text
    assert "make 1.5 CPUs" in text


def test_of_several_results_each_has_its_own(tmp_path: Path) -> None:
    content = content_of(gather([results(tmp_path / "r"), results(tmp_path / "s")]))
    assert [part.key for part in content.beside] == ["monitor-0", "monitor-1"]


def test_a_file_that_cannot_be_read_is_told_of(tmp_path: Path) -> None:
    directory = trials_of_seconds(tmp_path / "r", LENGTHS, [{"what": 1}])
    (part,) = content_of(gather([str(directory)])).beside
    assert "monitor-1.jsonl:3: " in part.paragraphs[0].lines[0]


def test_what_was_not_monitored_has_no_such_part(tmp_path: Path) -> None:
    directory = trials_of_seconds(tmp_path / "r", LENGTHS, None)
    assert content_of(gather([str(directory)])).beside == ()
