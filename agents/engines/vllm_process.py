"""vLLM's life in this process: start, event loop, death and end. vllm is imported when a model starts.

The engine's thread blocks SIGINT, and its child processes inherit that: Ctrl-C reaches only the program, which closes
the engine when it's done.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import shutil
import signal
import tempfile
import threading
import warnings
from collections.abc import Collection, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, TypeVar

from agents.engines.embedded import EmbeddedModelError, embedded_model
from agents.engines.encoding import Refused
from agents.engines.vllm_environment import environment, first_failure
from sim.types import EngineFailure

T = TypeVar("T")

KEY = "agora"
"""Where `SamplingParams.extra_args` holds the mask of a request."""
PROCESSOR = "agents.engines.vllm_mask:AnswerMask"
LOGPROBS = 20
"""Most tokens of one place, likeliest first, that vLLM gives log-probabilities of."""
MISSING = "vLLM is not installed: make demo sets it up for a CPU, pip install -e '.[gpu]' for a GPU"

_PULSE = 0.5
"""Seconds between two looks at whether the engine lives."""
_GRACE = 2.0
"""Seconds before the processes are killed; they have nothing to save."""

DIED = "vLLM's engine failed"


class Served:
    """A model in memory and the thread that talks to it. Blocks until it is loaded; raises EngineFailure."""

    def __init__(self, model: str, settings: Mapping[str, Any]) -> None:
        self.model = model
        self._failure = ""
        self._open: set[asyncio.Task[Any]] = set()
        self._log = Path(tempfile.mkdtemp(prefix="agora-vllm-"))
        self._loop = asyncio.new_event_loop()
        self._door = threading.Lock()
        self._llm: Any = None
        self.tokenizer: Any = None
        self.vocabulary = 0
        """Number of the model's logits."""
        ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(settings, ready), name="agora-vllm", daemon=True)
        self._thread.start()
        ready.result()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run on the engine's loop; whatever goes wrong with the engine is an EngineFailure."""
        with self._door:
            if not self._failure:
                return asyncio.run_coroutine_threadsafe(self._guard(work), self._loop)
        work.close()
        failed: Future[T] = Future()
        failed.set_exception(EngineFailure(self._failure))
        return failed

    async def load(self, adapter: Any) -> None:
        """Take a LoRA adapter in. Raises Refused where vLLM can't use it."""
        try:
            await self._llm.add_lora(adapter)
        except Exception as error:
            raise Refused(_line(error)) from error

    async def unload(self, number: int) -> None:
        """Drop the adapter of a number."""
        await self._llm.remove_lora(number)

    async def generate(self, ids: Sequence[int], params: Any, number: str, adapter: Any, priority: int) -> Any:
        """vLLM's output for one prompt. Raises Refused where vLLM refuses this request."""
        from vllm.exceptions import VLLMClientError

        stream = self._llm.generate(
            {"prompt_token_ids": list(ids)}, params, number, lora_request=adapter, priority=priority
        )
        try:
            return [output async for output in stream][-1]
        except (VLLMClientError, ValueError) as error:
            raise Refused(_line(error)) from error

    def close(self) -> None:
        """Fail what is open, end the child processes, the loop and the thread. Idempotent."""
        with self._door:
            self._failure = self._failure or "the engine is closed"
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self, settings: Mapping[str, Any], ready: Future[None]) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._llm = self._loop.run_until_complete(self._load(settings))
            self.tokenizer = self._llm.get_tokenizer()
            self.vocabulary = self._llm.model_config.get_vocab_size()
            ready.set_result(None)
            watch = self._loop.create_task(self._watch())
            self._loop.run_forever()
            watch.cancel()
        except BaseException as error:
            self._failure = self._cause(f"vLLM cannot serve {self.model}", error)
            ready.set_exception(EngineFailure(self._failure))
        finally:
            self._end()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # vLLM leaves its sockets' context to the collector
                self._llm = None
                gc.collect()
            shutil.rmtree(self._log, ignore_errors=True)

    async def _load(self, settings: Mapping[str, Any]) -> Any:
        folder = str(embedded_model()) if self.model == "embedded" else self.model
        with environment(self._log, offline=os.path.isdir(folder)):
            # The tracker's start unblocks SIGINT, so it comes first.
            resource_tracker.ensure_running()
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                from vllm.engine.arg_utils import AsyncEngineArgs
                from vllm.platforms import current_platform
                from vllm.v1.engine.async_llm import AsyncLLM
            except ImportError as error:
                raise EngineFailure(f"{MISSING} ({_line(error)})") from error
            context = settings["max_model_len"]
            # On a CPU a seeded request must not have its prompt read in chunks, and compiling needs a C++ compiler.
            plain = {
                "enable_chunked_prefill": False,
                "max_num_batched_tokens": max(context, 4096),
                "enforce_eager": True,
                "dtype": _cpu_dtype(settings["dtype"]),
            }
            return AsyncLLM.from_engine_args(
                AsyncEngineArgs(
                    model=folder,
                    **(dict(settings) | plain if current_platform.is_cpu() else settings),
                    scheduling_policy="priority",
                    logprobs_mode="processed_logprobs",
                    max_logprobs=LOGPROBS,
                    logits_processors=[PROCESSOR],
                    structured_outputs_config={"backend": "guidance", "disable_any_whitespace": True},
                    disable_log_stats=True,
                    use_tqdm_on_load=False,
                )
            )

    async def _guard(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            return await work
        except EngineFailure:
            raise
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and not self._failure:
                raise
            cause = self._failure or self._cause(DIED, error)
        finally:
            self._open.discard(task)
        # Out here the exception holds on to none of vLLM's frames.
        raise EngineFailure(cause)

    async def _watch(self) -> None:
        """Fail what is open soon after the engine's death, however it died."""
        while not self._llm.errored:
            await asyncio.sleep(_PULSE)
        self._failure = self._cause(DIED, None)
        for task in tuple(self._open):
            task.cancel()

    def _cause(self, what: str, error: BaseException | None) -> str:
        """One line: what happened and the last error of vLLM's log, or else the exception."""
        if isinstance(error, EngineFailure | EmbeddedModelError):
            return str(error)
        logged = first_failure(self._log)
        return f"{what}: {logged or (_line(error) if error else 'no error in its log (out of memory, or killed)')}"

    def _end(self) -> None:
        # Calls that came just before the end begin here, so that they can be ended.
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.run_until_complete(_ended(self._open))
        if self._llm is not None:
            self._loop.run_until_complete(_shut(self._llm))
        self._loop.close()


async def _shut(llm: Any) -> None:
    llm.shutdown(timeout=_GRACE)
    await asyncio.sleep(0)
    await _ended(asyncio.all_tasks() - {asyncio.current_task()})


async def _ended(tasks: Collection[asyncio.Task[Any] | None]) -> None:
    """Cancel and see them out; vLLM's may be slow to go when its engine is dead."""
    going = [task for task in tasks if task is not None]
    for task in going:
        task.cancel()
    if going:
        await asyncio.wait(going, timeout=5)


def _cpu_dtype(dtype: str) -> str:
    """float32 instead of the model's own where the CPU has no bfloat16 arithmetic: there it is several times faster."""
    import torch

    able = torch.cpu.get_capabilities()
    native = any(able.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))
    return "float32" if dtype == "auto" and not native else dtype


def sampling_params(**settings: Any) -> Any:
    """vLLM's SamplingParams; one output, at the end."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    return SamplingParams(output_kind=RequestOutputKind.FINAL_ONLY, **settings)


def json_constraint(schema: Mapping[str, Any]) -> Any:
    """The constraint to JSON of a schema."""
    from vllm.sampling_params import StructuredOutputsParams

    return StructuredOutputsParams(json=dict(schema))


def adapter(policy: str, number: int, folder: str) -> Any:
    """vLLM's request for a LoRA adapter. Its name holds the number: what is kept of prompts goes by name and folder."""
    from vllm.lora.request import LoRARequest

    return LoRARequest(f"{policy} {number}", number, folder)


def changed_modules(file: Path) -> set[str]:
    """Last parts of the names of the layers that an adapter's file has matrices for."""
    from safetensors import safe_open

    with safe_open(file, "np") as opened:
        return {name.partition(".lora_")[0].rpartition(".")[2] for name in opened.keys()}  # noqa: SIM118


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300] if text else type(error).__name__
