"""What one learner step costs: our packed path, the same code unpacked, and TRL's GRPOTrainer.

Forward, loss, backward and optimiser step on identical ids, advantages and old log-probabilities: groups of eight,
prompts ten times as long as completions, LoRA on the embedded model, β = 0, no checkpointing, the same threads.

Losses and gradients are compared first. In bfloat16, whose rounding is 2e-3 and passes through every layer, any other
order of sums gives other digits: there losses, and their gradients by each log-probability, are compared with rows fed
as TRL feeds them, and gradients by the parameters with those of the same weights in float32, TRL's for every number of
rows at once.

TRL's own work around a step (sampling, rewards, logging, its data loader) is left out, and it gets the fastest of the
micro-batch sizes that were tried, as do we unpacked. Times are CPU time on one thread, which a busy machine stretches
less than wall time. TRL isn't among the dependencies: install it (`pip install trl`), or its column is missing.

Run: `python -m tests.benchmarks learner`.
"""

from __future__ import annotations

import importlib.util
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median
from time import process_time
from typing import Any

import torch
from msgspec import structs
from torch import Tensor

from agents.engines.embedded import embedded_model
from training.forward import predict
from training.loss import Scores, loss
from training.packing import Batch, pack
from training.rows import Sample, merge
from training.slots import Clip, Ratio

GROUP = 8
EPSILON = 0.2
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj")
RATE = 0.0
"""Of learning: the optimiser works as ever, and all steps are of the same weights."""
EVERYTHING = 1_000_000
"""A token budget that everything fits into."""


@dataclass(frozen=True)
class Size:
    """How much one step is."""

    groups: int = 1
    completion: int = 16
    """Tokens; prompts have ten times as many."""
    layers: int | None = None
    """Of the embedded model, its first ones; None: all."""
    repeats: int = 5


@dataclass(frozen=True)
class Work:
    """What all learn from, [b] rows of t completion tokens."""

    prompt_bp: Tensor
    ids_bt: Tensor
    advantage_b: Tensor
    old_bt: Tensor

    def samples(self) -> list[Sample]:
        """As our learner gets it: the mean over all tokens."""
        share = 1 / self.ids_bt.numel()
        rows = zip(self.prompt_bp.tolist(), self.ids_bt.tolist(), self.advantage_b.tolist(), strict=True)
        return [
            Sample(
                prompt=tuple(prompt),
                ids=tuple(ids),
                weight=(share,) * len(ids),
                positive=(share * max(advantage, 0.0),) * len(ids),
                negative=(share * min(advantage, 0.0),) * len(ids),
            )
            for prompt, ids, advantage in rows
        ]


def fresh(size: Size, dtype: torch.dtype) -> Any:
    """The embedded model with a LoRA, whose weights are the same every time and not zero."""
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    changes = {} if size.layers is None else {"num_hidden_layers": size.layers}
    base = AutoModelForCausalLM.from_pretrained(embedded_model(), dtype=dtype, attn_implementation="sdpa", **changes)
    torch.manual_seed(1)
    return get_peft_model(base, LoraConfig(r=16, lora_alpha=16, target_modules=list(TARGETS), init_lora_weights=False))


def work(size: Size, model: Any) -> Work:
    """Random prompts, completions and advantages.

    Ratios are 1 or far outside the clip range: near its ends, the rounding of bfloat16 would decide what is clipped.
    """
    luck = torch.Generator().manual_seed(0)
    rows, vocabulary = size.groups * GROUP, model.config.vocab_size
    prompt_gp = torch.randint(10, vocabulary, (size.groups, 10 * size.completion), generator=luck)
    ids_bt = torch.randint(10, vocabulary, (rows, size.completion), generator=luck)
    plain = Work(
        prompt_gp.repeat_interleave(GROUP, 0),
        ids_bt,
        torch.randn(rows, generator=luck),
        torch.zeros(rows, size.completion),
    )
    samples = plain.samples()
    with torch.no_grad():
        for batch in pack(samples, EVERYTHING):
            logprobs = predict(model, batch).logprobs_n.view(-1, size.completion)
            offset = 0.7 * torch.randint(-1, 2, logprobs.shape, generator=luck)
            plain.old_bt[list(batch.places)] = logprobs + offset
    return plain


