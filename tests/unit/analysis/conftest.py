import pytest

from support.builders import still_machine


@pytest.fixture(autouse=True)
def _still_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    still_machine(monkeypatch)
