from __future__ import annotations

import argparse

import pytest

from etude.cli.shared_options import add_pool, pool_of
from etude.cluster.pool.job import PoolSpec
from etude.errors import UsageError


def options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_pool(parser)
    return parser.parse_args(words)


def test_no_pool_is_asked_for_unless_it_is_named() -> None:
    assert pool_of(options()) is None
    assert pool_of(options("--pool", "slurm,partition=p")) == PoolSpec("slurm", partition="p")


def test_a_pool_that_there_is_not_is_a_mistake_of_usage() -> None:
    with pytest.raises(UsageError, match="'ray'"):
        pool_of(options("--pool", "ray"))
