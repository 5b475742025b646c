"""Requests for a person's second factor, before a change or before any access (R-SEC-11).

A submitted form is rendered again with its input and a field for the code. It is sent to the same address
once more, so no input is lost and none is stored here.
"""

from __future__ import annotations

from typing import Any, Final

from allauth.account.internal.flows.login import record_authentication
from allauth.core.internal.httpkit import authenticated_user
from allauth.mfa.models import Authenticator
from allauth.mfa.signals import authenticator_added
from allauth.mfa.webauthn.forms import ReauthenticateWebAuthnForm
from allauth.mfa.webauthn.internal.auth import begin_authentication
from django.dispatch import receiver
from django.forms import Form
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render, resolve_url
from django.utils.http import urlencode

from config.auth.code_forms import CodeAgainForm
from tenancy.core.sign_in.rules import MissingFactor
from tenancy.web.page_auth import PageRequest

CODE: Final = "second-factor-code"
CREDENTIAL: Final = "second-factor-credential"
OURS: Final = (CODE, CREDENTIAL, "csrfmiddlewaretoken")
SENT_PLAINLY: Final = "Interlock-Send-Plainly"
"""The header by which a script is told to send its form as a browser without one does."""


def ask_for_factor(request: PageRequest, lack: MissingFactor) -> HttpResponse | None:
    """Return the page that asks to set up or to show a second factor; None if this form has just shown it."""
    if request.headers.get("HX-Request"):
        return _told_to_script(request)
    if request.method != "POST":
        return _to_set_up(request) if lack is MissingFactor.ENROL else _to_show(request)
    code = credential = None
    if lack is MissingFactor.PROVE:
        code, credential = _code_form(request), _credential_form(request)
        if _has_proven(code) or _has_proven(credential):
            _forget_proof(request)
            return None
    return _asked_again(request, lack, code, credential)


def _has_proven(form: Form | None) -> bool:
    """Return whether a form shows the factor, and record the proof in the session if so."""
    if form is None or not form.is_bound or not form.is_valid():
        return False
    form.save()  # type: ignore[attr-defined]  # both forms of the library have one
    return True


def _code_form(request: PageRequest) -> CodeAgainForm:
    code = request.POST.get(CODE)
    return CodeAgainForm(user=request.member.person, data=None if code is None else {"code": code.strip()})


def _credential_form(request: PageRequest) -> ReauthenticateWebAuthnForm | None:
    given = request.POST.get(CREDENTIAL)
    if not given:
        return None
    return ReauthenticateWebAuthnForm(user=request.member.person, data={"credential": given})


def _forget_proof(request: PageRequest) -> None:
    """Restore the form as it was sent first."""
    request.POST = _copy_typed_fields(request)  # type: ignore[assignment]  # the stubs ask for one that cannot change


def _copy_typed_fields(request: PageRequest) -> QueryDict:
    typed = request.POST.copy()
    for name in OURS:
        typed.pop(name, None)
    return typed


def _asked_again(
    request: PageRequest,
    lack: MissingFactor,
    code: CodeAgainForm | None,
    credential: ReauthenticateWebAuthnForm | None,
) -> HttpResponse:
    """Render the previous input in a form that also asks for the factor."""
    person = request.member.person
    held = set(Authenticator.objects.filter(user=person).values_list("type", flat=True))
    faults = [one for form in (code, credential) if form is not None for one in _faults_of(form)]
    context: dict[str, Any] = {
        "lack": lack.value,
        "typed": [(name, text) for name, texts in _copy_typed_fields(request).lists() for text in texts],
        "by_code": bool(held - {Authenticator.Type.WEBAUTHN}),
        "by_passkey": Authenticator.Type.WEBAUTHN in held and lack is MissingFactor.PROVE,
        "faults": faults,
        "minutes": request.member.rules.minutes,
        "lost_files": bool(request.FILES),
    }
    if context["by_passkey"]:
        context["js_data"] = {"request_options": begin_authentication(person)}
    return render(request, "account/second_factor.html", context, status=403)


def _faults_of(form: Form) -> list[str]:
    return [str(text) for texts in form.errors.values() for text in texts] if form.is_bound else []


def _to_set_up(request: PageRequest) -> HttpResponse:
    """Render the page for a person whose role needs a second factor and who has none."""
    return render(
        request, "account/second_factor.html", {"lack": MissingFactor.ENROL.value, "typed": None}, status=403
    )


def _to_show(request: PageRequest) -> HttpResponse:
    """Redirect to the page that asks for the factor and then returns."""
    return HttpResponse(status=302, headers={"Location": _way_to_show(request.get_full_path())})


def _told_to_script(request: PageRequest) -> HttpResponse:
    """Answer a script's request without a page, since a whole page must not replace a fragment.

    A form is to be submitted again as a plain form; for a GET, the page around the fragment is loaded.
    """
    if request.method == "POST":
        return HttpResponse(status=403, headers={SENT_PLAINLY: "yes"})
    return HttpResponse(status=403, headers={"HX-Redirect": request.headers.get("HX-Current-URL", "/")})


def _way_to_show(back: str) -> str:
    return f"{resolve_url('account_reauthenticate')}?{urlencode({'next': back})}"


@receiver(authenticator_added)
def note_added_factor(request: HttpRequest, authenticator: Authenticator, **_more: Any) -> None:
    """Record that a person who has just set up a second factor has shown it in this session."""
    if authenticator.type == Authenticator.Type.RECOVERY_CODES:
        return
    person = authenticated_user(request)
    record_authentication(request, person, "mfa", id=authenticator.pk, type=authenticator.type)
