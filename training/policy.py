"""Policies: LoRA adapters side by side on one base model, or a small model trained whole. Versioned `name@v`.

A folder of a version holds safetensors, the settings that peft or transformers read, and `policy.json` (`Saved`).
Folders appear whole or not at all. Left out: quantised bases; adapters that bring more than low-rank matrices.
"""

from __future__ import annotations

import copy
import hashlib
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import torch
from msgspec import Struct
from peft import LoraConfig
from safetensors.torch import save
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM
from transformers.utils import logging

from agents.engines.embedded import NAME as EMBEDDED
from agents.engines.embedded import embedded_model
from agents.engines.weights import (
    ADAPTER,
    ADAPTER_CONFIG,
    MODEL,
    Adapted,
    WeightsError,
    adapter_config,
    fingerprint,
    is_adapter,
    load_model,
    read_weights,
)

Kind: TypeAlias = Literal["lora", "full"]
NOTE = "policy.json"
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
NAME = re.compile(r"[A-Za-z0-9_-]+")
SPREAD = 0.02
"""Standard deviation of first weights in transformers."""


class Saved(Struct, frozen=True, kw_only=True):
    """What a version's folder says of itself."""

    name: str
    version: int
    kind: Kind
    hash: str
    """SHA-256 of the weights' file."""
    parent: str = ""
    """The version it was trained from, `name@v`; empty: a new policy."""
    base: str = ""
    """SHA-256 of the base model's weights."""

    @property
    def label(self) -> str:
        """`name@v`."""
        return f"{self.name}@{self.version}"


