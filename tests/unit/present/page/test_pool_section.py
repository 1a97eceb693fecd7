"""A report of a result that a pool measured names its nodes, its lost jobs and the nodes that differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from etude.cluster.pool.simulated import Death
from etude.present.page import content_of, gather
from etude.present.section import Section, cell_text
from support import pages
from support.builders import still_machine
from support.nodes import Nodes
from unit.cluster.distributed.test_blocks import plan_of, pool_of, spread, wobble


@pytest.fixture(autouse=True)
def _still_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    still_machine(monkeypatch)


def slower_on_the_third(test: str, node: str, block: int) -> float:
    return (1.2 if test == "b" else 1.0) * (1.3 if node == "node003" else 1.0) * wobble(block)


def section_of(where: Path) -> Section:
    (found,) = [part for part in content_of(gather([str(where)])).beside if part.key.startswith("pool")]
    return found


def rows(section: Section, caption: str) -> list[list[str]]:
    (table,) = [table for table in section.tables if table.caption.startswith(caption)]
    return [list(map(cell_text, row)) for row in table.rows]


def test_lost_jobs_and_differing_nodes_stand_below_the_verdict(tmp_path: Path) -> None:
    pool = pool_of(Nodes(slower_on_the_third), deaths=[Death("node002", 1.5)])
    spread(plan_of("a", "b", trials=12), tmp_path, pool).run()
    found = section_of(tmp_path)
    content = content_of(gather([str(tmp_path)]))
    assert content.headline[-1:] == found.answer
    assert [row[:4] for row in rows(found, "Nodes")] == [
        ["node001", "2", "0", "0"],
        ["node002", "0", "1", "0"],
        ["node003", "1", "0", "0"],
    ]
    assert [row[2] for row in rows(found, "Jobs")].count("node-lost") == 1
    levels = rows(found, "Tests by node")
    assert [row[:2] for row in levels] == [[test, f"node00{n}"] for test in "ab" for n in (1, 2, 3)]
    assert sum(int(row[2]) for row in levels) == 24
    assert [paragraph.heading for paragraph in found.paragraphs] == ["Jobs", "Differences between nodes"]
    assert len(found.pictures) == 1


def test_alike_nodes_have_no_paragraph_of_differences(tmp_path: Path) -> None:
    spread(plan_of("a", trials=12), tmp_path, pool_of(Nodes(lambda test, node, block: wobble(block)))).run()
    assert [paragraph.heading for paragraph in section_of(tmp_path).paragraphs] == ["Jobs"]


def test_a_spoilt_journal_is_named_and_the_page_made_without_it(tmp_path: Path) -> None:
    spread(plan_of("a", trials=6), tmp_path, pool_of(Nodes())).run()
    (tmp_path / "pool.jsonl").write_text('{"event":"lost"}\n')
    found = section_of(tmp_path)
    assert "pool.jsonl:1" in found.paragraphs[0].lines[0]
    assert (found.tables, found.pictures, found.answer) == ((), (), ())


def test_a_result_without_a_pool_has_none(tmp_path: Path) -> None:
    assert content_of(gather([str(pages.plain(tmp_path / "r"))])).beside == ()
