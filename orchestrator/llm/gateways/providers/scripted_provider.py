"""The scripted provider: plays a named scenario, deterministically (R-LOOP-10).

A line names the patterns that must occur in the compiled prompt, takes its arguments from the prompt, and
is used once. Nothing is keyed by turn number: a line without a pattern is refused when the scenario is
read.
"""

import re
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Self

import orjson
import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from orchestrator.core.common.errors import OrchestratorError
from orchestrator.core.common.frozen_model import FrozenModel, Slug
from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.domain.effects import CallModel
from orchestrator.core.domain.run_events import ModelReplied
from orchestrator.llm.gateways.request import AssistantTurn, Conversation, read_conversation
from orchestrator.llm.gateways.response import Reply, WrittenCall, build_failure_outcome, build_reply_outcome
from orchestrator.outbound.gateways.effect_result import EffectResult
from traces.sealed_values import Vault

FOLDER = Path(__file__).resolve().parents[3] / "scenarios"
ERRORS = Literal[
    "timeout", "rate_limited", "server_error", "unreachable", "malformed", "rejected", "unauthorized"
]
PASSING = ("timeout", "rate_limited", "server_error", "unreachable", "malformed")
WORDS = re.compile(r"\s*\S+\s*")
PLACE = re.compile(r"\{\{\s*([a-z][a-z0-9_]*)\s*\}\}")
BYTES_PER_TOKEN = 4
# The number of pieces in which a text is sent to viewers; a text of fewer words is sent at once.
PIECES = 3
LEAST_WORDS = 8


class ScenarioInvalid(OrchestratorError):
    """The scenario {name} cannot be played: {detail}"""

    code = "scenario-invalid"
    http_status = 500


class When(FrozenModel):
    """The condition of a line: every pattern of `contains` and none of `absent` is found in the prompt.

    A pattern is plain text, or a regular expression between slashes.
    """

    role: str | None = None
    node: str | None = None
    contains: tuple[str, ...] = Field(min_length=1)
    absent: tuple[str, ...] = ()

    @field_validator("contains", "absent")
    @classmethod
    def _readable(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            if len(pattern.strip()) < 3:
                raise ValueError(f"{pattern!r} says nothing about the prompt")
            if compile_pattern(pattern).search(""):
                raise ValueError(f"{pattern!r} is found in every prompt")
        return patterns


class ScriptedCall(FrozenModel):
    """A call to request; texts may contain {{name}} of an extracted value."""

    name: str
    arguments: dict[str, Any] | str = Field(default_factory=dict)


class ScriptedUsage(FrozenModel):
    input_tokens: int = Field(ge=0)
    output_tokens: int = Field(ge=0)


class Says(FrozenModel):
    """The reply of a line: a text, calls, a refusal; or none of them, for an empty reply."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    refuse: str | None = None
    usage: ScriptedUsage | None = None
    finish: str = "stop"


class Fails(FrozenModel):
    """The failure of a line, for demonstrations: at every attempt, or at the first `times` of them."""

    error: ERRORS
    times: int | None = Field(default=None, ge=1)
    retry_after_ms: int | None = Field(default=None, ge=0)


class Line(FrozenModel):
    """One line: when it may be played, which values it extracts, and its reply or failure (exactly one).

    `take` names the one group of each of its patterns. Every named group of a pattern in `take_all` is
    extracted under its own name. A line whose patterns are not all found is not played.
    """

    when: When
    take: dict[Slug, str] = Field(default_factory=dict)
    take_all: tuple[str, ...] = ()
    reply: Says | None = None
    fail: Fails | None = None

    @field_validator("take")
    @classmethod
    def _one_group(cls, take: dict[str, str]) -> dict[str, str]:
        for name, pattern in take.items():
            if re.compile(pattern, re.DOTALL).groups != 1:
                raise ValueError(f"take {name}: exactly one group is needed")
        return take

    @field_validator("take_all")
    @classmethod
    def _named_groups(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            if not re.compile(pattern, re.DOTALL).groupindex:
                raise ValueError(f"take_all: {pattern[:40]!r} has no named group")
        return patterns

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if (self.reply is None) == (self.fail is None):
            raise ValueError("a line replies or fails, one of the two")
        known = {*self.take, *(name for one in self.take_all for name in re.compile(one).groupindex)}
        unknown = [name for name in PLACE.findall(_encode_reply_template(self.reply)) if name not in known]
        if unknown:
            raise ValueError(f"{unknown[0]} is used and never taken from the prompt")
        return self


class Scenario(FrozenModel):
    """A scenario file."""

    title: str = ""
    lines: tuple[Line, ...] = Field(min_length=1)


@lru_cache(maxsize=512)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of a scenario."""
    is_expression = len(pattern) > 2 and pattern.startswith("/") and pattern.endswith("/")
    return re.compile(pattern[1:-1] if is_expression else re.escape(pattern), re.DOTALL | re.MULTILINE)


def scenario_names() -> tuple[str, ...]:
    """Return the names of the bundled scenarios."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


@lru_cache(maxsize=64)
def load_scenario(name: str, folder: Path = FOLDER) -> Scenario:
    """Read and check a scenario.

    Raises: ScenarioInvalid.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,63}", name):
        raise ScenarioInvalid(name=name[:64], detail="not a name")
    try:
        text = (folder / f"{name}.yaml").read_text("utf-8")
        return Scenario.model_validate(yaml.safe_load(text))
    except FileNotFoundError:
        raise ScenarioInvalid(name=name, detail="there is no such file") from None
    except (yaml.YAMLError, ValidationError, re.error) as error:
        raise ScenarioInvalid(name=name, detail=str(error)[:2_000]) from error


