"""GET and POST /http-tools: tools that are one HTTP request, declared without code (R-TOOL-20)."""

from typing import Any

import orjson
import yaml
from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods
from yaml.constructor import ConstructorError

from orchestrator.core.approval.errors import ProposalOpen
from orchestrator.core.common.errors import DefinitionRefused, EgressRefused, NameTaken
from orchestrator.core.domain.tool_category import NONE
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.tools.http_tool import operation_of
from orchestrator.core.tools.registration import asked_declaration
from orchestrator.tools.actions.change_requests import ask_to_declare
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.queries.tools import tools_now
from orchestrator.tools.views.change_requests import build_requester, redirect_to_change_requests
from orchestrator.tools.views.compensation_form import WayBack, initial_of
from orchestrator.tools.views.tool_server_forms import make_reason_field
from orchestrator.tools.views.tool_servers import BACK, KINDS_OF_TOOLS, NO_EFFECT, NO_EFFECT_HELP
from orchestrator.tools.views.tools import POLICIES, WORDS
from orchestrator.yaml_reading import read_yaml
from tenancy.core.errors import InvalidInput, SecretUnusable
from tenancy.core.json_reading import read_json
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.secret_store import secrets_of
from tenancy.web.page_auth import PageRequest, check_scopes, require_member

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
RECOVERY = (
    ("none", "A person decides: it is never made again by itself"),
    ("read_only", "It is made again: it only reads"),
    ("keys", "It is made again under its key: the service promises one effect a key"),
    ("lookup", "It is looked up by a GET at the same origin"),
)
BODIES = (("none", "nothing"), ("rest", "the arguments used nowhere else, as JSON"))
FIELDS = {
    "input_schema": "inputs",
    "output_schema": "outputs",
    "lookup": "lookup_path",
    "verifier": "equal",
}
OBJECT = '{\n  "type": "object",\n  "properties": {},\n  "required": []\n}'