class Ours:
    """One step of our learner, packed or not; packing is part of the step."""

    def __init__(self, model: Any, work: Work, share: bool, rows: int = GROUP) -> None:
        self.model, self.work, self.share = model, work, share
        self.budget = EVERYTHING if share else rows * (work.prompt_bp.shape[1] + work.ids_bt.shape[1])
        self.optimiser = torch.optim.AdamW(trained(model), lr=RATE)
        self.slope_bt = torch.zeros(work.old_bt.shape)
        """Of the last step's loss by each log-probability."""

    def gradient(self) -> float:
        """Loss of the step, its gradient left in the parameters."""
        total = 0.0
        for batch in pack(merge(self.samples()), self.budget, share=self.share):
            total += self._backward(batch)
        return total

    def samples(self) -> list[Sample]:
        """What is learnt from."""
        return self.work.samples()

    def _backward(self, batch: Batch) -> float:
        said = predict(self.model, batch)
        said.logprobs_n.register_hook(lambda slope_n: self._keep(batch.places, slope_n))
        old_n = self.work.old_bt[list(batch.places)].flatten()
        found = loss(
            batch.streams,
            Scores(logprobs_n=said.logprobs_n, entropy_n=said.entropy_n, old_n=old_n),
            ratio=Ratio(),
            trust=Clip(kind="clip", lo=EPSILON, hi=EPSILON),
        )
        found.total.backward()
        return found.total.item()

    def _keep(self, places: Sequence[int], slope_n: Tensor) -> None:
        self.slope_bt[list(places)] = slope_n.view(len(places), -1)

    def step(self) -> None:
        """The whole step."""
        self.gradient()
        self.optimiser.step()
        self.optimiser.zero_grad()


class Fed(Ours):
    """One step of our learner, unpacked, with rows fed as TRL feeds them: to their last token, which predicts nothing.

    So the forward is TRL's to the bit, or nearly, in any dtype.
    """

    def __init__(self, model: Any, work: Work, rows: int) -> None:
        super().__init__(model, replace(work, old_bt=torch.nn.functional.pad(work.old_bt, (0, 1))), False, rows)
        self.budget += rows

    def samples(self) -> list[Sample]:
        """With a token that counts for nothing after each."""
        return [
            structs.replace(
                one, ids=(*one.ids, 0), weight=(*one.weight, 0.0), positive=(*one.positive, 0.0),
                negative=(*one.negative, 0.0),
            )
            for one in super().samples()
        ]  # fmt: skip


class Theirs:
    """One step of TRL's trainer on the same rows, `rows` of them at once."""

    def __init__(self, model: Any, work: Work, rows: int, folder: str) -> None:
        from datasets import Dataset
        from transformers import AutoTokenizer
        from trl import GRPOConfig, GRPOTrainer

        total = len(work.ids_bt)
        config = GRPOConfig(
            output_dir=folder, use_cpu=True, bf16=False, fp16=False, gradient_checkpointing=False, report_to=[],
            per_device_train_batch_size=rows, gradient_accumulation_steps=total // rows, num_generations=GROUP,
            max_completion_length=work.ids_bt.shape[1], beta=0.0, epsilon=EPSILON, loss_type="dapo",
            temperature=1.0, learning_rate=RATE, weight_decay=0.01, disable_tqdm=True,
        )  # fmt: skip
        self.trainer = GRPOTrainer(
            model=model, reward_funcs=lambda completions, **_: [0.0] * len(completions), args=config,
            train_dataset=Dataset.from_dict({"prompt": ["-"] * total}),
            processing_class=AutoTokenizer.from_pretrained(embedded_model()),
        )  # fmt: skip
        self.trainer._prepare_inputs = lambda inputs: inputs
        self.trainer.current_gradient_accumulation_steps = total // rows
        self.trainer.create_optimizer()
        self.parts = [
            {
                "prompt_ids": work.prompt_bp[part],
                "prompt_mask": torch.ones_like(work.prompt_bp[part]),
                "completion_ids": work.ids_bt[part],
                "completion_mask": torch.ones_like(work.ids_bt[part]),
                "advantages": work.advantage_b[part],
                "old_per_token_logps": work.old_bt[part],
                "num_items_in_batch": torch.tensor(float(work.ids_bt.numel())),
            }
            for part in torch.arange(total).split(rows)
        ]
        self._slopes: list[Tensor] = []
        scored = self.trainer._get_per_token_logps_and_entropies

        def watched(*args: Any, **kwargs: Any) -> Any:
            logprobs_bt, *rest = scored(*args, **kwargs)
            logprobs_bt.register_hook(self._slopes.append)
            return logprobs_bt, *rest

        self.trainer._get_per_token_logps_and_entropies = watched

    @property
    def slope_bt(self) -> Tensor:
        """Of the last step's loss by each log-probability."""
        return torch.cat(self._slopes)

    def gradient(self) -> float:
        """Loss of the step, its gradient left in the parameters."""
        model = self.trainer.model
        model.train()
        self._slopes.clear()
        return sum(float(self.trainer.training_step(model, part, None)) for part in self.parts)

    def step(self) -> None:
        """The whole step."""
        self.gradient()
        self.trainer.optimizer.step()
        self.trainer.optimizer.zero_grad()


def trained(model: Any) -> list[Tensor]:
    """Parameters of the LoRA."""
    return [each for each in model.parameters() if each.requires_grad]


def seconds(do: Callable[[], object]) -> float:
    """CPU seconds."""
    start = process_time()
    do()
    return process_time() - start


