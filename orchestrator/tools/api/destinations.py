"""The API of outbound destinations and of corpora (R-TOOL-2, R-TOOL-19)."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from orchestrator.api.serializers import ReasonBody, format_timestamp
from orchestrator.knowledge.actions.corpora import NewDocument, put_document, remove_document
from orchestrator.knowledge.queries.corpora import corpora_now, documents_of, newest_of
from orchestrator.policies.actions.dual_control import ChangeAuthor
from orchestrator.publishing.api.catalog import ScopedAPIView
from orchestrator.tools.actions.change_requests import ask_for_databases, ask_for_mail, ask_to_list
from orchestrator.tools.api.change_requests import ToolProposalField, proposal_field
from orchestrator.tools.api.destination_serializers import (
    CorpusRow,
    DatabasesBody,
    DatabasesField,
    DocumentBody,
    DocumentField,
    DocumentRow,
    MailBody,
    MailField,
    WebBody,
    WebField,
)
from orchestrator.tools.models.destinations import CorpusDocument
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.queries.destinations import Kind, OutsideNow, outside_now
from tenancy.core.errors import NotFound
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import expected_version, get_caller, post_once
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import faults_within, page_of, path_name, validate_input


class Web(ScopedAPIView):
    """The web addresses that tools read without asking a person."""

    @extend_schema(operation_id="get_web_list", responses=WebField)
    def get(self, request: Request) -> Response:
        """The list in force, with its version as the ETag."""
        return _build_current_response(request, "web", {"allow": []})

    @extend_schema(
        operation_id="set_web_list", request=WebBody, responses={200: WebField, 202: ToolProposalField}
    )
    def put(self, request: Request) -> Response:
        """Make exactly these the list. Runs admitted from now on are pinned to it; what is taken off it is
        closed to runs under way too. One with more on it waits for a second administrator, where there is one
        (202). Raises InvalidInput (400), ProposalOpen (409), Stale (412)."""
        body, who = validate_input(WebBody, request.data), get_caller(request)
        now = ask_to_list(
            who.tenant, tuple(body["allow"]), expected=expected_version(request), who=who_asks(request),
            reason=body["reason"],
        )  # fmt: skip
        return _build_change_response(now)


class DatabasesDoor(ScopedAPIView):
    """The databases that tools may ask."""

    reading = make_scope_permission(Scope.INSPECT)

    @extend_schema(operation_id="get_databases", responses=DatabasesField)
    def get(self, request: Request) -> Response:
        """Those in force, with the version as the ETag. No secret, but the names of some."""
        return _build_current_response(request, "databases", {"databases": []})

    @extend_schema(
        operation_id="set_databases", request=DatabasesBody,
        responses={200: DatabasesField, 202: ToolProposalField},
    )  # fmt: skip
    def put(self, request: Request) -> Response:
        """Make exactly these the databases, from the next call on. What reaches more than before waits for a
        second administrator, where there is one (202). Raises InvalidInput (400), ProposalOpen (409), Stale
        (412)."""
        body, who = validate_input(DatabasesBody, request.data), get_caller(request)
        now = ask_for_databases(
            who.tenant, tuple(body["databases"]), expected=expected_version(request), who=who_asks(request),
            reason=body["reason"],
        )  # fmt: skip
        return _build_change_response(now)


class Mail(ScopedAPIView):
    """Where letters are given up, and from whom they are."""

    reading = make_scope_permission(Scope.INSPECT)

    @extend_schema(operation_id="get_mail_server", responses=MailField)
    def get(self, request: Request) -> Response:
        """What is in force, with the version as the ETag; `server` null where nobody has said anything."""
        with tenant_transaction(get_caller(request).tenant):
            return _build_version_response(outside_now("mail"), {})

    @extend_schema(
        operation_id="set_mail_server", request=MailBody, responses={200: MailField, 202: ToolProposalField}
    )
    def put(self, request: Request) -> Response:
        """Say it, from the next call on. A wider way than before (another server or account, more recipients)
        waits for a second administrator, where there is one (202). Raises InvalidInput (400), ProposalOpen
        (409), Stale (412)."""
        body, who = validate_input(MailBody, request.data), get_caller(request)
        with faults_within("server"):
            now = ask_for_mail(
                who.tenant, body["server"], expected=expected_version(request), who=who_asks(request),
                reason=body["reason"],
            )  # fmt: skip
        return _build_change_response(now)


class Corpora(ScopedAPIView):
    """The corpora of the tenant."""

    @extend_schema(operation_id="list_corpora", responses=page_of(CorpusRow, "CorpusPage"))
    def get(self, request: Request) -> Response:
        """All of them by name, in one page."""
        with tenant_transaction(get_caller(request).tenant):
            rows = [
                {
                    "corpus": one.corpus,
                    "documents": one.documents,
                    "changed_at": format_timestamp(one.changed_at),
                }
                for one in corpora_now()
            ]
        return Response({"results": rows, "next": None, "previous": None})

    @extend_schema(operation_id="put_document", request=DocumentBody, responses={201: DocumentRow})
    def post(self, request: Request) -> Response:
        """Keep a document in a corpus, or a new version of one. Raises InvalidInput (400)."""
        body, who = validate_input(DocumentBody, request.data), get_caller(request)
        reason = body.pop("reason")

        def kept() -> StoredResponse:
            made = put_document(who.tenant, NewDocument(**body), by=who.principal, reason=reason)
            return StoredResponse(201, _serialize_document(made))

        return post_once(request, kept)


class OneCorpus(ScopedAPIView):
    """The documents of a corpus."""

    @extend_schema(operation_id="list_documents", responses=page_of(DocumentRow, "DocumentPage"))
    def get(self, request: Request, corpus: str) -> Response:
        """As they are now, by name, in one page. Raises NotFound."""
        with tenant_transaction(get_caller(request).tenant):
            rows = [_serialize_document(one) for one in documents_of(path_name(corpus))]
        if not rows:
            raise NotFound
        return Response({"results": rows, "next": None, "previous": None})


class OneDocument(ScopedAPIView):
    """A document of a corpus."""

    @extend_schema(operation_id="get_document", responses=DocumentField)
    def get(self, request: Request, corpus: str, document: str) -> Response:
        """Its newest version, with its text. Raises NotFound."""
        with tenant_transaction(get_caller(request).tenant):
            found = newest_of(path_name(corpus), path_name(document))
        if found is None or found.removed:
            raise NotFound
        return Response({**_serialize_document(found), "text": found.text})


class RemoveDocument(ScopedAPIView):
    """Taking a document out."""

    @extend_schema(operation_id="remove_document", request=ReasonBody, responses={204: None})
    def post(self, request: Request, corpus: str, document: str) -> Response:
        """Out of searches; what was cited of it can still be shown. Raises NotFound."""
        reason, who = validate_input(ReasonBody, request.data)["reason"], get_caller(request)

        def build_response() -> StoredResponse:
            remove_document(
                who.tenant, path_name(corpus), path_name(document), by=who.principal, reason=reason
            )
            return StoredResponse(204, None)

        return post_once(request, build_response)


def _build_current_response(request: Request, kind: Kind, otherwise: dict[str, Any]) -> Response:
    with tenant_transaction(get_caller(request).tenant):
        return _build_version_response(outside_now(kind), otherwise)


def _build_version_response(now: OutsideNow, otherwise: dict[str, Any]) -> Response:
    return Response({**otherwise, **version_field(now)}, headers={"ETag": f'"{now.version}"'})


def version_field(now: OutsideNow) -> dict[str, Any]:
    """Serialize a version for the API."""
    body = {"server": now.body or None} if now.kind == "mail" else now.body
    return {**body, "version": now.version, "reason": now.reason, "at": format_timestamp(now.at)}


def _build_change_response(now: OutsideNow | ToolProposal) -> Response:
    """Build the response to a change: the version in force, or the proposal that waits (202)."""
    return (
        Response(proposal_field(now), status=202)
        if isinstance(now, ToolProposal)
        else _build_version_response(now, {})
    )


def who_asks(request: Request) -> ChangeAuthor:
    """Return the caller's principal and the person behind it."""
    found = get_caller(request)
    return ChangeAuthor(principal=found.principal, owner=found.owner)


def _serialize_document(one: CorpusDocument) -> dict[str, Any]:
    return {
        "corpus": one.corpus, "name": one.name, "version": one.version, "title": one.title,
        "language": one.language, "sha256": one.sha256, "added_at": format_timestamp(one.at),
    }  # fmt: skip
