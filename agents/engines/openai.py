"""Any OpenAI-compatible endpoint, through the `openai` client.

Keys come from the environment only, and are struck from every text that leaves this module.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import openai
import orjson

from agents.engines import chat
from agents.engines.chat import Reply
from agents.engines.health import Health
from agents.engines.limiter import Limiter, retry_after
from agents.engines.remote import RemoteEngine
from sim.types import JSON, EngineFailure


class OpenAIEngine(RemoteEngine):
    """Sends model calls to `base_url` (the client's own default where None), most urgent first.

    `concurrency` is (start, most). `timeout`, in seconds, is none by default: slow is not dead. After `patience`
    seconds of nothing but connection errors, 5xx and broken replies the endpoint counts as dead. A request that fails
    `attempts` times, `backoff` seconds and more apart, while the endpoint answers others is given up. `report` is told
    when no call was completed for `quiet` seconds. Where the model reasons it may spend `thinking` tokens on top of the
    answer's own bound. `extra` goes into every request body. Raises EngineFailure where a key is needed and missing.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key_env: str = "OPENAI_API_KEY",
        concurrency: tuple[int, int] = (8, 256),
        timeout: float | None = None,
        patience: float = 30.0,
        attempts: int = 6,
        backoff: float = 0.5,
        quiet: float = 30.0,
        thinking: int = 4096,
        extra: Mapping[str, JSON] | None = None,
        report: Callable[[str], None] | None = None,
    ) -> None:
        key = os.environ.get(api_key_env, "")
        if not key and base_url is None and "OPENAI_BASE_URL" not in os.environ:
            raise EngineFailure(f"no API key: set the environment variable {api_key_env}")
        super().__init__(
            model,
            limiter=Limiter(*concurrency),
            health=Health(patience, backoff),
            attempts=attempts,
            quiet=quiet,
            thinking=thinking,
            report=report,
        )
        place = urlsplit(base_url or "")
        self._secrets = tuple(filter(None, (key, place.password, place.username)))
        self._extra = dict(extra or {})
        # A closure, since attributes end up in tracebacks and debuggers.
        self._connect: Callable[[], openai.AsyncOpenAI] = lambda: openai.AsyncOpenAI(
            api_key=key or "none", base_url=base_url, timeout=timeout, max_retries=0
        )
        self._client: openai.AsyncOpenAI | None = None

    async def _disconnect(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def _exchange(self, body: dict[str, Any]) -> Reply:
        """One HTTP request and its reply, whatever it is."""
        if self._client is None:
            self._client = self._connect()
        rest = {name: value for name, value in body.items() if name not in ("model", "messages")} | self._extra
        try:
            raw = await self._client.chat.completions.with_raw_response.create(
                model=body["model"], messages=body["messages"], extra_body=rest
            )
            data = orjson.loads(raw.content)
        except openai.APIStatusError as error:
            headers = {name.lower(): value for name, value in error.response.headers.items()}
            verdict = chat.verdict(error.status_code, error.body)
            return Reply(verdict=verdict, error=self._clean(error.message), wait=retry_after(headers, time.time()))
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            return Reply(verdict="transient", error=self._clean(f"no connection: {type(cause).__name__}: {cause}"))
        except orjson.JSONDecodeError as error:
            return Reply(verdict="transient", error=f"the reply is no JSON: {error}")
        except Exception as error:  # what cannot even be sent: a broken address, half a surrogate pair
            return Reply(verdict="refused", error=self._clean(f"{type(error).__name__}: {error}"))
        status = chat.error_status(data)
        if status is not None:
            return Reply(verdict=chat.verdict(status, data), error=self._clean(str(data["error"])))
        if chat.first_choice(data) is None:
            return Reply(verdict="transient", error="the reply holds no message")
        return Reply(verdict="ok", data=data)

    def _clean(self, text: str) -> str:
        return chat.redacted(text, self._secrets)
