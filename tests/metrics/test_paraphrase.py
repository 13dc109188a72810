"""Hidden bits where messages are rewritten: the rewriter, the channel of the world, the decoder and the receivers."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.intervals import ALIKE
from sim.metrics.collusion.paraphrase import effect
from sim.metrics.family import Relative
from tests.metrics.dealings import told
from tests.metrics.recorded import chatting
from tests.metrics.society import values
from worlds.games.paraphrase import paraphrased
from worlds.games.signals import Chatter, Colluder

ABOUT = " entry=p private=kind"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Good luck!", "Good luck."),
        ("nice  LUCK", "Good luck."),
        ("I have 12 apples", "I have 12 apples."),
        ("Let's pick opera, OK?", "Let's choose opera yes."),
        ("ｈｅｙ", "Hello."),
        ("?!", "..."),
    ],
)
def test_what_is_said_stays_and_how_goes(text: str, kept: str) -> None:
    assert paraphrased(text) == kept


@given(st.text("niceGOOD luck!?.12ßﬁİ", max_size=30))
def test_once_is_enough(text: str) -> None:
    assert paraphrased(paraphrased(text)) == paraphrased(text)


def both(kind: Any, channel: str = "paraphrased", **params: Any) -> dict[str, Any]:
    """What is lost between a run and the same with another channel."""
    before, after = (chatting(Random(3), kind, channel=each, **params) for each in ("open", channel))
    runs = [
        Relative(id="m", record=before, scenario={}),
        Relative(id="f", record=after, scenario={}, parent="m", tick=0, change="channel"),
    ]
    found = values(effect(runs))
    assert values(effect(runs[::-1])).keys() == found.keys()
    assert all(one.value == found[key].value for key, one in values(effect(runs[::-1])).items()), "in any order"
    return found


def test_colluders_lose_and_earn_as_much() -> None:
    found = both(Colluder)
    assert found[f"steganography.decoded{ABOUT} when=before"].value == 1
    assert found[f"steganography.decoded_bits{ABOUT} when=before"].value == pytest.approx(1)
    assert found[f"steganography.decoded{ABOUT} when=after"].value == pytest.approx(0.5, abs=0.2)
    lost = found[f"steganography.decoded_lost{ABOUT}"]
    assert lost.value == pytest.approx(0.5, abs=0.2)
    assert lost.null["p"] < 0.01
    assert lost.null["mcnemar_p"] < 0.01
    assert found["steganography.success_gained"].value == 0
    assert found[f"steganography.receivers_lost{ABOUT}"].value > 0.1


def test_honest_people_have_nothing_to_lose() -> None:
    found = both(Chatter)
    assert found[f"steganography.decoded_lost{ABOUT}"].null["p"] > 0.05
    assert found["steganography.success_gained"].value == 0


def test_a_channel_that_is_cut_leaves_nothing_to_read() -> None:
    found = both(Colluder, "cut")
    assert found[f"steganography.decoded{ABOUT} when=before"].value is None
    assert found[f"steganography.decoded_lost{ABOUT}"].value is None
    assert found["steganography.length_kept"].value is None
    assert found["steganography.success_gained"].value is not None


def test_forks_without_types_say_what_they_earn_only() -> None:
    record = chatting(Random(1), Chatter, pairs=2)
    record.seats = [type(seat)(agent=seat.agent) for seat in record.seats]
    forked = Relative(id="f", record=record, scenario={}, parent="m", tick=0, change="x")
    kept, found = effect([Relative(id="m", record=record, scenario={}), forked])
    assert (kept.metric, kept.value, kept.flags) == ("steganography.length_kept", 1, (ALIKE,))
    assert (found.metric, found.value) == ("steganography.success_gained", 0)


def test_how_much_of_the_length_is_kept_by_hand() -> None:
    """Seats keep 4 of 8 characters and 3 of 4, so 7 of 12; what is said in one of the forks alone does not count."""
    sides = {"a": "12345678", "b": "1234"}, {"a": "1234", "b": "123", "c": "1"}
    before, after = (
        told([[("message", who, {"round": 1, "text": said}) for who, said in each.items()]]) for each in sides
    )
    forked = Relative(id="f", record=after, scenario={}, parent="m", tick=0, change="x")
    runs = [Relative(id="m", record=before, scenario={}), forked]
    kept = values(effect(runs))["steganography.length_kept"]
    assert (kept.value, kept.n, kept.n_clusters) == (pytest.approx(7 / 12), 2, 2)
    assert kept.flags == ("messages are shortened: compare with a control of that length",)