class DeclareForm(WayBack):
    """A declaration, by its request or by an operation of an OpenAPI document."""

    name = forms.CharField(label="Name", max_length=64, help_text="family.tool, such as crm.find_person")
    description = forms.CharField(
        label="What it does, for the model", required=False, max_length=4_000,
        widget=forms.Textarea(attrs={"rows": 2}),
    )  # fmt: skip
    method = forms.ChoiceField(label="Method", choices=[(one, one) for one in METHODS], initial="GET")
    url = forms.CharField(
        label="Address", required=False, max_length=2_000,
        help_text="Arguments in braces stand in its path: https://crm.example/v1/people/{person}",
    )  # fmt: skip
    query = forms.CharField(
        label="Query", required=False, max_length=4_000, widget=forms.Textarea(attrs={"rows": 2}),
        help_text="One parameter=argument a line.",
    )  # fmt: skip
    body = forms.ChoiceField(label="Body", choices=BODIES, initial="none")
    secret = forms.ChoiceField(label="Secret", required=False)
    secret_header = forms.CharField(label="Sent as header", max_length=64, initial="Authorization")
    secret_form = forms.CharField(label="In the form", max_length=100, initial="Bearer {secret}")
    inputs = forms.CharField(
        label="Arguments (JSON Schema)", required=False, max_length=70_000, initial=OBJECT,
        widget=forms.Textarea(attrs={"rows": 6, "class": "mono"}),
    )  # fmt: skip
    outputs = forms.CharField(
        label="Result (JSON Schema)", required=False, max_length=70_000, initial="{}",
        help_text="A result of another form halts the tool's path.",
        widget=forms.Textarea(attrs={"rows": 4, "class": "mono"}),
    )  # fmt: skip
    equal = forms.CharField(
        label="What its result must repeat", required=False, max_length=4_000,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="One pair a line: /result/text=/arguments/text. Without one a change stays observed.",
    )  # fmt: skip
    openapi = forms.CharField(
        label="OpenAPI 3 document (JSON or YAML)", required=False, max_length=1_000_000,
        help_text="With the name of an operation it fills in request, description and schemas.",
        widget=forms.Textarea(attrs={"rows": 4, "class": "mono"}),
    )  # fmt: skip
    operation = forms.CharField(label="Operation", required=False, max_length=200)
    server = forms.CharField(label="Server instead of the document's", required=False, max_length=2_000)
    category = forms.ChoiceField(label="Category", choices=KINDS_OF_TOOLS, required=False, initial=NONE)
    risk = forms.ChoiceField(
        label="Risk class", required=False, help_text="Empty: as the category has it.",
        choices=[("", "As its category"), *((risk.value, word) for risk, word in WORDS.items())],
    )  # fmt: skip
    reversibility = forms.ChoiceField(
        label="Can it be taken back?", choices=[("", "Choose"), *((one.value, word) for one, word in BACK)]
    )
    recovery = forms.ChoiceField(
        label="If nobody knows whether a call happened", choices=RECOVERY, initial="none"
    )
    error_means_no_effect = forms.BooleanField(label=NO_EFFECT, required=False, help_text=NO_EFFECT_HELP)
    lookup_path = forms.CharField(
        label="Look-up: path", required=False, max_length=1_000, help_text="/v1/notes"
    )
    lookup_key = forms.CharField(label="Look-up: parameter for the key", required=False, max_length=128)
    lookup_found = forms.CharField(
        label="Look-up: where it stands in the answer", required=False, max_length=200, help_text="/notes"
    )
    approval = forms.ChoiceField(label="A person decides", choices=POLICIES, initial="by_risk")
    timeout_ms = forms.IntegerField(label="Timeout, ms", min_value=1, max_value=600_000, initial=15_000)
    rate_per_minute = forms.IntegerField(
        label="Calls a minute and run", min_value=1, max_value=100_000, initial=20
    )
    effect_sentence = forms.CharField(
        label="What a call does, for the approval", max_length=500, required=False,
        help_text="Arguments in braces: Send a note to {to}.",
    )  # fmt: skip
    reason = make_reason_field()

    def __init__(self, *given: Any, secrets: tuple[str, ...] = (), **named: Any) -> None:
        super().__init__(*given, **named)
        choices = [("", "none"), *((name, name) for name in secrets)]
        self.fields["secret"].choices = choices  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        """The fields, with a description of their own or a document that may have one."""
        given: dict[str, Any] = self.cleaned_data
        if not any(given.get(name, "").strip() for name in ("description", "openapi")):
            self.add_error("description", "Say what it does: the model chooses by it.")
        return given

    def declaration(self) -> dict[str, Any]:
        """The fields as a declaration. Raises DefinitionRefused."""
        given = self.cleaned_data
        plain = {name: given[name] for name in PLAIN}
        plain |= self.way_back()
        plain |= {"category": plain["category"] or NONE, "risk": given["risk"] or None}
        if given["recovery"] == "lookup":
            plain["lookup"] = {
                "path": given["lookup_path"], "found": given["lookup_found"],
                "arguments": {given["lookup_key"] or "key": "/key"},
            }  # fmt: skip
        if given["equal"].strip():
            plain["verifier"] = {"name": "schema", "equal": _parse_pairs(given["equal"])}
        secret = {"secret": given["secret"], "secret_header": given["secret_header"],
                  "secret_form": given["secret_form"]} if given["secret"] else {}  # fmt: skip
        if given["openapi"].strip():
            found = operation_of(
                _parse_openapi_document(given["openapi"]), given["operation"], server=given["server"]
            )
            request = {**found.request.model_dump(), **secret}
            shape = {"input_schema": found.input_schema, "output_schema": found.output_schema}
            described = given["description"] or found.description
        else:
            request = {"method": given["method"], "url": given["url"], "body": given["body"],
                       "query": _parse_pairs(given["query"]), **secret}  # fmt: skip
            shape = {"input_schema": _parse_json_object(given["inputs"], "arguments"),
                     "output_schema": _parse_json_object(given["outputs"] or "{}", "result")}  # fmt: skip
            described = given["description"]
        return {**plain, **shape, "description": described, "request": request}


PLAIN = (
    "name", "category", "reversibility", "recovery", "approval", "timeout_ms", "rate_per_minute",
    "effect_sentence", "error_means_no_effect",
)  # fmt: skip


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.INSPECT)
def http_tools(request: PageRequest) -> HttpResponse:
    """Every tool without code, and the form of one. `like` begins with what one has."""
    if request.method != "POST":
        return _render_http_tools_page(request)
    check_scopes(request.member, Scope.ADMIN)
    house = request.member.tenant.id
    form = DeclareForm(request.POST, secrets=_list_secret_names(request))
    if not form.is_valid():
        return _render_http_tools_page(request, form, status=422)
    try:
        now = ask_to_declare(
            house, asked_declaration(form.declaration()), who=build_requester(request),
            reason=form.cleaned_data["reason"],
        )  # fmt: skip
    except InvalidInput as error:
        for found in error.data["errors"]:
            name = found["pointer"].strip("/").split("/")[0]
            field = FIELDS.get(name, name)
            form.add_error(field if field in form.fields else None, found["detail"])
        return _render_http_tools_page(request, form, status=422)
    except (DefinitionRefused, EgressRefused, NameTaken, ProposalOpen, SecretUnusable) as error:
        form.add_error(None, str(error))
        return _render_http_tools_page(request, form, status=422)
    if isinstance(now, ToolProposal):
        return redirect_to_change_requests(request)
    messages.success(request, f"{now.spec.name} may be called, as version {now.spec.version}.")
    return redirect("tool", name=now.spec.name)


