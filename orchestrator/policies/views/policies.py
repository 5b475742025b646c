"""GET and POST /policy, /policy/rule: rules about the provenance of values (R-TOOL-17, R-UI-5).

A change needs a reason and can be previewed. A weaker policy waits for a second person.
"""

from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from approvals.queries.undo import window_now
from orchestrator.core.approval.errors import OwnProposal, ProposalOpen
from orchestrator.core.policy.detectors import PLACES, Place, Severity, discover_detectors
from orchestrator.core.policy.provenance.value_kinds import KINDS
from orchestrator.core.policy.rules import (
    ORIGINS,
    SHIPPED,
    STANDINGS,
    Policy,
    Rule,
    find_weaker_cases,
    list_weakened_detectors,
)
from orchestrator.policies.actions.policy_versions import (
    ChangeAuthor,
    PolicyChange,
    agree_to_policy,
    asked_policy,
    change_policy,
    drop_proposal,
)
from orchestrator.policies.queries.policies import PolicyNow, find_open_proposal, policy_now, policy_versions
from orchestrator.policies.views.policy_labels import (
    DECISIONS,
    KIND_WORDS,
    ORIGIN_WORDS,
    STANDING_WORDS,
    case_in_words,
    rule_in_words,
)
from tenancy.core.errors import InvalidInput, NotFound, Stale
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.member_queries import names_of
from tenancy.rest.api_helpers import uuid_or_none
from tenancy.web.page_auth import PageRequest, check_scopes, require_member

EITHER: Final = ("", "either")
LISTS: Final = ("tools", "arguments", "kinds", "origins", "scope")
FLAGS: Final = ("mutating", "sensitive", "carries")
MEANWHILE: Final = "Somebody changed the policy in the meantime. Below is your form; look again."
SHOWN_CASES: Final = 12


def _build_checkbox_field(
    label: str, names: tuple[str, ...], words: dict[str, str]
) -> forms.MultipleChoiceField:
    return forms.MultipleChoiceField(
        label=label, required=False, widget=forms.CheckboxSelectMultiple, help_text="None: any.",
        choices=[(name, words[name]) for name in names],
    )  # fmt: skip


def _build_flag_field(label: str, yes: str, no: str) -> forms.ChoiceField:
    return forms.ChoiceField(label=label, required=False, choices=[EITHER, ("yes", yes), ("no", no)])


def _build_lines_field(label: str, about: str) -> forms.CharField:
    return forms.CharField(
        label=label,
        required=False,
        max_length=5_000,
        help_text=about,
        widget=forms.Textarea(attrs={"rows": 2}),
    )


PLACE_WORDS: dict[Place, str] = {
    "input": "in what comes in", "result": "in results of tools", "output": "in what goes out",
}  # fmt: skip
SEVERITY_WORDS: dict[Severity, str] = {
    "off": "is not looked for", "note": "is noted", "gate": "asks people from then on",
    "stop": "closes the run",
}  # fmt: skip


class RuleForm(forms.Form):
    """One rule, its position among the others, and the reason for its change."""

    name = forms.SlugField(label="Name", max_length=48, help_text="Small letters, digits and dashes.")
    place = forms.IntegerField(
        label="Place", min_value=1, max_value=60, help_text="The first that fits decides."
    )
    decision = forms.ChoiceField(label="Then", choices=list(DECISIONS.items()))
    reason = forms.CharField(label="Said to people and to the model", max_length=300)
    tools = _build_lines_field("Tools", "One a line, such as mail.send or mail.*; none: every tool.")
    arguments = _build_lines_field("Arguments", "One a line, such as /to; none: every argument.")
    mutating = _build_flag_field("The tool", "changes something", "only reads")
    sensitive = _build_flag_field("The argument", "is declared sensitive", "is not")
    chosen = forms.ChoiceField(
        label="Its value was chosen by", required=False,
        choices=[EITHER, ("model", "the model"), ("plan", "the workflow")],
    )  # fmt: skip
    carries = _build_flag_field("The value", "takes away what was read", "takes nothing away")
    kinds = _build_checkbox_field("The argument is", KINDS, dict(KIND_WORDS))
    origins = _build_checkbox_field("Its value comes from", ORIGINS, dict(ORIGIN_WORDS))
    scope = _build_checkbox_field("The task", STANDINGS, dict(STANDING_WORDS))
    why = forms.CharField(
        label="Reason", max_length=500, help_text="Saved to the audit log.",
        widget=forms.Textarea(attrs={"rows": 2}),
    )  # fmt: skip
    former = forms.CharField(widget=forms.HiddenInput, required=False)
    version = forms.IntegerField(widget=forms.HiddenInput)

    def rule(self) -> dict[str, Any]:
        """Return the rule as entered."""
        given = self.cleaned_data
        flags: dict[str, bool | None] = {"yes": True, "no": False, "": None}
        return {
            "name": given["name"], "decision": given["decision"], "reason": given["reason"],
            "tools": given["tools"].split(), "arguments": given["arguments"].split(),
            "kinds": given["kinds"], "origins": given["origins"], "scope": given["scope"],
            "chosen": given["chosen"] or None, **{name: flags[given[name]] for name in FLAGS},
        }  # fmt: skip


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.READ)
def show_policy_page(request: PageRequest) -> HttpResponse:
    """Render the policy in force, its versions and the open proposal.

    A POST settles the proposal, or sets the treatment of untrusted additions or the severity of a detector.
    """
    if request.method != "POST":
        return _render_policy_page(request)
    check_scopes(request.member, Scope.ADMIN)
    reason = request.POST.get("reason", "").strip()
    if not reason:
        messages.error(request, "Say why: the reason stands in the audit log.")
        return _render_policy_page(request, status=422)
    if "after_untrusted" in request.POST:
        return _update_untrusted_additions(request, reason)
    if "detector" in request.POST:
        return _update_safety_severity(request, reason)
    return _settle_proposal(request, reason)


