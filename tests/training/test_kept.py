"""Versions that stay, so that an update that was cut off after publishing can be repeated."""

from __future__ import annotations

import pytest

from training.plan import kept
from training.recipe import load as load_recipe


@pytest.mark.parametrize(
    ("changes", "versions"),
    [
        (["policy.keep=1"], 2),
        (["policy.keep=5"], 5),
        (["actors={kind: lagged, last: 3}"], 5),
        (["actors={kind: lagged, last: 1}", "policy.keep=1"], 3),
    ],
)
def test_one_version_more_stays_than_is_played(changes: list[str], versions: int) -> None:
    assert kept(load_recipe("reinforce", changes)) == versions