def fastest(make: Callable[[int], Ours | Theirs]) -> Ours | Theirs:
    """With the number of rows at once whose second step is fastest."""
    tried = [make(rows) for rows in (2, 4, 8)]
    for one in tried:
        one.step()
    return min(tried, key=lambda one: seconds(one.step))


def compare(size: Size, dtype: torch.dtype, folder: str) -> list[str]:
    """Lines of one dtype. Raises AssertionError where float32 losses or gradients are not TRL's."""
    shared = work(size, fresh(size, dtype))
    sides: dict[str, Ours | Theirs] = {
        "packed": Ours(fresh(size, dtype), shared, share=True),
        "unpacked": fastest(lambda rows: Ours(fresh(size, dtype), shared, share=False, rows=rows)),
    }
    if importlib.util.find_spec("trl"):
        sides["TRL"] = fastest(lambda rows: Theirs(fresh(size, dtype), shared, rows, folder))
    name = str(dtype).removeprefix("torch.")
    lines = [agreement(sides, name, strict=dtype == torch.float32)]
    times: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(size.repeats):
        for side, one in sides.items():
            times[side].append(seconds(one.step))
    tokens = shared.ids_bt.numel()
    for side, taken in times.items():
        speed = (
            f"{tokens / median(taken):,.1f} sampled tokens/s ({tokens / max(taken):,.1f} to {tokens / min(taken):,.1f})"
        )
        against = f", packed is {median(taken) / median(times['packed']):.2f} times as fast" if side != "packed" else ""
        lines.append(f"learner, {name}, {side}: {speed}{against}")
    if dtype == torch.bfloat16:
        lines.append(rounding(size, shared, folder))
    if "TRL" not in sides:
        lines.append("learner: TRL is not installed, so its column is missing")
    return lines


def agreement(sides: dict[str, Ours | Theirs], name: str, strict: bool) -> str:
    """Losses and gradients against the packed ones."""
    found = {side: answer(one) for side, one in sides.items()}
    loss, gradient = found["packed"]
    said = []
    for side in list(sides)[1:]:
        off, error = abs(found[side][0] - loss), apart(gradient, found[side][1])
        assert not strict or (off <= 1e-4 and error <= 1e-3), f"{side}: losses differ by {off}, gradients by {error}"
        said.append(f"{side} differs from packed by {off:.1e} in the loss, {error:.1e} of the gradient's norm")
    return f"learner, {name}: {'; '.join(said)}"


def rounding(size: Size, work: Work, folder: str) -> str:
    """How far gradients in bfloat16 are from the one in float32 of the same weights, and TRL's from each other."""
    rounded = torch.bfloat16
    exact = answer(Ours(fresh(size, rounded).float(), work, share=True))[1]
    gradients = {"packed": answer(Ours(fresh(size, rounded), work, share=True))[1]}
    alike = ""
    for rows in (2, 4, 8) if importlib.util.find_spec("trl") else ():
        theirs, ours = Theirs(fresh(size, rounded), work, rows, folder), Fed(fresh(size, rounded), work, rows)
        (loss, gradient), (same, fed) = answer(theirs), answer(ours)
        gradients[f"TRL with {rows} rows at once"] = gradient
        off, error = abs(same - loss), apart(ours.slope_bt[:, :-1], theirs.slope_bt)
        assert max(off / 1e-4, error / 1e-3) <= 1, f"fed alike, losses differ by {off}, their slopes by {error}"
        alike = (
            f"; fed alike, losses differ by {off:.1e}, their gradients by each log-probability by {error:.1e}"
            f" and by the parameters by {apart(fed, gradient):.1e}"
        )
    said = [f"{side} {apart(gradient, exact):.1e}" for side, gradient in gradients.items()]
    between = max((apart(one, other) for one, other in combinations(list(gradients.values())[1:], 2)), default=None)
    beside = f"; TRL's differ among themselves by up to {between:.1e}" if between is not None else ""
    return f"learner, bfloat16: gradients differ from those in float32 by: {', '.join(said)} of the norm{beside}{alike}"


def answer(one: Ours | Theirs) -> tuple[float, Tensor]:
    """A step's loss and its gradient in float32, [parameters]."""
    model = one.trainer.model if isinstance(one, Theirs) else one.model
    loss = one.gradient()
    gradient = torch.cat([each.grad.flatten().float() for each in trained(model)])
    model.zero_grad()
    return loss, gradient


def apart(one: Tensor, other: Tensor) -> float:
    """How far two gradients are apart, as a share of the second's norm."""
    return float((one - other).norm() / other.norm())


def main(size: Size | None = None) -> list[str]:
    """Both dtypes (wanted: packed at least 3 times as fast as TRL)."""
    size = size or Size()
    what = f"{size.groups * GROUP} rows a step, {size.completion} tokens after {10 * size.completion}"
    lines = [f"learner: {what}, {size.layers or 'all'} layers"]
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in (torch.float32, torch.bfloat16):
            lines += compare(size, dtype, folder)
    return lines
