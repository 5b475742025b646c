"""Base class of every view under `/api/v1`."""

from __future__ import annotations

from functools import cache
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import views
from rest_framework.request import Request

from tenancy.core.errors import ParameterRepeated, ParameterUnknown


class APIView(views.APIView):
    """Refuses query parameters that the method's `extend_schema` does not declare (R-SEC-7).

    A misspelt filter would otherwise answer with everything.
    """

    def initial(self, request: Request, *arguments: Any, **names: Any) -> None:
        """Check the key, its scope and its rate first, then the query parameters.

        Raises: ParameterUnknown, ParameterRepeated.
        """
        super().initial(request, *arguments, **names)
        view: Any = type(self)
        if not hasattr(self, (request.method or "").lower()):
            # The view has no such method: 405 takes precedence over every other error.
            return
        for name, values in request.query_params.lists():
            known = query_parameters(view, (request.method or "").lower())
            if name not in known:
                raise ParameterUnknown(parameter=name[:100], known=sorted(known))
            if len(values) > 1:
                raise ParameterRepeated(parameter=name)


@cache
def query_parameters(view: type[Any], method: str) -> frozenset[str]:
    """Return the query parameters that a view's method declares in the OpenAPI document."""
    handler = getattr(view, "get" if method == "head" else method, None)
    declared = getattr(handler, "kwargs", {}).get("schema")
    if declared is None:
        return frozenset()
    schema = declared()
    schema.view, schema.method = view(kwargs={}, request=None), method.upper()
    return frozenset(name for one in schema.get_override_parameters() for name in _list_parameter_names(one))


def _list_parameter_names(declared: Any) -> list[str]:
    """Return the names in one declaration: a single parameter, or a serializer of several."""
    if isinstance(declared, OpenApiParameter):
        return [declared.name] if declared.location == OpenApiParameter.QUERY else []
    return list(declared().fields)
