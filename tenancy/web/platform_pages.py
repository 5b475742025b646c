"""Authentication for the platform's pages: a platform administrator by session (R-SEC-10).

For everyone else these pages do not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, cast

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.cache import add_never_cache_headers, patch_vary_headers

from tenancy.core.errors import InterlockError, NotFound
from tenancy.models import Person
from tenancy.people.platform_admins import PlatformActor, is_platform_admin
from tenancy.web.page_auth import respond_with_problem, to_sign_in, zone_of

P = ParamSpec("P")


class PlatformRequest(HttpRequest):
    """A request of a platform administrator."""

    platform: PlatformActor


View = Callable[Concatenate[PlatformRequest, P], HttpResponseBase]
Door = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def platform_page(view: View[P]) -> Door[P]:
    """Decorate a view for platform administrators.

    A visitor who is not signed in is redirected to the sign-in page and back. Anyone else gets 404.
    """

    @wraps(view)
    def door(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        response = _call_platform_view(request, lambda known: view(known, *args, **kwargs))
        add_never_cache_headers(response)
        patch_vary_headers(response, ("Cookie", "HX-Request"))
        return response

    return door


def _call_platform_view(
    request: HttpRequest, view: Callable[[PlatformRequest], HttpResponseBase]
) -> HttpResponseBase:
    person = request.user
    if not isinstance(person, Person):
        return to_sign_in(request)
    try:
        if not is_platform_admin(person.id):
            raise NotFound
        known = cast("PlatformRequest", request)
        known.platform = PlatformActor(person.id)
        with timezone.override(zone_of(request)):
            return view(known)
    except InterlockError as error:
        return respond_with_problem(request, error)