def play_scenario(
    effect: CallModel,
    request: bytes,
    profile: ModelProfile,
    salt: bytes,
    folder: Path = FOLDER,
    vault: Vault | None = None,
) -> EffectResult:
    """Return the outcome of the first line that matches and was not used up. Raises nothing."""
    try:
        scenario = load_scenario(profile.scenario or "", folder)
        asked = read_conversation(request)
    except (ScenarioInvalid, ValidationError) as error:
        return build_failure_outcome(effect, salt, "rejected", transient=False, detail=str(error))
    found = choose_line(scenario, effect, asked)
    if found is None:
        detail = f"no line of {profile.scenario} fits the prompt of {effect.node} ({effect.role})"
        return build_failure_outcome(effect, salt, "script_mismatch", transient=False, detail=detail)
    line, taken = found
    if line.fail is not None:
        wish, word = line.fail.retry_after_ms, line.fail.error
        return build_failure_outcome(
            effect, salt, word, transient=word in PASSING, retry_after_ms=wish, detail="scripted"
        )
    said = _build_reply(line.reply or Says(), taken, effect, request, profile)
    return build_reply_outcome(effect, request, said, salt, vault)


def split_reply_text(performed: EffectResult) -> tuple[str, ...]:
    """Split the text of a played reply into a few pieces of whole words; empty for a short text."""
    if performed.kind is not ModelReplied:
        return ()
    text: str = orjson.loads(performed.bodies[performed.fields["reply"]])["text"]
    words = WORDS.findall(text)
    if len(words) < LEAST_WORDS:
        return ()
    size = -(-len(words) // PIECES)
    return tuple("".join(words[at : at + size]) for at in range(0, len(words), size))


def choose_line(
    scenario: Scenario, effect: CallModel, asked: Conversation
) -> tuple[Line, dict[str, str]] | None:
    """Return the line to play and the values that it extracted.

    A line is used up when its reply is already part of the conversation. The prompt alone decides and
    nothing is kept between calls, so a retry, a crash or a replay plays the same line again.
    """
    prompt = prompt_text(asked)
    for line in scenario.lines:
        if not _is_condition_met(line.when, effect, prompt):
            continue
        taken = _extract_values(line, prompt)
        if taken is not None and not _used_up(line, taken, effect, asked):
            return line, taken
    return None


def prompt_text(asked: Conversation) -> str:
    """Return the text that a line may match: the system text and every message not written by the model."""
    said = [turn.text for turn in asked.messages if not isinstance(turn, AssistantTurn)]
    return "\n\n".join([asked.system, *said])


def _is_condition_met(when: When, effect: CallModel, prompt: str) -> bool:
    if when.role not in (None, effect.role) or when.node not in (None, effect.node):
        return False
    if any(compile_pattern(pattern).search(prompt) for pattern in when.absent):
        return False
    return all(compile_pattern(pattern).search(prompt) for pattern in when.contains)


def _extract_values(line: Line, prompt: str) -> dict[str, str] | None:
    taken: dict[str, str] = {}
    for name, pattern in line.take.items():
        found = re.findall(pattern, prompt, re.DOTALL | re.MULTILINE)
        if not found:
            return None
        # The newest occurrence is the last one.
        taken[name] = found[-1]
    for pattern in line.take_all:
        matches = list(re.finditer(pattern, prompt, re.DOTALL | re.MULTILINE))
        if not matches:
            return None
        taken.update(matches[-1].groupdict(default=""))
    return taken


def _used_up(line: Line, taken: dict[str, str], effect: CallModel, asked: Conversation) -> bool:
    """Return whether the line was played.

    Its calls are in the conversation then, or its failures have occurred.
    """
    if line.reply is None:
        return line.fail is not None and line.fail.times is not None and effect.attempt > line.fail.times
    calls = [(call.name, call.arguments) for call in _build_calls(line.reply, taken)]
    turns = [turn for turn in asked.messages if isinstance(turn, AssistantTurn)]
    return bool(calls) and any(
        [(call.name, call.arguments) for call in turn.calls] == calls for turn in turns
    )


def _build_reply(
    says: Says, taken: dict[str, str], effect: CallModel, request: bytes, profile: ModelProfile
) -> Reply:
    text = _fill_placeholders(says.text, taken)
    calls = _build_calls(says, taken)
    written = len(text.encode()) + sum(len(call.name) + len(call.arguments.encode()) for call in calls)
    counted = {
        "input_tokens": -(-len(request) // BYTES_PER_TOKEN),
        "output_tokens": min(effect.max_output_tokens, -(-written // BYTES_PER_TOKEN)),
    }
    usage = says.usage.model_dump() if says.usage is not None else counted
    numbered = tuple(
        WrittenCall(id=f"s{effect.id[:12]}_{number}", name=call.name, arguments=call.arguments)
        for number, call in enumerate(calls, start=1)
    )
    return Reply(
        text=text, calls=numbered, refusal=says.refuse, finish=says.finish, usage=usage, model=profile.model
    )


def _build_calls(says: Says, taken: dict[str, str]) -> list[WrittenCall]:
    return [
        WrittenCall(
            id="", name=_fill_placeholders(call.name, taken), arguments=_argument_text(call.arguments, taken)
        )
        for call in says.calls
    ]


def _argument_text(arguments: dict[str, Any] | str, taken: dict[str, str]) -> str:
    if isinstance(arguments, str):
        return _fill_placeholders(arguments, taken)
    return orjson.dumps(_filled_in(arguments, taken), option=orjson.OPT_SORT_KEYS).decode()


def _filled_in(value: Any, taken: dict[str, str]) -> Any:
    if isinstance(value, str):
        return _fill_placeholders(value, taken)
    if isinstance(value, dict):
        return {name: _filled_in(inner, taken) for name, inner in value.items()}
    return [_filled_in(inner, taken) for inner in value] if isinstance(value, list) else value


def _fill_placeholders(text: str, taken: dict[str, str]) -> str:
    return PLACE.sub(lambda place: taken[place.group(1)], text)


def _encode_reply_template(says: Says | None) -> str:
    return "" if says is None else says.model_dump_json()
