"""One version: that of the package, which pyproject.toml takes from it; the engine's is the same."""

import tomllib

from etude.version import __version__
from support.places import ROOT


def document(name: str) -> dict[str, object]:
    return tomllib.loads((ROOT / name).read_text("utf-8"))


def test_pyproject_takes_the_version_from_the_package() -> None:
    pyproject = document("pyproject.toml")
    assert pyproject["project"]["dynamic"] == ["version"]  # type: ignore[index]
    assert "version" not in pyproject["project"]  # type: ignore[operator]
    assert pyproject["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "etude.version.__version__"}  # type: ignore[index]


def test_the_engine_has_the_same_version() -> None:
    assert document("Cargo.toml")["workspace"]["package"]["version"] == __version__  # type: ignore[index]
    for manifest in sorted((ROOT / "engine").rglob("Cargo.toml")):
        package = tomllib.loads(manifest.read_text("utf-8")).get("package")
        assert package is None or package["version"] == {"workspace": True}, manifest


def test_the_lock_of_the_engine_has_it_too() -> None:
    packages = document("Cargo.lock")["package"]
    ours = {each["name"]: each["version"] for each in packages if "source" not in each}  # type: ignore[union-attr]
    assert set(ours.values()) == {__version__}