def _update_untrusted_additions(request: PageRequest, reason: str) -> HttpResponse:
    with tenant_transaction(request.member.tenant.id):
        now = policy_now()
    given = {
        "rules": _to_rule_dicts(now.policy), "after_untrusted": request.POST["after_untrusted"],
        "safety": dict(now.policy.safety),
    }  # fmt: skip
    return _submit_policy(request, given, now, reason)


def _update_safety_severity(request: PageRequest, reason: str) -> HttpResponse:
    """Set the severity of one detector's findings at one place (R-TOOL-24)."""
    with tenant_transaction(request.member.tenant.id):
        now = policy_now()
    given = {
        "rules": _to_rule_dicts(now.policy), "after_untrusted": now.policy.after_untrusted,
        "safety": {**now.policy.safety, request.POST["detector"]: request.POST.get("severity", "")},
    }  # fmt: skip
    return _submit_policy(request, given, now, reason)


def _submit_policy(request: PageRequest, given: dict[str, Any], now: PolicyNow, reason: str) -> HttpResponse:
    try:
        return _respond_to_policy_change(
            request, _request_policy_change(request, asked_policy(given), now.version, reason)
        )
    except (InvalidInput, Stale, ProposalOpen) as error:
        messages.error(request, str(error))
        return _render_policy_page(request, status=422)


def _settle_proposal(request: PageRequest, reason: str) -> HttpResponse:
    house, who = request.member.tenant.id, _build_requester(request)
    waiting: UUID | None = uuid_or_none(request.POST.get("proposal", ""))
    if waiting is None:
        raise NotFound
    if "agree" not in request.POST:
        drop_proposal(house, waiting, who=who, reason=reason)
        messages.success(request, "It waits no longer; the policy is as it was.")
        return redirect("policy")
    try:
        return _respond_to_policy_change(request, agree_to_policy(house, waiting, who=who, reason=reason))
    except OwnProposal as error:
        messages.error(request, str(error))
        return _render_policy_page(request, status=403)


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.ADMIN)
def show_rule_page(request: PageRequest) -> HttpResponse:
    """Render the form of a new rule, or of the rule with the given name.

    A POST previews the change, makes it, or removes the rule.
    """
    with tenant_transaction(request.member.tenant.id):
        now = policy_now()
    if request.method != "POST":
        return _render_rule_form(
            request, RuleForm(initial=_build_initial_data(now.policy, request.GET.get("name", "")))
        )
    form = RuleForm(request.POST)
    if not form.is_valid():
        return _render_rule_form(request, form, status=422)
    try:
        after = asked_policy(_build_changed_policy(now.policy, form, remove="remove" in request.POST))
    except InvalidInput as error:
        for found in error.data["errors"]:
            form.add_error(None, f"{found['pointer']}: {found['detail']}")
        return _render_rule_form(request, form, status=422)
    if "preview" in request.POST:
        return _render_rule_form(request, form, before=now.policy, after=after)
    return _submit_rule(request, form, after, now.version)


def _submit_rule(request: PageRequest, form: RuleForm, after: Policy, version: int) -> HttpResponse:
    given = form.cleaned_data
    try:
        return _respond_to_policy_change(
            request, _request_policy_change(request, after, given["version"], given["why"])
        )
    except Stale:
        form.add_error(None, MEANWHILE)
        fresh = request.POST.copy()
        fresh["version"] = str(version)
        form.data = fresh
        return _render_rule_form(request, form, status=412)
    except ProposalOpen as error:
        form.add_error(None, str(error))
        return _render_rule_form(request, form, status=409)


def _build_changed_policy(before: Policy, form: RuleForm, *, remove: bool) -> dict[str, Any]:
    """Return the whole policy with the form's rule at its position, or without it if `remove` is set."""
    former, place = form.cleaned_data["former"], form.cleaned_data["place"]
    rules = [one for one in _to_rule_dicts(before) if one["name"] != former]
    if not remove:
        rules.insert(place - 1, form.rule())
    return {"rules": rules, "after_untrusted": before.after_untrusted, "safety": dict(before.safety)}


