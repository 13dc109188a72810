"""Every shipped recipe's advantages, worked out with pencil and paper: see `records.game` for the record.

A recipe's entry says on which record, with what beside it, and what must come out: for each row one number, where all
its tokens have the same, or one for each token. `kept` are the rows that the filters leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log, sqrt
from statistics import mean, stdev

from tests.training import records
from training.extras import NO_EXTRAS, Extras
from training.trajectory import Row

Numbers = Sequence[float | Sequence[float]]

LEARNT = (0, 1, 2, 4, 5, 6, 7, 8)
"""Rows of `game` that can be learnt from: not the invalid one, 3, and not the frozen one, 9."""


@dataclass(frozen=True)
class ByHand:
    """One case."""

    advantages: Numbers
    rows: Sequence[Row] = field(default_factory=records.game)
    extras: Extras = records.GAME
    kept: Sequence[int] = LEARNT
    options: Sequence[Sequence[float]] | None = None


def whitened(raw: Numbers, sizes: Sequence[int]) -> list[list[float]]:
    """(a − mean)/std over all tokens of the rows that are not None-sized; the n − 1 form."""
    wide = [[float(a)] * size if isinstance(a, int | float) else list(a) for a, size in zip(raw, sizes, strict=True)]
    flat = [a for each in wide for a in each]
    return [[(a - mean(flat)) / stdev(flat) for a in each] for each in wide]


def rows_of(raw: Numbers, at: Sequence[int], size: int = 10) -> list[float | Sequence[float]]:
    """The numbers at these rows, 0 elsewhere."""
    found: list[float | Sequence[float]] = [0.0] * size
    for index, number in zip(at, raw, strict=True):
        found[index] = number
    return found


SIZES = (2, 1, 3, 2, 2, 1, 2, 1)
"""Tokens of the rows in LEARNT."""
NOTHING = rows_of((0,) * 8, LEARNT)

# Group g: mean 1, std 6. Group h has one trajectory: nothing to compare with, 0 and not its raw 5.
GRPO = rows_of((7 / 6, 3 / 6, 7 / 6, -5 / 6, -5 / 6, -5 / 6, -5 / 6, 0), LEARNT)
CENTRED = rows_of((7, 3, 7, -5, -5, -5, -5, 0), LEARNT)
NOT_ALONE = (0, 1, 2, 4, 5, 6, 7)

# Two trajectories a key: each stands half their difference, d, from the mean, and √(2d²/1) = d√2 is the std.
HALF = 1 / sqrt(2)
BY_ROLE = rows_of((HALF, HALF, HALF, -HALF, -HALF, -HALF, -HALF, 0), LEARNT)

# A: b = 0 meets 8; b = .05·8 = .4 meets −4; b = .95·.4 − .05·4 = .18 meets 5. B: 0 meets 4; .2 meets −4.
RAE = rows_of((8, 4, 8, -4.4, -4.4, -4.2, -4.4, 4.82), LEARNT)
RAE_STATE = {"first": 0.95 * 0.18 + 0.05 * 5, "second": 0.95 * 0.2 - 0.05 * 4}

# Returns to go per turn: A 8, 6 | −4, −3 | 5: mean 12/5 over its five turns, the twice recorded one once.
# B 4 | −4: mean 0.
MARSHAL = (5.6, 4, 3.6, -6.4, -6.4, -4, -5.4, 2.6)

# The format costs B's invalid turn 0.1. G of a token is what its trajectory earns from its turn on; row 8 is cut short:
# 5 + V(after) = 7. Minus the tokens' own values.
PPO_STEP = ((7, 6), 3.9, (3, 4, 5), (-4, -3), (-4, -3), -2, (-2, -1), 3)
# The same with the whole outcome at the end: row 2 has G = 8 and row 7 has G = −4.
PPO_OUTCOME = rows_of(((7, 6), 4, (5, 6, 7), (-4, -3), (-4, -3), -2, (-3, -2), 3), LEARNT)

# Group g with the format: 8, 3.9, −4, −4; mean 0.975. Its weight is its std by the largest, so 1.
FORMATTED = (8, 3.9, -4, -4)
RAGEN2 = rows_of([(FORMATTED[i] - 0.975) / stdev(FORMATTED) for i in (0, 1, 0, 2, 2, 3, 2)], NOT_ALONE)

# Turn GAE(.99, .9), values of turns 1, 0, 3, 1, 0, −2, −1, 4 and 2 after the cut. .99·.9 = .891.
# e0 A: 6 − 3 = 3; 2 + .99·3 − 1 + .891·3. e0 B: 3 − 1 = 2; 1 + .99·1 − 0 + .891·2.
# e1 A: −3 + 1 = −2; −1 − .99 − .891·2.
TURN_PPO = rows_of((6.643, 3.772, 3, -3.772, -3.772, -2, -2, 2.98), LEARNT)

# γ = .95, λ = 1: G is the discounted return, 2 + .95·6 = 7.7, 1 + .95·3 = 3.85, −1 − .95·3 = −3.85, 5 + .95·2 = 6.9.
BI_LEVEL = ((6.7, 5.7), 3.85, (3, 4, 5), (-3.85, -2.85), (-3.85, -2.85), -2, (-2, -1), 2.9)

# Episodes as in CENTRED. Anchors: "deal" of g has 7.7 and −3.85 (once), mean 1.925; "reply" 3.85 and −4, mean −.075;
# the other states were seen once, or in another group.
GIGPO = rows_of((7 + 5.775, 3 + 3.925, 7, -5 - 5.775, -5 - 5.775, -5 - 3.925, -5, 0), LEARNT)

# Turn 0 of g: 8, 4, −4, −4, as the whole returns; turn 1: 6 and −3. The invalid turn and the frozen one do not count.
MEMOPILOT = rows_of((7 / 6, 3 / 6, HALF, -5 / 6, -5 / 6, -5 / 6, -HALF, 0), LEARNT)

# γ = .9: 2 + 5.4, 1 + 2.7, 6, −1 − 2.7, −4, −3: mean 6.4/6.
TO_GO = {0: 7.4, 1: 3.7, 2: 6, 4: -3.7, 5: -3.7, 6: -4, 7: -3}
_GTPO = (7.4, 3.7, 6, -3.7, -4, -3)
GTPO = rows_of([(TO_GO[i] - 6.4 / 6) / stdev(_GTPO) for i in NOT_ALONE], NOT_ALONE)

# Gains of the truth's probability .3, −.1 and .5, outcomes 8, −4 and −4 at the last turns of the valid: mean .7/6. The
# invalid turn's outcome, 4, is no part of the mean, and B's earlier turn still answers for it.
_IGPO = (0.3, -0.1, 8, 0.5, -4, -4)


def _z(number: float) -> float:
    return (number - 0.7 / 6) / stdev(_IGPO)


IGPO = rows_of(
    (_z(0.3) + _z(8), _z(-0.1) + _z(4), _z(8), _z(0.5) + _z(-4), _z(0.5) + _z(-4), _z(-4), _z(-4)), NOT_ALONE
)

# RAE of the outcome plus 0.1 for the form, then standardised over the family's eight rows.
_UNSTABLE = (8.1, 4.1, 8.1, -4.3, -4.3, -4.1, -4.3, 4.92)
UNSTABLE = rows_of([(a - mean(_UNSTABLE)) / stdev(_UNSTABLE) for a in _UNSTABLE], LEARNT)

# Surprisal 1 for A's six rows and 2 for B's two: mean 1.25.
AEM = rows_of((0.8 * 7 / 6, 1.6 * 3 / 6, 0.8 * 7 / 6, *[-0.8 * 5 / 6] * 2, -1.6 * 5 / 6, -0.8 * 5 / 6, 0), LEARNT)

# Trials: 3 + .6·4 = 5.4 and 4; 0 + .6·2 = 1.2 and 2. Mean 3.15. The second turn of the first has 2 + .6·4 = 4.4.
_TRIALS = (5.4, 4, 1.2, 2)
LAMER = [(g - 3.15) / stdev(_TRIALS) for g in (5.4, 4.4, 4, 1.2, 2)]

# Node n1 is worth (4 + 0)/2 = 2, and so is the decision before it; n2 is worth 1. Over five turns the mean is 8/5.
AT2PO = [0.4, 2.4, -1.6, -0.6, -0.6]
# Leaves 4, 0, 1: mean 5/3, squares (49 + 25 + 4)/9, so std √39/3; what two leaves share has the mean of theirs.
ARPO = [1 / sqrt(39), 7 / sqrt(39), -5 / sqrt(39), -2 / sqrt(39), -2 / sqrt(39)]

# Row 1 keeps its subgoal, for 2 − .3 = 1.7. Low: 1.7 + .95·2 − 2 = 1.6, then 1 + .95·2 − 1 + .9025·1.6 = 3.344;
# 4 − 1 = 3. High: 4 − 2 = 2; 1 + .95·1.7 + .9025·2 − 3 + .9025·.95·2 = 3.13475. Termination: 1.7 + .95·2 = 3.6,
# 1 + .95·3.6 = 4.42, 4; each minus 1. Row 0's first token is in no span.
HIPER = [(0, 3.42, 3.13475, 3.344), (2.6, 1.6), (0, 3, 2, 3)]

# The own anchor's term is −.2·ln(π/π_ref): bet −.2 ln 2, pass .2 ln 1.5, call −.2 ln 2, fold .2 ln 3. What A is paid
# for B's call cancels its own term, and the other way round, so G is ±1 and ±3; without it E = .2 ln 2 more.
E = 0.2 * log(2)
NEURD = []
for _earned, _first, _second in ((1, 0.0, 0.0), (3, 0.05 * (1 + E), 0.05 * (-1 + E))):
    _bet, _pass = -E + (_earned + E - _first) / 0.5, 0.2 * log(1.5)
    _call, _fold = -E + (-_earned + E - _second) / 0.77, 0.2 * log(3)
    NEURD.append((0.5 * (_bet - _pass), 0.5 * (_pass - _bet)))
    NEURD.append((0.2 * (_call - _fold), 0.8 * (_fold - _call)))
# With a baseline of each option nothing is remembered yet, so both episodes meet 0; the anchor weighs .3 here.
NEURD_FIT = []
F, _pass, _fold = 0.3 * log(2), 0.3 * log(1.5), 0.3 * log(3)
for _earned in (1, 3):
    _bet, _call = -F + (_earned + F) / 0.5, -F + (-_earned + F) / 0.77
    NEURD_FIT.append((0.5 * (_bet - _pass), 0.5 * (_pass - _bet)))
    NEURD_FIT.append((0.2 * (_call - _fold), 0.8 * (_fold - _call)))

BY_HAND: dict[str, ByHand] = {
    "reinforce": ByHand(rows_of((8, 4, 8, -4, -4, -4, -4, 5), LEARNT)),
    "neurd_like": ByHand(
        [each[0] for each in NEURD], records.choices(), records.CHOICES, kept=(0, 1, 2, 3), options=NEURD
    ),
    "neurd_fit_like": ByHand(
        [each[0] for each in NEURD_FIT], records.choices(), records.CHOICES, kept=(0, 1, 2, 3), options=NEURD_FIT
    ),
    "grpo": ByHand(GRPO),
    "dr_grpo": ByHand(CENTRED),
    "rloo": ByHand(rows_of((28 / 3, 4, 28 / 3, *[-20 / 3] * 4, 0), LEARNT)),  # deviations · 4/3
    "maxrl": ByHand(CENTRED),  # the mean is 1
    "dapo_like": ByHand(GRPO, records.unit_game(), kept=NOT_ALONE),
    "gspo_like": ByHand(GRPO),
    "prime_rl": ByHand(CENTRED, kept=NOT_ALONE),
    "spiral": ByHand(RAE),
    "marshal": ByHand(rows_of(whitened(MARSHAL, SIZES), LEARNT)),
    "dr_mas": ByHand(BY_ROLE),
    "hierarchical_grpo": ByHand([0.25, 0.5, -0.5, -0.25, 0, 0], records.proposals(), NO_EXTRAS, range(6)),
    "ssp_like": ByHand([0.5, HALF, -HALF, 0, 0, 0], records.proposals(), NO_EXTRAS, range(6)),
    "magic_like": ByHand(rows_of((-HALF, HALF, -HALF, HALF, HALF, -HALF, HALF, 0), LEARNT)),  # 1, 5 | 3, −1
    "gigpo": ByHand(GIGPO),
    "memopilot_like": ByHand([0 if i == 2 else each for i, each in enumerate(MEMOPILOT)], records.memories()),
    "gtpo_like": ByHand(GTPO),
    "igpo": ByHand(IGPO),
    "agentrl_like": ByHand(rows_of(whitened([GRPO[i] for i in LEARNT], SIZES), LEARNT)),
    "starpo": ByHand(rows_of(whitened(PPO_STEP, SIZES), LEARNT)),
    "starpo_s": ByHand(rows_of(whitened(PPO_STEP[:-1], SIZES[:-1]), NOT_ALONE), kept=NOT_ALONE),
    "ragen2": ByHand(RAGEN2, kept=NOT_ALONE),
    "bi_level_gae": ByHand(rows_of(whitened(BI_LEVEL, SIZES), LEARNT)),
    "turn_ppo": ByHand(TURN_PPO, extras=records.GAME_TURNS),
    "st_ppo_like": ByHand(PPO_OUTCOME),
    "s_ppo_like": ByHand(PPO_OUTCOME),
    "hiper": ByHand(HIPER, records.segments(), records.SEGMENTS, range(3)),
    "at2po": ByHand(AT2PO, records.tree(), NO_EXTRAS, range(5)),
    "arpo_like": ByHand(ARPO, records.tree(), NO_EXTRAS, range(5)),
    "lamer": ByHand(LAMER, records.trials(), NO_EXTRAS, range(5)),
    "supo_like": ByHand(GRPO, kept=NOT_ALONE),  # row 8 was truncated
    "scaling_inter_rl": ByHand(GRPO),
    "epo_like": ByHand(GRPO),
    "aem_like": ByHand(AEM),
    "sweet_rl_critic_like": ByHand(NOTHING),
    "sweet_rl_actor_like": ByHand(NOTHING),
    "progress_advantage": ByHand(rows_of((0.75, -0.5, 2, 1, 1, 1, -1, 2), LEARNT)),  # 4 and 5 are one decision
    # x and y, summed: e0 A 1, 5; e0 B 3, 1; e1 A 0, 1; e1 B 1, 3. x was said: regrets 4, 0, 1, 2. Two of g stay.
    "rmft": ByHand(NOTHING, kept=(1, 4, 5, 7, 8)),
    "opd": ByHand(NOTHING),
    "opsd": ByHand(NOTHING),
    "skill_sd_like": ByHand(GRPO),
    "guided_opd_like": ByHand(NOTHING),
    "atod_like": ByHand([a / 2 if isinstance(a, float) else a for a in GRPO]),  # at update 50 its weight is 1/2
    "dagger": ByHand(NOTHING),
    "expert_corrections_like": ByHand(NOTHING),
    "echo": ByHand(GRPO),
    "sft": ByHand(NOTHING, kept=(0, 1, 2, 8)),  # returns 8, 4 and 5
    "dpo": ByHand(NOTHING),
    "nfsp_like": ByHand(RAE),
    "psro_like": ByHand(RAE),
    "alphastar_like": ByHand(RAE),
    "unstable_baselines": ByHand(UNSTABLE),
    "evoemo_like": ByHand(NOTHING),
}
