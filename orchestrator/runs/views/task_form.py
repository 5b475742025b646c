"""GET /new, GET and POST /new/<workflow>: a task by a form made from the workflow's schema (R-UI-10)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from itertools import count
from time import sleep
from typing import Any, Final
from uuid import UUID, uuid4

import orjson
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_http_methods, require_safe
from pydantic import ValidationError

from orchestrator import bundled_content
from orchestrator.core.admission.errors import GoalInvalid, RunNotFound
from orchestrator.core.common.goal import Goal
from orchestrator.core.compiler.errors import WorkflowUnknown
from orchestrator.core.files.errors import PathRefused, WorkspaceRefused
from orchestrator.core.files.workspace import tree_of
from orchestrator.core.policy.task_scope import scope_of
from orchestrator.core.workflow.untrusted_inputs import untrusted_names
from orchestrator.policies.queries.policies import granted_by, policy_now
from orchestrator.publishing.queries.example_goals import list_offered_goals
from orchestrator.publishing.queries.submittable_workflows import (
    Limit,
    Offer,
    list_submittable_workflows,
    offer_of,
    spec_of,
)
from orchestrator.runs.actions.submit import Submission, Submitter, submit_task
from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.runs import goal_of, run_of
from orchestrator.runs.views.task_scope import Reach, reach_of
from orchestrator.runs.views.uploads import files_in, takes_files
from tenancy.core.errors import InterlockError, NotFound
from tenancy.core.json_schema.fields import ABSENT
from tenancy.core.json_schema.form import schema_form
from tenancy.core.json_schema.form_parsing import read_form
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import uuid_or_none
from tenancy.rest.idempotency import KeyInUse, StoredResponse, execute_once
from tenancy.web.page_auth import PageRequest, require_member
from traces.core.canonical import format_decimal

LONGEST: Final = 20_000
PATIENCE: Final = 50
A_MOMENT: Final = 0.1
NO_FILES: Final[Mapping[str, bytes]] = {}
Faults = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitField:
    """The form field of a limit: its text and its fault."""

    limit: Limit
    text: str
    fault: str = ""


@dataclass(slots=True)
class ParsedTaskForm:
    """A parsed form: the requested values, and the faults by field.

    `base` is the goal that is submitted again; it supplies the values that the form does not show.
    """

    base: Goal | None = None
    objective: str = ""
    inputs: Any = ABSENT
    deadline: datetime | None = None
    deadline_text: str = ""
    limits: tuple[LimitField, ...] = ()
    budget: dict[str, Decimal] = field(default_factory=dict)
    folder: str = ""
    sent: int = 0
    faults: dict[str, str] = field(default_factory=dict)
    input_faults: Faults = field(default_factory=dict)

    @property
    def sound(self) -> bool:
        """Return whether the form has no known fault."""
        wrong = any(one.fault for one in self.limits)
        return not (wrong or self.faults or self.input_faults)

    def goal(self) -> Goal:
        """Build the goal. Raises: GoalInvalid with the invalid field."""
        said = {
            "objective": self.objective,
            "inputs": {} if self.inputs is ABSENT else self.inputs,
            "deadline": self.deadline,
        }
        kept = {name: getattr(self.base, name) for name in Goal.model_fields} if self.base is not None else {}
        try:
            return Goal(**kept | said)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = "/".join(["", "goal", *map(str, first["loc"])])
            raise GoalInvalid(detail=first["msg"], pointer=where) from None


def fresh_key() -> str:
    """Return a one-time key for a form. A second click sends the same key and starts nothing more."""
    return str(uuid4())


@require_safe
@require_member(Scope.SUBMIT)
def show_new_task_page(request: PageRequest) -> HttpResponse:
    """Render the tasks that can be submitted: ready-made goals first, then every workflow."""
    with tenant_transaction(request.member.tenant.id):
        found = [(version, spec_of(version)) for version in list_submittable_workflows()]
        slugs = {version.slug for version, _ in found}
        starters = list_offered_goals(
            one for one in bundled_content.load_example_goals() if one.workflow in slugs
        )
    context = {
        "offers": found,
        "starters": starters,
        "key": fresh_key(),
        "may_submit": True,
    }
    return render(request, "orchestrator/choose.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.SUBMIT)
def show_task_form_page(request: PageRequest, workflow: str) -> HttpResponse:
    """Render the form of one workflow. A POST submits the task once, however often the form is sent."""
    copied: Run | None = None
    with tenant_transaction(request.member.tenant.id):
        try:
            offer = offer_of(workflow)
        except WorkflowUnknown:
            raise NotFound from None
        given = request.POST if request.method == "POST" else request.GET
        goal = _ready_goal(workflow, given.get("starter", ""))
        if "from" in given:
            copied = _get_copied_run(workflow, given["from"])
            goal = goal_of(copied)
    if request.method != "POST":
        return _render_task_form(request, offer, _build_prefilled_sheet(offer, goal), copied=copied)
    if goal is not None and "objective" not in request.POST:
        return redirect("run", _submit_once(request, workflow, goal, {}))
    sheet = _parse_task_form(offer, request.POST)
    sheet.base = goal if copied is not None else None
    files = _read_uploaded_files(request, offer, sheet)
    if "preview" in request.POST or not sheet.sound:
        return _render_task_form(request, offer, sheet, status=200 if sheet.sound else 422, copied=copied)
    try:
        return redirect("run", _submit_once(request, workflow, sheet.goal(), sheet.budget, files))
    except GoalInvalid as error:
        sheet.faults[_field_of(error)] = str(error.data.get("detail", error))
        return _render_task_form(request, offer, sheet, status=422, copied=copied)
    except InterlockError as error:
        wait = error.data.get("retry_after")
        shown = _render_task_form(
            request, offer, sheet, status=409 if wait is None else 429, refused=error, copied=copied
        )
        if wait is not None:
            shown.headers["Retry-After"] = str(wait)
        return shown


def _read_uploaded_files(request: PageRequest, offer: Offer, sheet: ParsedTaskForm) -> dict[str, bytes]:
    """Read the uploaded files of a workflow that works on files. Faults go into the sheet."""
    sent = request.FILES.getlist("files")
    sheet.folder = request.POST.get("folder", "").strip()[:200]
    sheet.sent = len(sent)
    if not sent:
        return {}
    if not takes_files(offer.spec):
        sheet.faults["files"] = "This workflow works on no files."
        return {}
    try:
        return files_in(sent, sheet.folder)
    except (PathRefused, WorkspaceRefused) as refused:
        sheet.faults["files"] = str(refused)
        return {}


def _get_copied_run(workflow: str, given: str) -> Run:
    """Return the run whose task is submitted again. Raises: RunNotFound, also for another workflow."""
    found = run_of(uuid_or_none(given))
    if found.workflow != workflow:
        raise RunNotFound
    return found


def _ready_goal(workflow: str, slug: str) -> Goal | None:
    """Return the goal that the named example would submit now, or None. In the tenant's context."""
    named = (
        one for one in bundled_content.load_example_goals() if (one.workflow, one.slug) == (workflow, slug)
    )
    return next((one.goal for one in list_offered_goals(named)), None)


