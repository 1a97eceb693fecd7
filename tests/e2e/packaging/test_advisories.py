"""Advisories are found of the versions that they are about, and of no others."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = [pytest.mark.quick, pytest.mark.beside]

Tool = Callable[[str], ModuleType]
CRATE = """```toml
[advisory]
id = "RUSTSEC-2021-0001"
package = "serde"
{more}
[versions]
patched = [">= 1.2.3, < 1.3.0", "^1.3.4"]
unaffected = ["< 1.0"]
```

# An advisory
"""
PACKAGE = """
id: PYSEC-2021-66
affected:
- package: {name: jinja2, ecosystem: PyPI}
  ranges:
  - type: ECOSYSTEM
    events:
    - introduced: '2.0'
    - fixed: 2.11.3
    - introduced: '3.0'
    - last_affected: 3.0.1
  versions: ['1.9']
"""


@pytest.fixture
def crates(tmp_path: Path) -> Path:
    (tmp_path / "crates/serde").mkdir(parents=True)
    (tmp_path / "crates/serde/RUSTSEC-2021-0001.md").write_text(CRATE.format(more=""))
    return tmp_path


@pytest.mark.parametrize(
    ("version", "affected"),
    [
        ("0.9.9", False),
        ("1.0.0", True),
        ("1.2.2", True),
        ("1.2.3", False),
        ("1.3.0", True),
        ("1.3.4", False),
        ("1.9.0", False),
        ("2.0.0", True),
        ("1.2.3-rc.1+build", False),
    ],
)
def test_a_crate_is_affected_unless_its_version_is_patched_or_older(
    crates: Path, tool: Tool, version: str, affected: bool
) -> None:
    found = list(tool("check_advisories").of_crates(crates, [("serde", version), ("other", "1.0.0")]))
    assert found == ([(f"serde {version}: RUSTSEC-2021-0001", True)] if affected else [])


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ('informational = "unmaintained"', [("serde 1.0.0: RUSTSEC-2021-0001 (unmaintained)", False)]),
        ('informational = "unsound"', [("serde 1.0.0: RUSTSEC-2021-0001 (unsound)", True)]),
        ('withdrawn = "2021-02-03"', []),
    ],
    ids=["unmaintained", "unsound", "withdrawn"],
)
def test_what_an_advisory_is_about_counts(
    crates: Path, tool: Tool, more: str, found: list[tuple[str, bool]]
) -> None:
    (crates / "crates/serde/RUSTSEC-2021-0001.md").write_text(CRATE.format(more=more))
    assert list(tool("check_advisories").of_crates(crates, [("serde", "1.0.0")])) == found


@pytest.mark.parametrize(
    ("version", "affected"),
    [
        ("1.9", True),
        ("1.9.1", False),
        ("2.0rc1", False),
        ("2.11.2", True),
        ("2.11.3", False),
        ("3.0.1", True),
        ("3.0.2", False),
    ],
)
def test_a_package_is_affected_within_the_ranges(
    tmp_path: Path, tool: Tool, version: str, affected: bool
) -> None:
    (tmp_path / "vulns/jinja2").mkdir(parents=True)
    (tmp_path / "vulns/jinja2/PYSEC-2021-66.yaml").write_text(PACKAGE)
    found = list(tool("check_advisories").of_wheels(tmp_path, [("Jinja2", version)]))
    assert found == ([(f"Jinja2 {version}: PYSEC-2021-66", True)] if affected else [])


def test_all_that_is_locked_is_looked_up(tool: Tool) -> None:
    module = tool("check_advisories")
    assert {"libc", "serde_json"} <= {name for name, _ in module.crates()}
    assert {"numpy", "scipy"} <= {name for name, _ in module.wheels()}


def test_a_directory_without_advisories_is_refused(
    tmp_path: Path, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["check_advisories.py", str(tmp_path)])
    assert tool("check_advisories").main() == 2
