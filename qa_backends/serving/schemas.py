"""What the HTTP interface takes and gives, as pydantic checks and documents it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from qa_backends.contract import valid_text
from qa_backends.errors import InputError, QAError
from qa_backends.measure.quality.datasets import TITLES
from qa_backends.measure.results.shipped import shipped_quality

if TYPE_CHECKING:
    from qa_backends.catalog import Backend, Family
    from qa_backends.contract import Answer
    from qa_backends.reader.reader import Prepared

MOST_QUERIES = 64
"""In one request; more go into the next."""
MOST_NAME = 200
"""Characters of a backend's name, and of a field's that is repeated."""

Text = Annotated[str, AfterValidator(valid_text)]
"""Half a surrogate pair in it would come back in an answer, and no answer that holds one can be sent."""


class Strict(BaseModel):
    """What holds its own fields and no others."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _of_its_fields(cls, given: Any) -> Any:
        """One error for all that is there besides: of half a million names, an error each takes seconds, in which the
        server does nothing else."""
        if isinstance(given, dict) and len(given) > len(cls.model_fields):
            other = next(name for name in given if name not in cls.model_fields)
            raise PydanticCustomError("no_field", "There is no field '{name}'", {"name": str(other)[:MOST_NAME]})
        return given


class AskedQuery(Strict):
    """One question about one text."""

    question: Text
    context: Text


class AnswerRequest(Strict):
    """Questions to one backend."""

    backend: str = Field(max_length=MOST_NAME, description="A name that /v1/backends lists.")
    queries: list[AskedQuery] = Field(min_length=1, max_length=MOST_QUERIES)


class GivenAnswer(BaseModel):
    """The answer to one query; times are not in it, since queries share the model's calls."""

    answer: str | None = Field(description="The part of the context that answers; null where it holds no answer.")
    span: tuple[int, int] | None = Field(description="Its first character and the one behind its last (code points).")
    confidence: float = Field(ge=0, le=1)
    score: float | None = Field(description="Start logit + end logit of the best span; null where there is none.")
    null_score: float = Field(description="The same of 'no answer'.")
    n_windows: int = Field(description="Pieces that the context was cut into for the model.")
    notices: list[str]


class Problem(BaseModel):
    """What went wrong, and what to do about it."""

    code: str
    message: str


class Failed(BaseModel):
    """In place of an answer, or of everything."""

    error: Problem


class Given(BaseModel):
    """Answers in the order of the queries; one that failed has its own error and touches no other."""

    backend: str
    answers: list[GivenAnswer | Failed]


class ServedBackend(BaseModel):
    """One that can be asked, and what its answers are worth on each data set that it was measured on."""

    name: str
    title: str
    device: str
    precision: str
    ready: bool
    f1: dict[str, float]
    error: str | None = Field(description="Why it cannot be asked, where getting it ready failed.")


class Served(BaseModel):
    """All that can be asked."""

    backends: list[ServedBackend]


class State(BaseModel):
    """Of the process: alive, or ready."""

    status: str


def given(found: tuple[Answer, Prepared] | QAError) -> GivenAnswer | Failed:
    """What is sent for a query."""
    if isinstance(found, QAError):
        code = "input" if isinstance(found, InputError) else "backend"
        return Failed(error=Problem(code=code, message=str(found)))
    answer, prepared = found
    return GivenAnswer(
        answer=answer.text if answer.span else None,
        span=(answer.span.start, answer.span.end) if answer.span else None,
        confidence=answer.confidence,
        score=answer.json_score,
        null_score=answer.null_score,
        n_windows=prepared.windows.n_windows,
        notices=list(prepared.notices),
    )


def served(family: Family, backend: Backend, device: str) -> ServedBackend:
    """What is said of a backend that can be asked."""
    f1 = {title: shipped_quality(family, backend, device, data) for data, title in TITLES.items()}
    return ServedBackend(
        name=f"{family.name}/{backend.name}",
        title=backend.title,
        device=device,
        precision=backend.precision,
        ready=True,
        f1={title: found.f1 for title, found in f1.items() if found},
        error=None,
    )
