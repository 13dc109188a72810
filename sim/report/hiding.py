"""Secrets' values are kept out of a report that is meant to be passed on.

A value is hidden wherever it stands as written, in any text and as a number of its own; a text that tells a secret in
other words, as far as the metrics' own search finds it, is hidden whole. A value of one character stays, for it would
be found in every number; so does what nobody can find.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sim.metrics.privacy.canaries import canary, find
from sim.types import JSON, Secret

SHORTEST = 2
"""Characters of a value that is hidden in texts."""
SHORTEST_NUMBER = 3
"""Digits of a number that is hidden where data has it as a number, for small numbers are also something else."""


class Mask:
    """Texts and data without the values of secrets, or as they are where `shown`."""

    def __init__(self, secrets: Iterable[Secret], shown: bool = False) -> None:
        known = list({(one.attribute, one.value): one for one in secrets}.values())
        self._attribute = {
            form.casefold(): one.attribute for one in known for form in (one.value, *one.forms) if len(form) >= SHORTEST
        }
        self._shown = shown
        self._off = shown or not self._attribute
        forms = sorted(self._attribute, key=lambda form: (-len(form), form))
        self._values = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, forms))})(?!\w)", re.IGNORECASE)
        self._canaries = [] if self._off else [canary(one) for one in known]

    def secret(self, one: Secret) -> str:
        """A secret's value, or that it is hidden."""
        return one.value if self._shown else "[hidden]"

    def text(self, text: str) -> str:
        """A text with each value replaced by what it is."""
        return text if self._off else self._values.sub(self._instead, text)

    def _instead(self, found: re.Match[str]) -> str:
        return f"[{self._attribute.get(found[0].casefold(), 'secret')} hidden]"

    def data(self, data: JSON) -> JSON:
        """Data without the values; whole, where a text of it tells a secret in other words."""
        if self._off:
            return data
        made = self._masked(data)
        said = "\n".join(_strings(made))
        told = {self._canaries[place].secret.attribute for place, match in find(said, self._canaries) if match.sure}
        return {"text": f"[hidden: it tells {', '.join(sorted(told))}]"} if told else made

    def _masked(self, data: JSON) -> JSON:
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, dict):
            return {self.text(str(key)): self._masked(value) for key, value in data.items()}
        if isinstance(data, list | tuple):
            return [self._masked(one) for one in data]
        if isinstance(data, int | float) and not isinstance(data, bool):
            attribute = self._attribute.get(str(data))
            return f"[{attribute} hidden]" if attribute and len(str(data)) >= SHORTEST_NUMBER else data
        return data


def _strings(data: JSON) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict | list):
        for one in data.values() if isinstance(data, dict) else data:
            yield from _strings(one)
