"""Rescoring: how likely another model, or policy, would have given the answers that a run's models gave.

It is a fork from the run's start in which every answer is the recorded one and has the log-probabilities that the
scorer gives it, at the scorer's temperature and under the same constraint. So it is recorded, resumed and verified like
any other run, and `sim.metrics.analysis.offpolicy` finds it beside its parent, which is only read.

A fork is scored from its own moment on. Answers to JSON forms are scored by the model's own distribution, from which
no engine here samples them; they have no off-policy value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from math import fsum, inf
from pathlib import Path
from types import MappingProxyType

import orjson
from msgspec.structs import replace

from sim.commands.failures import BadInput
from sim.fork import fork
from sim.metrics.family import RESCORER
from sim.policies import adapters
from sim.record.committed import Committed, SchemaMismatch
from sim.record.reader import Run
from sim.record.schema import TABLES
from sim.scenarios.located import nearest, shown
from sim.scenarios.scenario import loads
from sim.scenarios.scenario_schema import ModelSettings, Scenario
from sim.scenarios.strict import checked
from sim.scenarios.yaml_text import read_yaml
from sim.studies.docket import settings_of, words_of
from sim.types import JSON, Choice, Completion, EngineFailure, Form, Logprobs, Request, Tokens
from sim.voices import Pool

UNABLE = ("openai", "synthetic")
"""Engines that give no log-probabilities of what somebody else has answered."""
SAMPLING = ("temperature", "top_p", "max_tokens")
"""Keys that a scorer has from the model whose answers it scores, unless it says otherwise."""


def rescoring(path: Path, folder: Path, *, model: str = "", policy: str = "", of: str = "") -> Path:
    """A new run file, not started, in which answers of a finished run are scored; or the one that is there already.

    `model`: who scores, an entry of the run's models or one written like it; empty: the one that answered. `policy`:
    `name@v=FOLDER`, the weights that it scores with. `of`: whose answers, an entry of the run's models; empty: those of
    all that gave any. Start it with `sim.runs.go`. Raises BadInput, ScenarioError.
    """
    with Run(path) as run:
        manifest = run.manifest()
        if run.status != "finished":
            raise BadInput(f"{manifest.id} is {run.status}; finish it first: agora resume {manifest.id}")
        scenario = loads(manifest.scenario, manifest.base, file=f"{path.name}: scenario")
        names = _answered(run, scenario, of)
    entries = {name: _entry(scenario, name, model, policy, path.resolve(), manifest.id) for name in names}
    run_id = f"{manifest.id}-rescored"
    for each in sorted(folder.glob(f"{run_id}*.db")):
        if _scores(each, path, entries):
            return each
    sets = [f"models.{name}={orjson.dumps(entry).decode()}" for name, entry in entries.items()]
    return fork(path, folder, manifest.fork_tick or 0, sets=sets, run_id=run_id)


def _answered(run: Run, scenario: Scenario, of: str) -> list[str]:
    """The entries of the run's models whose answers are scored."""
    columns = TABLES["calls"].columns.keys()
    places = [columns.index(name) for name in ("model", "ids", "finish")]
    spoke: dict[str, bool] = {}
    for page in run.pages("calls"):
        for row in page:
            name, ids, finish = (row[place] for place in places)
            spoke[name] = spoke.get(name, True) and (ids is not None or finish == "error")
    if of and of not in spoke:
        raise BadInput(f"--of {shown(of)} answered nothing in {run.path.stem}; {nearest(of, spoke)}")
    names = [of] if of else [name for name in spoke if not scenario.models[name].person]
    if not names:
        raise BadInput(f"no model answered anything in {run.path.stem}")
    for name in names:
        if not spoke[name]:
            raise BadInput(f"{run.path.stem} holds no tokens of what {name} answered, so nobody can score them")
        if not scenario.models[name].temperature:
            raise BadInput(f"{name} answered greedily (temperature 0), so no other policy can be valued from it")
    return sorted(names)