class Policy:
    """Weights that learn. Made by a `Base`."""

    def __init__(self, base: Base, name: str, kind: Kind, module: Any, parent: str = "") -> None:
        self.name, self.kind, self.parent = name, kind, parent
        self.version = 0
        """Of the last save; 0: never saved."""
        self.trained = True
        """Whether its weights take gradients."""
        self._origin = ""
        self._base, self._module = base, module
        self._parameters: list[torch.nn.Parameter] = (
            base.adapted.parameters(name) if kind == "lora" else list(module.parameters())
        )

    @property
    def label(self) -> str:
        """`name@v` of the last save; the parent's before the first."""
        return f"{self.name}@{self.version}" if self.version else self.parent

    def parameters(self) -> list[torch.nn.Parameter]:
        """Its weights, always in the same order."""
        return self._parameters

    def tensors(self) -> dict[str, torch.Tensor]:
        """Its weights by the names they have in its file; they change as it learns."""
        if self.kind == "lora":
            return dict(self._base.adapted.tensors(self.name))
        return {name: value.detach() for name, value in self._module.named_parameters()}

    def restore(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Take the values of tensors like those of `tensors`. Raises WeightsError where names or shapes differ."""
        mine = self.tensors()
        wrong = sorted(mine.keys() ^ tensors.keys()) or [n for n in mine if mine[n].shape != tensors[n].shape]
        if wrong:
            raise WeightsError(
                f"{self.name} can't take these weights: {wrong[0]} is missing, unknown or of another shape"
            )
        for name, value in mine.items():
            value.copy_(tensors[name])

    def start_anew(self, folder: str | Path) -> None:
        """Go on from one of its versions, which the next save then names as its parent. Raises WeightsError."""
        self.restore(read_weights(Path(folder) / (ADAPTER if self.kind == "lora" else MODEL)))
        self._origin = saved_in(folder).label

    def train(self, on: bool = True) -> None:
        """Let its weights take gradients, or freeze them."""
        self.trained = on
        for parameter in self._parameters:
            parameter.requires_grad_(on)

    def shake(self, seed: int, size: float) -> None:
        """Add normal noise of a standard deviation to every weight."""
        generator = torch.Generator().manual_seed(seed)
        for value in self.tensors().values():
            value += size * torch.randn(value.shape, generator=generator).to(value)

    @contextmanager
    def active(self) -> Iterator[Any]:
        """The model that computes with these weights; call it as any causal language model of transformers."""
        if self.kind == "lora":
            self._base.activate(self.name)
        yield self._module

    def save(self, root: str | Path) -> Saved:
        """Write the next version into `root/name@v` and say what was written. Raises WeightsError if it is there."""
        data = save({name: value.cpu().contiguous() for name, value in self.tensors().items()}, {"format": "pt"})
        saved = Saved(
            name=self.name,
            version=self.version + 1,
            kind=self.kind,
            hash=hashlib.sha256(data).hexdigest(),
            parent=self._origin or self.label,
            base=self._base.hash,
        )
        folder = Path(root) / saved.label
        if folder.exists():
            raise WeightsError(f"{folder} is there already")
        folder.parent.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{saved.label}."))
        try:
            (place / (ADAPTER if self.kind == "lora" else MODEL)).write_bytes(data)
            self._base.describe(self, place)
            (place / NOTE).write_bytes(msgspec.json.format(msgspec.json.encode(saved), indent=1))
            place.chmod(0o755)
            place.rename(folder)
        finally:
            shutil.rmtree(place, ignore_errors=True)
        self.version, self._origin = saved.version, ""
        return saved


class Base:
    """A base model and the policies on it. `model`: "embedded", or a folder. Not safe to share among threads.

    Raises WeightsError where the model can't be loaded.
    """

    def __init__(
        self, model: str = "embedded", *, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu"
    ) -> None:
        self.folder = embedded_model() if model == "embedded" else Path(model)
        self.name = EMBEDDED if model == "embedded" else self.folder.name
        """As adapters made for it call it."""
        self.hash = fingerprint(self.folder)
        self.tokenizer: Any = AutoTokenizer.from_pretrained(self.folder)
        self._dtype, self._device = dtype, device
        self._plain: Any = load_model(self.folder, dtype, device)
        self.adapted = Adapted(self._plain)
        self.policies: dict[str, Policy] = {}

    @property
    def longest(self) -> int:
        """Tokens that the model can read at once."""
        return int(self._plain.config.max_position_embeddings)

    def create(
        self,
        name: str,
        *,
        rank: int = 16,
        alpha: float = 32.0,
        targets: Sequence[str] = ATTENTION,
        layers: int | None = None,
        seed: int = 0,
    ) -> Policy:
        """A new LoRA policy that answers as the base does until it learns.

        `layers`: only the last so many; a step then costs no backward pass below them. `seed`: of its first matrices.
        """
        self._check(name)
        depth = self._plain.config.num_hidden_layers
        config = LoraConfig(
            r=rank,
            lora_alpha=alpha,
            target_modules=list(targets),
            layers_to_transform=None if layers is None else list(range(max(0, depth - layers), depth)),
            bias="none",
            task_type="CAUSAL_LM",
        )
        self.adapted.create(name, config, seed)
        return self._added(Policy(self, name, "lora", self._plain))

    def create_full(self, name: str) -> Policy:
        """A policy that trains a copy of all the base model's weights."""
        self._check(name)
        return self._added(Policy(self, name, "full", self._copied()))

    def load(self, name: str, folder: str | Path) -> Policy:
        """A policy of this name with a folder's weights, ours or a foreign adapter's.

        Version and parent go on from ours of the same name. Raises WeightsError, one line, where it doesn't fit.
        """
        self._check(name)
        saved = saved_in(folder) if (Path(folder) / NOTE).is_file() else None
        if saved is not None and saved.base != self.hash:
            raise WeightsError(f"{folder} belongs to another base model than {self.name}")
        if is_adapter(folder):
            if saved is None:
                self._check_foreign(folder)
            self.adapted.load(name, folder)
            policy = Policy(self, name, "lora", self._plain)
        else:
            policy = Policy(self, name, "full", self._copied())
            policy.restore(read_weights(Path(folder) / MODEL))
        if saved is not None:
            policy.parent = saved.label
            policy.version = saved.version if saved.name == name else 0
        return self._added(policy)

    def drop(self, policy: Policy) -> None:
        """Free a policy."""
        del self.policies[policy.name]
        if policy.kind == "lora":
            self.adapted.remove(policy.name)

    def activate(self, name: str) -> None:
        """Compute with the LoRA policy of this name, or with none (""). Gradients go where policies are trained."""
        self.adapted.activate(name)
        # peft lets only the active adapter have gradients; a step may need those of several.
        for policy in self.policies.values():
            policy.train(policy.trained)

    @contextmanager
    def plain(self) -> Iterator[Any]:
        """The base model itself."""
        self.activate("")
        yield self._plain

    def describe(self, policy: Policy, folder: Path) -> None:
        """Write the settings beside a policy's weights."""
        if policy.kind == "lora":
            config = copy.copy(self.adapted.config(policy.name))
            config.base_model_name_or_path = str(self.folder)
            config.inference_mode = True
            config.save_pretrained(folder)
        else:
            self._plain.config.save_pretrained(folder)

    def _check(self, name: str) -> None:
        if not NAME.fullmatch(name):
            raise WeightsError(f"a policy's name is letters, digits, - and _, not {name!r}")
        if name in self.policies:
            raise WeightsError(f"there is a policy {name!r} already")

    def _added(self, policy: Policy) -> Policy:
        policy.train()
        self.policies[policy.name] = policy
        return policy

    def _copied(self) -> Any:
        return load_model(self.folder, self._dtype, self._device)

    def _check_foreign(self, folder: str | Path) -> None:
        """Whether a foreign adapter names this base model; its shapes are compared later. Raises WeightsError."""
        named = str(adapter_config(folder).base_model_name_or_path or "")
        if named and Path(named).name.lower() not in (self.name.lower(), self.folder.name.lower()):
            raise WeightsError(f"{folder} was made for {named}, not for {self.name}")


def saved_in(folder: str | Path) -> Saved:
    """What a version's folder says of itself, compared with its weights. Raises WeightsError."""
    file = Path(folder) / NOTE
    try:
        saved = msgspec.json.decode(file.read_bytes(), type=Saved)
    except (OSError, msgspec.DecodeError) as error:
        raise WeightsError(f"{folder} is no version of a policy: {error}") from error
    if saved.hash != fingerprint(folder):
        raise WeightsError(f"{folder} holds other weights than its {NOTE} says")
    return saved


def rewind(root: str | Path, name: str, version: int) -> list[str]:
    """Delete the folders of a policy's versions after one, those of an unfinished update; the labels deleted."""
    for unfinished in Path(root).glob(f".{name}@*"):
        shutil.rmtree(unfinished)
    return _deleted(root, [f"{name}@{each}" for each in versions(root, name) if each > version])


def retain(root: str | Path, name: str, keep: int, named: Collection[str] = ()) -> list[str]:
    """Delete the folders of a policy's versions but the last `keep` and those in `named`; the labels deleted."""
    every = versions(root, name)
    old = [f"{name}@{version}" for version in every[: max(0, len(every) - keep)]]
    return _deleted(root, [label for label in old if label not in named])


def versions(root: str | Path, name: str) -> list[int]:
    """A policy's versions on disk, oldest first."""
    found = [path.name.rpartition("@")[2] for path in Path(root).glob(f"{name}@*")]
    return sorted(int(version) for version in found if version.isdecimal())


def _deleted(root: str | Path, labels: list[str]) -> list[str]:
    for label in labels:
        shutil.rmtree(Path(root) / label)
    return labels


def export(folder: str | Path, target: str | Path, base: str = "") -> Path:
    """A copy of a version's folder to give away; `base`: the base model's public name, for the adapter's settings.

    Raises WeightsError where the target is there or the folder isn't whole.
    """
    saved_in(folder)
    target = Path(target)
    if target.exists():
        raise WeightsError(f"{target} is there already")
    shutil.copytree(folder, target)
    if base and is_adapter(target):
        file = target / ADAPTER_CONFIG
        settings = msgspec.json.decode(file.read_bytes()) | {"base_model_name_or_path": base}
        file.write_bytes(msgspec.json.format(msgspec.json.encode(settings), indent=2))
    return target


def tiny_model(
    folder: str | Path,
    seed: int = 0,
    *,
    width: int = 64,
    layers: int = 2,
    heads: int = 4,
    context: int = 2048,
    spread: float = SPREAD,
) -> Path:
    """Write a small Llama with random weights (float32) and the embedded model's tokenizer and chat template.

    `spread`: standard deviation of its weights but the embeddings', which have transformers' own: answers are nearly
    uniform. With `width ** -0.5` layers pass on what they read, and learn to tell prompts apart in far fewer steps.
    """
    logging.disable_progress_bar()
    target = Path(folder)
    tokenizer = AutoTokenizer.from_pretrained(embedded_model())
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=context,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=spread,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
        model.get_input_embeddings().weight.data *= SPREAD / spread
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
    return target
