"""The choice behind a row: which option was taken, and how likely each was."""

from __future__ import annotations

from math import exp

from training.trajectory import Row


def chosen(row: Row) -> int:
    """Index of the option that stood. Raises ValueError where the row has no such option."""
    if row.answer not in row.options:
        raise ValueError(f"{row.episode} {row.seat} turn {row.turn}: {row.answer!r} is none of its options")
    return row.options.index(row.answer)


def behaviour(row: Row) -> list[float]:
    """μ of every option, exploration included. Raises ValueError where the row does not hold it."""
    known = [exp(logprob) for logprob in row.option_logprobs if logprob is not None]
    if not known or len(known) != len(row.options):
        raise ValueError(f"{row.episode} {row.seat} turn {row.turn}: log-probabilities of the options are not recorded")
    return known


def policy(row: Row) -> list[float]:
    """π of every option, exploration taken out: μ = (1−ε)π + ε/n. Where all was exploration (ε = 1) it is μ."""
    mixed, even = behaviour(row), row.explored / len(row.options)
    if row.explored >= 1:
        return mixed
    return [max(0.0, share - even) / (1 - row.explored) for share in mixed]