def _to_rule_dicts(policy: Policy) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = policy.model_dump(mode="json")["rules"]
    return rules


def _build_initial_data(policy: Policy, name: str) -> dict[str, Any]:
    """Return the initial form data: those of the named rule, or defaults for a new rule."""
    places = {one.name: place for place, one in enumerate(policy.rules, 1)}
    if name not in places:
        return {"place": 1, "decision": "gate", "mutating": "yes", "version": policy.version}
    held = policy.rules[places[name] - 1]
    words = {True: "yes", False: "no", None: ""}
    return {
        "name": held.name, "former": held.name, "place": places[name], "version": policy.version,
        "decision": held.decision, "reason": held.reason, "tools": "\n".join(held.tools),
        "arguments": "\n".join(held.arguments), "chosen": held.chosen or "",
        **{one: list(getattr(held, one)) for one in ("kinds", "origins", "scope")},
        **{one: words[getattr(held, one)] for one in FLAGS},
    }  # fmt: skip


def _request_policy_change(request: PageRequest, after: Policy, expected: int, reason: str) -> PolicyChange:
    return change_policy(
        request.member.tenant.id, after, expected=expected, who=_build_requester(request), reason=reason
    )  # fmt: skip


def _build_requester(request: PageRequest) -> ChangeAuthor:
    return ChangeAuthor(principal=request.member.principal, owner=request.member.owner)


def _respond_to_policy_change(request: PageRequest, done: PolicyChange) -> HttpResponse:
    if done.proposal is not None:
        messages.info(
            request, "It is weaker, so it waits for a second administrator. Nothing is changed yet."
        )
    else:
        messages.success(request, f"The policy is at version {done.now.version}.")
    return redirect("policy")


def _render_rule_form(
    request: PageRequest,
    form: RuleForm,
    *,
    before: Policy | None = None,
    after: Policy | None = None,
    status: int = 200,
) -> HttpResponse:
    context: dict[str, Any] = {"form": form, "former": form["former"].value()}
    if before is not None and after is not None:
        weaker = find_weaker_cases(before, after)
        context |= {
            "was": _map_rules_by_name(before), "is_now": _map_rules_by_name(after), "looked": True,
            "weaker": [case_in_words(case) for case in weaker[:SHOWN_CASES]],
            "more": len(weaker) - SHOWN_CASES,
        }  # fmt: skip
    return render(request, "policy/rule.html", context, status=status)


def _map_rules_by_name(policy: Policy) -> dict[str, Any]:
    """Return the rules by name, together with their order, for a comparison."""
    order = ", ".join(one.name for one in policy.rules)
    return {**{one.name: rule_in_words(one) for one in policy.rules}, "order": order}


def _render_policy_page(request: PageRequest, *, status: int = 200) -> HttpResponse:
    with tenant_transaction(request.member.tenant.id):
        now, waiting, versions = policy_now(), find_open_proposal(), policy_versions()
        undo = window_now()
        befores = [*(held for _, held in versions[1:]), SHIPPED]
        pairs = [
            {"row": row, "was": _map_rules_by_name(before), "is_now": _map_rules_by_name(held)}
            for (row, held), before in zip(versions, befores, strict=False)
        ]
        ids = [one for row, _ in versions for one in (row.by, row.agreed_by)]
        names = names_of([*ids, waiting.row.by if waiting else None])
    context = {
        "now": now,
        "rules": [_build_rule_row(place, one) for place, one in enumerate(now.policy.rules, 1)],
        "decisions": DECISIONS.items(),
        "safety": _build_detector_rows(now.policy),
        "severities": SEVERITY_WORDS.items(),
        "unguarded": list_weakened_detectors(now.policy, waiting.policy) if waiting else (),
        "waiting": waiting,
        "proposed": {"was": _map_rules_by_name(now.policy), "is_now": _map_rules_by_name(waiting.policy)}
        if waiting
        else None,
        "weaker": [case_in_words(case) for case in waiting.weaker[:SHOWN_CASES]] if waiting else (),
        "own": waiting is not None and request.member.owner == waiting.row.owner,
        "pairs": pairs,
        "names": names,
        "undo": undo,
        "may_admin": request.member.may(Scope.ADMIN),
    }
    return render(request, "policy/policy.html", context, status=status)


def _build_detector_rows(policy: Policy) -> list[dict[str, Any]]:
    """List each detector with the severity of its findings at each place."""
    return [
        {
            "name": name,
            "off": [PLACE_WORDS[place] for place in PLACES if policy.severity(place, name) == "off"],
            "places": [
                {"key": f"{place}:{name}", "place": PLACE_WORDS[place], "means": SEVERITY_WORDS[severity]}
                for place in PLACES
                for severity in (policy.severity(place, name),)
            ],
        }
        for name in discover_detectors()
    ]


def _build_rule_row(place: int, rule: Rule) -> dict[str, Any]:
    return {"place": place, "rule": rule, "words": rule_in_words(rule)}