def _submit_once(
    request: PageRequest,
    workflow: str,
    goal: Goal,
    budget: Mapping[str, Decimal],
    files: Mapping[str, bytes] = NO_FILES,
) -> UUID:
    """Submit once per key, so that a second click yields the same run. Raises: as submit_task does."""
    who = request.member
    key = str(uuid_or_none(request.POST.get("key", "")) or fresh_key())
    submitter = Submitter(principal=who.principal, owner=who.owner, scopes=tuple(map(str, who.scopes)))
    asked = Submission(
        workflow=workflow, goal=goal, budget=budget, idempotency_key=f"page-{key}", files=files
    )
    body = {name: request.POST.getlist(name) for name in request.POST if name != "csrfmiddlewaretoken"}
    if files:
        body["files"] = [tree_of(files).digest]

    def act() -> StoredResponse:
        return StoredResponse(202, {"run": str(submit_task(who.tenant.id, submitter, asked).run)})

    for tries in count():
        try:
            answer = execute_once(who.tenant.id, who.principal, key, request.path, body, act)
        except KeyInUse:
            # The request of the first click is still in progress.
            if tries >= PATIENCE:
                raise
            sleep(A_MOMENT)
        else:
            return UUID(answer.body["run"])
    raise AssertionError


def _build_prefilled_sheet(offer: Offer, goal: Goal | None) -> ParsedTaskForm:
    defaults = {
        name: part["default"]
        for name, part in offer.spec.input_schema.get("properties", {}).items()
        if isinstance(part, dict) and "default" in part
    }
    return ParsedTaskForm(
        base=goal,
        objective=goal.objective if goal is not None else "",
        inputs=goal.inputs if goal is not None else defaults or ABSENT,
        limits=tuple(LimitField(limit=limit, text=_format_amount(limit.most)) for limit in offer.limits),
    )


def _parse_task_form(offer: Offer, sent: Mapping[str, Any]) -> ParsedTaskForm:
    """Parse the submitted fields. Never raises."""
    read = read_form(offer.spec.input_schema, sent)
    sheet = ParsedTaskForm(
        objective=str(sent.get("objective", "")).strip()[:LONGEST],
        inputs=read.value,
        input_faults=read.faults,
        deadline_text=str(sent.get("deadline", "")).strip()[:40],
    )
    if not sheet.objective:
        sheet.faults["objective"] = "Say what is to be reached."
    elif "\0" in sheet.objective:
        sheet.faults["objective"] = "No text of ours can hold the character NUL."
    if sheet.deadline_text:
        _read_deadline(sheet)
    sheet.limits = tuple(_read_limit(limit, sent, sheet.budget) for limit in offer.limits)
    return sheet


