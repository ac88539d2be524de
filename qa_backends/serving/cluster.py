"""The same backends on Ray Serve: one machine or many, replicas that come and go with the load, parts of a GPU each.

    serve run docs/ray-serve.yaml

A replica of ``Model`` holds one model, and reads together what comes together; ``Interface`` takes requests, and asks
again where a replica died, so that what was accepted is answered. Answering changes nothing, so asking twice is safe.
"""

# Annotations are not postponed here: Ray gives FastAPI methods of a class, whose annotations it would not find again.
import asyncio
from typing import Any, Literal, Self

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field, model_validator
from ray import serve
from ray.exceptions import RayActorError
from ray.serve import Deployment
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError
from ray.serve.handle import DeploymentHandle

import qa_backends
from qa_backends import catalog
from qa_backends.contract import Query
from qa_backends.errors import InputError, QAError
from qa_backends.measure.results.shipped import preselection
from qa_backends.progress import UNWATCHED
from qa_backends.runtime import Runtime
from qa_backends.serving.batching import MOST_WAIT_MS, Batcher, BatchSize
from qa_backends.serving.bounds import Bounded
from qa_backends.serving.rest import ANSWER, BACKENDS, PROBLEMS, failing
from qa_backends.serving.schemas import AnswerRequest, Failed, Given, GivenAnswer, Served, given, served
from qa_backends.serving.service import MOST_SECONDS, Bounds, Full, NotReady, by_name, tokens_of
from qa_backends.serving.together import Together

TRIES = 5
"""A query is asked of so many replicas, where those before died of something else or of it."""
HEALTH_S = 2.0
"""How often a replica is asked whether it lives: a dead one is replaced after that."""
SIZE, BOUNDS = BatchSize(), Bounds()
"""Unless the configuration says otherwise."""
QUEUED = 10_000
"""Requests that wait for the interface itself; those that wait for a model are bounded by ``max_queue``."""

api = FastAPI(title="Answers from a text, on replicas of interchangeable backends", version=qa_backends.__version__)
api.add_middleware(Bounded, paths=(ANSWER, BACKENDS), seconds=BOUNDS.seconds)
failing(api)


