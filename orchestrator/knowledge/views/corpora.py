"""GET and POST /corpora…: the tenant's documents for search, kept in versions (R-TOOL-19)."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from orchestrator.core.files.chunking import LANGUAGES, LARGEST
from orchestrator.knowledge.actions.corpora import NewDocument, put_document, remove_document
from orchestrator.knowledge.queries.corpora import (
    corpora_now,
    documents_of,
    newest_of,
    passages_now,
    search_corpus,
    versions_of_document,
)
from orchestrator.tools.gateways.egress.html_text import read_page
from tenancy.core.errors import InvalidInput, NotFound
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.member_queries import names_of
from tenancy.rest.serializer_fields import path_name
from tenancy.web.page_auth import PageRequest, check_scopes, require_member

LARGEST_FILE = 2 * 1024 * 1024
HITS = 10


class DocumentForm(forms.Form):
    """A document to keep: a file, or its text."""

    corpus = forms.CharField(label="Corpus", max_length=64, help_text="Lower-case letters, digits, - and _.")
    name = forms.CharField(label="Name", max_length=120, help_text="The same name again makes a new version.")
    title = forms.CharField(label="Title", max_length=200)
    language = forms.ChoiceField(
        label="Language", choices=[(one, one.capitalize()) for one in LANGUAGES], initial="english"
    )
    file = forms.FileField(
        label="File", required=False, help_text="Plain text, Markdown or HTML, in UTF-8, at most 2 MiB.",
        widget=forms.ClearableFileInput(attrs={"accept": ".txt,.md,.html,.htm,text/*"}),
    )  # fmt: skip
    text = forms.CharField(
        label="Or its text", required=False, max_length=LARGEST, strip=False,
        widget=forms.Textarea(attrs={"rows": 8}),
    )  # fmt: skip
    reason = forms.CharField(label="Reason", max_length=500, required=False)

    def clean(self) -> dict[str, Any]:
        """The text of the file where one is given. Raises ValidationError."""
        given: dict[str, Any] = super().clean() or {}
        file = given.pop("file", None)
        if file is None:
            return given
        if file.size > LARGEST_FILE:
            raise forms.ValidationError({"file": "It is larger than 2 MiB."})
        try:
            text = file.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise forms.ValidationError({"file": "It is no text in UTF-8."}) from None
        given["text"] = read_page(text, "").text if file.name.lower().endswith((".html", ".htm")) else text
        return given


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.READ)
def show_corpora_page(request: PageRequest) -> HttpResponse:
    """Every corpus, and the form of a new document."""
    if request.method != "POST":
        return _render_corpora_page(request)
    check_scopes(request.member, Scope.ADMIN)
    form = DocumentForm(request.POST, request.FILES)
    if not form.is_valid():
        return _render_corpora_page(request, form, status=422)
    given = dict(form.cleaned_data)
    reason = given.pop("reason")
    try:
        made = put_document(
            request.member.tenant.id, NewDocument(**given), by=request.member.principal, reason=reason
        )
    except InvalidInput as error:
        for found in error.data["errors"]:
            form.add_error(found["pointer"].strip("/"), found["detail"])
        return _render_corpora_page(request, form, status=422)
    messages.success(request, f"{made.name} is kept as version {made.version}.")
    return redirect("corpus-document", corpus=made.corpus, document=made.name)


@require_safe
@require_member(Scope.READ)
def show_corpus_page(request: PageRequest, corpus: str) -> HttpResponse:
    """The documents of a corpus, and what a search would find."""
    query = request.GET.get("q", "").replace("\x00", " ").strip()[:300]
    with tenant_transaction(request.member.tenant.id):
        documents = documents_of(path_name(corpus))
        if not documents:
            raise NotFound
        hits = search_corpus(corpus, query, HITS) if query else []
        context = {"corpus": corpus, "documents": documents, "query": query, "hits": hits}
        return render(request, "tools/corpus.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.READ)
def show_document_page(request: PageRequest, corpus: str, document: str) -> HttpResponse:
    """One document in its passages, with its versions. A POST takes it out."""
    house = request.member.tenant.id
    if request.method == "POST":
        check_scopes(request.member, Scope.ADMIN)
        return _remove_document(request, path_name(corpus), path_name(document))
    with tenant_transaction(house):
        found = newest_of(path_name(corpus), path_name(document))
        if found is None:
            raise NotFound
        versions = versions_of_document(corpus, document)
        shown = next((one for one in versions if not one.removed), found)
        context = {
            "corpus": corpus, "found": found, "shown": shown, "versions": versions,
            "passages": passages_now(shown), "names": names_of([one.by for one in versions]),
            "may_admin": request.member.may(Scope.ADMIN),
        }  # fmt: skip
        return render(request, "tools/document.html", context)


def _remove_document(request: PageRequest, corpus: str, document: str) -> HttpResponse:
    house, reason = request.member.tenant.id, request.POST.get("reason", "").strip()[:500]
    with tenant_transaction(house):
        if newest_of(corpus, document) is None:
            raise NotFound
    if not reason:
        messages.error(request, "Say why: the reason stands in the audit log.")
    else:
        remove_document(house, corpus, document, by=request.member.principal, reason=reason)
        messages.success(request, f"{document} is found by no search any more.")
    return redirect("corpus-document", corpus=corpus, document=document)


def _render_corpora_page(
    request: PageRequest, form: DocumentForm | None = None, *, status: int = 200
) -> HttpResponse:
    initial = {"corpus": request.GET.get("corpus", "")[:64], "name": request.GET.get("name", "")[:120]}
    with tenant_transaction(request.member.tenant.id):
        context = {
            "corpora": corpora_now(), "form": form or DocumentForm(initial=initial),
            "may_admin": request.member.may(Scope.ADMIN),
        }  # fmt: skip
        return render(request, "tools/corpora.html", context, status=status)