def _read_deadline(sheet: ParsedTaskForm) -> None:
    try:
        found = parse_datetime(sheet.deadline_text)
    except ValueError:
        found = None
    if found is None:
        sheet.faults["deadline"] = "This is no date with a time."
        return
    sheet.deadline = found if found.tzinfo is not None else timezone.make_aware(found)


def _read_limit(limit: Limit, sent: Mapping[str, Any], budget: dict[str, Decimal]) -> LimitField:
    """Parse a limit and add it to `budget`, unless it equals the highest allowed amount."""
    text = str(sent.get(f"limit:{limit.name}", "")).strip()[:40]
    if not text:
        return LimitField(limit=limit, text="")
    try:
        amount = Decimal(text)
    except InvalidOperation:
        return LimitField(limit=limit, text=text, fault="A number is needed, such as 12.")
    if not amount.is_finite() or amount < 0:
        return LimitField(limit=limit, text=text, fault="A number from 0 on is needed.")
    if limit.most is not None and amount > limit.most:
        return LimitField(
            limit=limit, text=text, fault=f"At most {_format_amount(limit.most)}, says {limit.reason}."
        )
    if amount != limit.most:
        budget[limit.name] = amount
    return LimitField(limit=limit, text=text)


def _format_amount(amount: Decimal | None) -> str:
    return "" if amount is None else format_decimal(amount)


def _list_hidden_fields(base: Goal | None) -> list[str]:
    """List, in words, the fields of a goal that the form does not show."""
    given = base.model_dump(exclude_defaults=True) if base is not None else {}
    return [
        name.replace("_", " ") for name in given if name not in ("objective", "inputs", "deadline", "mode")
    ]


def _needed_first(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema with its required properties first. A published schema sorts properties by name."""
    must = schema.get("required", ())
    parts = sorted(schema.get("properties", {}).items(), key=lambda part: part[0] not in must)
    return {**schema, "properties": dict(parts)}


def _field_of(error: GoalInvalid) -> str:
    """Return the form field that an error concerns."""
    pointer = str(error.data.get("pointer", ""))
    name = pointer.removeprefix("/goal/").split("/")[0]
    return name if name in ("objective", "deadline", "inputs") else "general"


def _render_task_form(
    request: PageRequest,
    offer: Offer,
    sheet: ParsedTaskForm,
    *,
    status: int = 200,
    refused: InterlockError | None = None,
    copied: Run | None = None,
) -> HttpResponse:
    sent = request.POST if request.method == "POST" else None
    context = {
        "offer": offer,
        "sheet": sheet,
        "form": schema_form(
            _needed_first(offer.spec.input_schema),
            sheet.inputs if sent is None else ABSENT,
            sent=sent,
            faults=sheet.input_faults,
        ),
        "refused": refused,
        "copied": copied,
        "more": _list_hidden_fields(sheet.base),
        "had_deadline": sheet.base is not None and sheet.base.deadline is not None,
        "key": request.POST.get("key") or fresh_key(),
        "curl": _format_curl_command(request, offer, sheet),
        "reach": _compute_task_reach(request, offer, sheet),
        "takes_files": takes_files(offer.spec),
        "starters": [
            one for one in bundled_content.load_example_goals() if one.workflow == offer.version.slug
        ],
    }
    return render(request, "orchestrator/submit.html", context, status=status)


def _compute_task_reach(request: PageRequest, offer: Offer, sheet: ParsedTaskForm) -> Reach | None:
    """Return the reach of the task's changes as the form is filled in; None if the goal is invalid."""
    try:
        goal = sheet.goal()
    except GoalInvalid:
        return None
    with tenant_transaction(request.member.tenant.id):
        scope = scope_of(goal, untrusted_names(offer.spec.input_schema))
        return reach_of(scope, granted_by(offer.spec.boundary), policy_now().policy)


def _format_curl_command(request: HttpRequest, offer: Offer, sheet: ParsedTaskForm) -> str:
    try:
        goal = sheet.goal()
    except GoalInvalid:
        goal = Goal(objective="…", inputs={} if sheet.inputs is ABSENT else sheet.inputs)
    return curl_of(request, offer.version.slug, goal, sheet.budget)


def curl_of(
    request: HttpRequest, workflow: str, goal: Goal, budget: Mapping[str, Decimal] | None = None
) -> str:
    """Format the task as a curl command. The API key is referenced by name and never shown."""
    body: dict[str, Any] = {"workflow": workflow, "goal": goal.model_dump(mode="json", exclude_defaults=True)}
    if budget:
        body["budget"] = {name: format_decimal(amount) for name, amount in budget.items()}
    text = orjson.dumps(body, option=orjson.OPT_INDENT_2).decode().replace("'", "'\\''")
    return (
        f"curl -s {request.build_absolute_uri('/api/v1/tasks')} \\\n"
        '  -H "Authorization: Bearer $INTERLOCK_KEY" \\\n'
        '  -H "Content-Type: application/json" \\\n'
        f"  -d '{text}'"
    )
