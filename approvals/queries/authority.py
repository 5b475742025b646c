"""The rules of approvals.core.policy and approvals.core.quorum as filters of requests (R-APPR-5)."""

from functools import reduce
from operator import or_

from django.db.models import Exists, OuterRef, Q

from approvals.core.lifecycle import AGREEING
from approvals.core.policy import RISKS, Decider
from approvals.models import Decision
from tenancy.core.roles import Authority, Scope


def build_decidable_filter(decider: Decider) -> Q:
    """Build a filter of the requests that the decider may decide by approvals.core.policy."""
    principals, owners = [decider.principal, *decider.keys], [decider.owner, *decider.people]
    own = Q(submitter__in=principals) | Q(submitter_owner__in=owners)
    principals, owners = [*principals, *decider.related_keys], [*owners, *decider.related]
    close = Q(submitter__in=principals) | Q(submitter_owner__in=owners)
    close |= Q(retriers__overlap=principals) | Q(retrier_owners__overlap=owners)
    question = Q(kind="clarification")
    answers = question & own
    if Scope.DECIDE.value not in decider.scopes or not decider.authorities:
        return answers
    return answers | (~question & ~close & reduce(or_, map(_build_authority_filter, decider.authorities)))


def _build_authority_filter(authority: Authority) -> Q:
    """Build a filter of the requests within the limits of one authority."""
    found = Q(pk__isnull=False)
    if not authority.has_every_queue:
        found &= Q(queue__in=authority.queues)
    if authority.max_risk:
        known = RISKS[: RISKS.index(authority.max_risk) + 1] if authority.max_risk in RISKS else ()
        found &= Q(risk__in=known)
    if authority.max_amount is not None:
        found &= Q(has_amount=False) | Q(amount__lte=authority.max_amount)
    return found


def has_voted(decider: Decider) -> Exists:
    """Build a condition for requests on which the decider has decided."""
    return Exists(Decision.objects.filter(request_id=OuterRef("id"), owner=decider.owner))


def has_related_vote(decider: Decider) -> Exists:
    """Build a condition for requests whose packet a person related to the decider has agreed to.

    It is `agreement_refusal` as a filter.
    """
    close = Q(principal__in=decider.related_keys) | Q(owner__in=decider.related)
    said = Decision.objects.filter(close, request_id=OuterRef("id"), kind__in=AGREEING, arguments=None)
    return Exists(said.exclude(owner=decider.owner))
