from __future__ import annotations

from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.cluster.pool.job import PoolSpec
from etude.cluster.pool.spec import KEYS, TIMES, read_pool
from etude.errors import EtudeError, InputError, UsageError


def test_a_word_is_a_pool() -> None:
    assert read_pool("local") == PoolSpec("local")
    assert read_pool("slurm") == PoolSpec("slurm")


def test_keys_follow_the_word_and_values_may_have_commas() -> None:
    text = "slurm,partition=bench,exclude=n1,n[3-4,7],time=30m,constraint=[a|b],nodes_at_once=8,etude=copied"
    assert read_pool(text) == PoolSpec(
        "slurm",
        partition="bench",
        exclude="n1,n[3-4,7]",
        time_s=1800.0,
        constraint="[a|b]",
        nodes_at_once=8,
        etude="copied",
    )


def test_a_file_says_the_same_as_a_text(tmp_path: Path) -> None:
    path = tmp_path / "lab.toml"
    path.write_text('[pool]\nkind = "slurm"\npartition = "bench"\ntime = "1-02:03:04"\nnodes_at_once = 4\n')
    assert read_pool(str(path)) == read_pool("slurm,partition=bench,time=1-02:03:04,nodes_at_once=4")
    assert read_pool(str(path)).time_s == 93784.0


def test_each_key_is_a_member() -> None:
    assert {TIMES.get(key, key) for key in KEYS} == {field.name for field in fields(PoolSpec)} - {"kind"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dask", "'dask' local slurm"),
        ("local,partition=x", "local partition"),
        ("slurm,partitoin=x", "partitoin partition?"),
        ("slurm,partition=", "partition ''"),
        ("slurm,time=30", "time '30' 90s 30m"),
        ("slurm,time=0s", "time '0s'"),
        ("slurm,nodes_at_once=0", "1"),
        ("slurm,nodelist=n[1-", "nodes"),
        ("slurm,results=here", "shared copied"),
        ("slurm,qos=a,qos=b", "qos"),
    ],
)
def test_what_cannot_be_meant_is_told_in_one_line(text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        read_pool(text)
    option, why = f"--pool {text}: ", str(error.value)
    assert why.startswith(option)
    assert [word for word in said.split() if word not in why.removeprefix(option)] == []


def test_a_file_is_told_of_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "lab.toml"
    path.write_text('[pool]\nkind = "slurm"\n\ntime = 30\n')
    with pytest.raises(InputError, match=r"lab\.toml:4: time .*30"):
        read_pool(str(path))
    path.write_text('[pol]\nkind = "slurm"\n')
    with pytest.raises(InputError, match=r"lab\.toml:1: pol .*pool\?"):
        read_pool(str(path))


@given(st.text(max_size=40) | st.text(max_size=30).map(lambda text: f"slurm,{text}"))
def test_any_text_is_a_pool_or_one_line(text: str) -> None:
    with suppress(EtudeError):
        assert isinstance(read_pool(text), PoolSpec)


@given(st.lists(st.sampled_from(KEYS), unique=True), st.data())
def test_what_is_given_is_what_is_asked_for(keys: list[str], data: st.DataObject) -> None:
    special = {"etude": "copied", "results": "shared", "nodes_at_once": "3", "time": "2h", "patience": "90s"}
    word = st.text(st.characters(categories=("L", "N"), max_codepoint=127), min_size=1, max_size=8)
    values = {key: special.get(key) or data.draw(word) for key in keys}
    spec = read_pool(",".join(["slurm", *(f"{key}={value}" for key, value in values.items())]))
    for key, value in values.items():
        expected = {"nodes_at_once": 3, "time": 7200.0, "patience": 90.0}.get(key, value)
        assert getattr(spec, TIMES.get(key, key)) == expected