def _render_http_tools_page(
    request: PageRequest, form: DeclareForm | None = None, *, status: int = 200
) -> HttpResponse:
    house, like = request.member.tenant.id, request.GET.get("like", "")
    with tenant_transaction(house):
        declared = [tool for tool in tools_now(house) if tool.spec.remote and tool.spec.remote.kind == "http"]
    begin = next((tool.spec for tool in declared if tool.spec.name == like), None)
    blank = DeclareForm(
        secrets=_list_secret_names(request), initial=_build_initial_data(begin) if begin is not None else None
    )
    context = {
        "declared": declared, "form": form or blank, "opened": form is not None or begin is not None,
        "may_admin": request.member.may(Scope.ADMIN),
    }  # fmt: skip
    return render(request, "tools/http_tools.html", context, status=status)


def _list_secret_names(request: PageRequest) -> tuple[str, ...]:
    may = request.member.may(Scope.ADMIN)
    return tuple(one.name for one in secrets_of(request.member.tenant.id)) if may else ()


def _build_initial_data(spec: ToolSpec) -> dict[str, Any]:
    """A declared tool as its form would say it."""
    assert spec.remote is not None
    request, lookup = spec.remote.request, spec.remote.lookup
    assert request is not None
    recovery = (
        "keys"
        if spec.honours_keys
        else "lookup"
        if spec.lookup
        else "none"
        if spec.is_mutating
        else "read_only"
    )
    found = {
        "name": spec.name, "description": spec.description, "method": request.method, "url": request.url,
        "query": "\n".join(f"{name}={argument}" for name, argument in request.query.items()),
        "body": request.body, "secret": request.secret, "secret_header": request.secret_header,
        "secret_form": request.secret_form, "inputs": _format_schema(spec.input_schema),
        "outputs": _format_schema(spec.output_schema), "category": spec.category,
        "risk": spec.risk.value, "approval": spec.approval,
        "reversibility": spec.reversibility.value, "recovery": recovery, "timeout_ms": spec.timeout_ms,
        "rate_per_minute": spec.rate_per_minute, "effect_sentence": spec.effect_sentence,
        "error_means_no_effect": spec.error_means_no_effect,
    }  # fmt: skip
    if spec.verifier is not None:
        found["equal"] = "\n".join(f"{name}={other}" for name, other in spec.verifier.equal.items())
    if lookup is not None:
        found |= {"lookup_path": lookup.path, "lookup_found": lookup.found,
                  "lookup_key": next(iter(lookup.arguments), "key")}  # fmt: skip
    return found | initial_of(spec)


def _format_schema(schema: dict[str, Any]) -> str:
    return orjson.dumps(schema, option=orjson.OPT_INDENT_2).decode()


def _parse_pairs(text: str) -> dict[str, str]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if any("=" not in line for line in lines):
        raise DefinitionRefused(detail="query and repetition are pairs, one parameter=argument a line")
    return {name.strip(): argument.strip() for name, _, argument in (line.partition("=") for line in lines)}


def _parse_json_object(text: str, which: str) -> dict[str, Any]:
    try:
        found = read_json(text)
    except orjson.JSONDecodeError as error:
        raise DefinitionRefused(detail=f"the {which} are no JSON: {error}"[:200]) from None
    if not isinstance(found, dict):
        raise DefinitionRefused(detail=f"the {which} are no JSON object")
    return found


def _parse_openapi_document(text: str) -> dict[str, Any]:
    try:
        # What anchors stand for is not copied; how much of it is read, operation_of bounds.
        found = read_yaml(text)
    except ConstructorError as error:
        raise DefinitionRefused(detail=f"the document cannot be read: {error.problem}"[:200]) from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise DefinitionRefused(detail="the document is neither JSON nor YAML") from None
    if not isinstance(found, dict):
        raise DefinitionRefused(detail="the document is no mapping")
    return found
