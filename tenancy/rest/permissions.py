"""Scopes as DRF permissions."""

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from tenancy.core.roles import Scope
from tenancy.rest.authentication import Caller, PlatformCaller


def make_scope_permission(scope: Scope) -> type[BasePermission]:
    """Build a permission that requires one scope of the caller."""

    class Requires(BasePermission):
        message = f"This needs the scope {scope.value}."
        code = "scope-missing"

        def has_permission(self, request: Request, view: Any) -> bool:
            """Return whether the caller has the scope."""
            return isinstance(request.user, Caller) and scope.value in request.user.scopes

    Requires.__name__ = f"Requires{scope.value.title()}"
    return Requires


class ForPlatform(BasePermission):
    """Permission that requires a key of a platform administrator."""

    message = "This needs the scope platform, which no key of a tenant has."
    code = "scope-missing"

    def has_permission(self, request: Request, view: Any) -> bool:
        """Return whether the request was authenticated with a platform administrator's key."""
        return isinstance(request.user, PlatformCaller)


class ReachesTenant(BasePermission):
    """Permission that requires a key for every run of its tenant, because the response covers all of them."""

    message = "This key reaches some runs alone, and this is told of all of the tenant's."
    code = "reach-missing"

    def has_permission(self, request: Request, view: Any) -> bool:
        """Return whether the caller's key reaches every run."""
        return isinstance(request.user, Caller) and request.user.reach is None