class Options(BaseModel):
    """The application's arguments, as in ``docs/ray-serve.yaml``."""

    model_config = ConfigDict(extra="forbid")

    backends: str = Field("", description="Names with commas between; by default those that the page ticks.")
    family: str = ""
    device: Literal["", "cpu", "cuda"] = Field("", description="By default cuda where replicas have GPUs, else cpu.")
    replicas: int = Field(1, ge=1, description="Of each backend, at least.")
    max_replicas: int = Field(0, ge=0, description="At most, as the load asks for; 0 for always as many.")
    interfaces: int = Field(1, ge=1, description="Replicas of the interface, which take requests for the others.")
    cpus: float = Field(1, gt=0, description="Cores of a replica; it computes with as many threads.")
    gpus: float = Field(0, ge=0, description="Of a replica: 0.25 puts four on a GPU.")
    max_batch: int = Field(SIZE.items, ge=1)
    max_wait_ms: float = Field(1000 * SIZE.wait_s, ge=0, le=MOST_WAIT_MS)
    max_queue: int = Field(
        BOUNDS.accepted, ge=1, description="Questions that may wait at a replica, and as many for one; then 503."
    )
    timeout: float = Field(BOUNDS.seconds, gt=0, le=MOST_SECONDS, description="Seconds until a request gets 504.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if 0 < self.max_replicas < self.replicas:
            raise ValueError("max_replicas is less than replicas")
        if self.device == "cuda" and not self.gpus:
            raise ValueError("replicas on cuda need gpus, such as 1 or 0.25")
        return self

    @property
    def where(self) -> str:
        """The device of all replicas: what the machine has that builds the application says nothing of theirs."""
        return self.device or ("cuda" if self.gpus else "cpu")


class Model:
    """A replica: one backend, loaded once.

    Ray's own ``serve.batch`` (2.60) makes a batch of what has come as soon as the one before is made, not when it is
    read: without a wait, batches of one. So batches are made here as they are elsewhere, by ``Batcher``.
    """

    def __init__(self, name: str, device: str, size: BatchSize) -> None:
        catalog.adopt_chosen(UNWATCHED)
        asked = Together(Runtime(), *catalog.resolve(name), device)
        self._reader = asked.reader
        self._batcher = Batcher(asked.read, BatchSize(items=1) if asked.backend.scaled_by_batch else size, asked.name)

    async def answer(self, query: Query) -> GivenAnswer | Failed:
        """Called by Ray for many queries at once; those that come while others are read are read together next."""
        try:
            prepared = await asyncio.to_thread(self._reader.prepare, query)
            (answer,) = self._batcher.ask([(prepared, tokens_of(prepared))])
            return given((await asyncio.wrap_future(answer), prepared))
        except QAError as error:
            return given(error)


@serve.ingress(api)
class Interface:
    """What clients reach: the interface of ``python -m qa_backends serve``, as far as it is the models'."""

    def __init__(self, models: dict[str, DeploymentHandle[Model]], options: Options) -> None:
        catalog.adopt_chosen(UNWATCHED)
        self._models = models
        self._options = options

    @api.post(ANSWER, responses=PROBLEMS)
    async def answer(self, asked: AnswerRequest) -> Given:
        """Answers each query, or says why it has none."""
        name = by_name({each: each for each in self._models}, asked.backend)
        if len(asked.queries) > self._options.max_queue:
            raise InputError(
                f"These are more queries than may wait here. Ask at most {self._options.max_queue} at once."
            )
        queries = [Query(each.question, each.context) for each in asked.queries]
        coming = [asyncio.create_task(self._one(self._models[name], each)) for each in queries]
        try:
            async with asyncio.timeout(self._options.timeout):
                return Given(backend=name, answers=await asyncio.gather(*coming))
        finally:
            for each in coming:  # where one failed or time is over, nobody waits for the others
                each.cancel()

    async def _one(self, model: DeploymentHandle[Model], query: Query) -> GivenAnswer | Failed:
        """Raises Full, and NotReady where all replicas that were asked died."""
        for _ in range(TRIES):
            response = model.answer.remote(query)
            try:
                answer: GivenAnswer | Failed = await response
            except asyncio.CancelledError:
                response.cancel()  # type: ignore[no-untyped-call]  # Ray does it where the whole request is cancelled
                raise
            except RayActorError:
                continue
            except BackPressureError as error:
                raise Full("As many questions wait as may. Ask again in a moment.") from error
            except DeploymentUnavailableError as error:
                raise NotReady("The backend cannot be asked now. Ask again in a moment.") from error
            return answer
        raise NotReady("The replicas died that were asked. Ask again in a moment.")

    @api.get(BACKENDS)
    async def backends(self) -> Served:
        """What can be asked."""
        return Served(backends=[served(*catalog.resolve(name), self._options.where) for name in self._models])


def app(options: Options) -> serve.Application:
    """Built by Ray from the configuration's ``import_path`` and ``args``.

    Raises:
        UnknownBackend: the options name a backend that is not there.
        InputError: the family's weights are random.
    """
    catalog.adopt_chosen(UNWATCHED)
    names = [name.strip() for name in options.backends.split(",") if name.strip()]
    family, chosen = catalog.several(names, options.family or None)
    family.check_answers()
    chosen = chosen or [catalog.backend(name) for name in preselection(family, options.where)]
    size = BatchSize(items=options.max_batch, wait_s=options.max_wait_ms / 1000)
    models = {}
    for backend in chosen:
        name = f"{family.name}/{backend.name}"
        models[name] = deployment_of(family, backend, options).bind(name, options.where, size)
    interface: Deployment = serve.deployment(
        num_replicas=options.interfaces, max_ongoing_requests=QUEUED, ray_actor_options={"num_cpus": 0}
    )(Interface)
    return interface.bind(models, options)


def deployment_of(family: catalog.Family, backend: catalog.Backend, options: Options) -> Deployment:
    """Of the replicas of one backend."""
    threads = {"env_vars": {"OMP_NUM_THREADS": str(max(1, int(options.cpus)))}}
    scaling: dict[str, Any] = {"num_replicas": options.replicas}
    if options.max_replicas:
        bounds = {"min_replicas": options.replicas, "max_replicas": options.max_replicas}
        scaling = {"autoscaling_config": {**bounds, "target_ongoing_requests": options.max_batch}}
    deployment: Deployment = serve.deployment(
        name=f"{family.name}-{backend.name}",
        health_check_period_s=HEALTH_S,
        max_ongoing_requests=options.max_queue,
        max_queued_requests=options.max_queue,
        ray_actor_options={"num_cpus": options.cpus, "num_gpus": options.gpus, "runtime_env": threads},
        **scaling,
    )(Model)
    return deployment