def _entry(scenario: Scenario, name: str, model: str, policy: str, path: Path, run_id: str) -> dict[str, JSON]:
    """What stands under the model's name in the scenario of the rescoring."""
    own = scenario.models[name]
    said = {key: getattr(own, key) for key in SAMPLING} if model not in scenario.models else {}
    data = said | settings_of(scenario, model or name)
    scorer = checked(ModelSettings, data, read_yaml(model, "--model"))
    places = {label: str(folder.resolve()) for label, folder in adapters(scorer, scenario.base).items()}
    if policy:
        label, _, folder = policy.partition("=")
        if "@" not in label or not folder:
            raise BadInput(f"--policy {shown(policy)} is none; write name@v=FOLDER, like {name}@2=adapters/{name}")
        if not Path(folder).is_dir():
            raise BadInput(f"--policy {shown(policy)}: there is no folder {folder}")
        scorer = scorer.model_copy(update={"policy": label})
        places[label] = str(Path(folder).resolve())
    if scorer.person:
        raise BadInput("--model: people give no log-probabilities; name a model")
    if scorer.engine in UNABLE:
        raise BadInput(f"--model: the engine {scorer.engine} scores no given answer; choose vllm or torch")
    if not scorer.temperature:
        raise BadInput("--model: temperature 0 gives its one answer no probability to weigh; write one above 0")
    rest = {key: value for key, value in scorer.settings.items() if key != "adapters"}
    return {
        "engine": RESCORER,
        "model": f"{words_of(scorer)} on {run_id}",
        **{key: getattr(scorer, key) for key in SAMPLING},
        "context": own.context,
        "record_tokens": own.record_tokens,
        "policy": scorer.policy,
        **({"adapters": places} if places else {}),
        "run": str(path),
        "scorer": {"engine": scorer.engine, "model": scorer.model, **rest},
    }


def _scores(file: Path, path: Path, entries: Mapping[str, JSON]) -> bool:
    """Whether a file is that rescoring of the run."""
    try:
        with Run(file) as run:
            manifest = run.manifest()
    except SchemaMismatch:
        return False
    models = read_yaml(manifest.scenario, manifest.id).data.get("models", {})
    found = {name: entry for name, entry in models.items() if "scorer" in entry}
    return manifest.parent == str(path.resolve()) and found == entries


class Rescorer:
    """An engine that gives the answers of a stored run, with the log-probabilities that another one gives them.

    `run`: its file. `scorer`: the other's `engine`, `model` and settings, as in a scenario. Raises EngineFailure where
    it cannot score, or has other tokens than the run's answers.
    """

    def __init__(
        self,
        run: str,
        scorer: Mapping[str, JSON],
        *,
        max_model_len: int = 4096,
        adapters: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        own = {**scorer, "context": max_model_len} | ({"adapters": dict(adapters)} if adapters else {})
        settings = ModelSettings.model_validate(own)
        self._words = words_of(settings)
        self._run = Committed(Path(run))
        self._pool = Pool(Path(self._run.manifest().base))
        self._engine = self._pool.voices({"scorer": settings})["scorer"].engine

    def submit(self, request: Request) -> Future[Completion]:
        """The recorded answer, scored; one that failed as it is."""
        found = self._run.completion(request.key)
        if found is None:
            raise EngineFailure(f"{self._run.path.stem} holds no answer under {tuple(request.key)}")
        recorded, future = found[1], Future[Completion]()
        if not recorded.ids:
            future.set_result(recorded)
            return future
        scores = self._engine.score([request], [recorded.ids])
        scores.add_done_callback(lambda done: self._told(future, lambda: self._scored(request, recorded, done)))
        return future

    def score(self, requests: Sequence[Request], continuations: Sequence[Tokens]) -> Future[Sequence[Logprobs]]:
        """As the scorer does."""
        return self._engine.score(requests, continuations)

    def close(self) -> None:
        """Close the scorer and the run."""
        self._pool.close()
        self._run.close()

    def _told(self, future: Future[Completion], answer: Callable[[], Completion]) -> None:
        try:
            future.set_result(answer())
        except EngineFailure as failure:
            future.set_exception(failure)
        except Exception as error:
            future.set_exception(EngineFailure(f"{self._words} cannot score an answer: {error}"))

    def _scored(self, request: Request, recorded: Completion, done: Future[Sequence[Logprobs]]) -> Completion:
        (logprobs,) = done.result()
        if request.sampling.top_p == 1 and -inf in logprobs:
            raise EngineFailure(f"{self._words} has other tokens than the answers of {self._run.path.stem}")
        options = request.format.options if isinstance(request.format, Choice) else ()
        return replace(
            recorded,
            logprobs=logprobs,
            distribution="raw" if isinstance(request.format, Form) else "processed",
            option_logprobs=tuple(fsum(logprobs) if option == recorded.text else None for option in options),
        )
