"""Every error is one problem document."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import pytest
from django.http import Http404
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from config.api.problems import CONTENT_TYPE
from config.api.remedies import REMEDIES
from config.celery import FLOORS
from tenancy.core.errors import InterlockError, KeyExpired, NotFound, OutsideTenant
from tests.proves import proves


class Line(serializers.Serializer[Any]):
    """A nested input."""

    price = serializers.DecimalField(max_digits=5, decimal_places=2)


class Order(serializers.Serializer[Any]):
    """An input with a list inside."""

    lines = Line(many=True)


def answer(act: Callable[[], object]) -> Response:
    """What a view that does `act` answers."""

    class View(APIView):
        authentication_classes = ()
        permission_classes = ()

        def get(self, request: Request) -> Response:
            return Response(act())

    response = View.as_view()(APIRequestFactory().get("/thing/7"))
    return response.render()  # type: ignore[no-any-return]


def raising(error: Exception) -> Callable[[], object]:
    def act() -> object:
        raise error

    return act


@proves("R-API-1", part="problem details")
def test_a_refusal_is_a_problem_document_with_its_code_and_data() -> None:
    class TooMuch(InterlockError):
        """{amount} is too much."""

        code = "interlock-error"

    response = answer(raising(TooMuch(amount=Decimal("12.50"))))
    assert response.headers["Content-Type"] == CONTENT_TYPE
    assert json.loads(response.content) == {
        "type": "urn:interlock:problem:interlock-error",
        "title": "Conflict",
        "status": 409,
        "detail": "12.50 is too much.",
        "code": "interlock-error",
        "remedy": "Read it again with GET, then decide what still fits.",
        "instance": "/thing/7",
        "data": {"amount": "12.50"},
    }


def test_a_missing_thing_of_ours_and_of_django_answer_alike() -> None:
    ours, theirs = answer(raising(NotFound())), answer(raising(Http404()))
    assert (ours.status_code, theirs.status_code) == (404, 404)
    assert json.loads(ours.content)["type"] == json.loads(theirs.content)["type"]


def test_a_dead_key_is_401_and_names_the_scheme() -> None:
    response = answer(raising(KeyExpired()))
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == "Bearer"


def test_a_limit_says_when_to_come_back() -> None:
    response = answer(raising(InterlockError(retry_after=17)))
    assert response.headers["Retry-After"] == "17"


@proves("R-SEC-7", part="no inside leaves")
def test_a_breach_of_our_own_order_shows_nothing_of_the_inside() -> None:
    response = answer(raising(OutsideTenant(table="secret_table")))
    assert response.status_code == 500
    assert b"secret_table" not in response.content


@proves("R-SEC-7", part="no stack trace")
def test_an_unforeseen_error_shows_no_stack() -> None:
    response = answer(raising(ZeroDivisionError("inner words")))
    assert response.status_code == 500
    assert b"inner words" not in response.content
    assert response.headers["Content-Type"] == CONTENT_TYPE


def test_fields_are_named_by_pointers() -> None:
    def act() -> None:
        Order(data={"lines": [{"price": "1.00"}, {"price": "much"}]}).is_valid(raise_exception=True)

    body = json.loads(answer(act).content)
    assert (body["status"], body["code"]) == (400, "invalid-input")
    assert [(one["pointer"], one["code"]) for one in body["errors"]] == [("/lines/1/price", "invalid")]


def test_an_object_that_is_wrong_as_a_whole_is_pointed_to() -> None:
    def act() -> None:
        Order(data={"lines": [{"price": "1.00"}, "much"]}).is_valid(raise_exception=True)

    assert [one["pointer"] for one in json.loads(answer(act).content)["errors"]] == ["/lines/1"]


def test_a_denial_of_drf_keeps_its_status() -> None:
    assert answer(raising(PermissionDenied())).status_code == 403


def _kinds(kind: type[InterlockError]) -> Iterator[type[InterlockError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _kinds(child)


def _load_every_module() -> None:
    """An error class counts wherever it is written."""
    for app in FLOORS:
        for module in walk_packages(import_module(app).__path__, f"{app}."):
            if ".migrations" not in module.name:
                import_module(module.name)


def _qualified(kind: type[InterlockError]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def test_errors_of_one_code_have_one_status() -> None:
    _load_every_module()
    found: dict[str, set[int]] = {}
    for kind in _kinds(InterlockError):
        found.setdefault(kind.code, set()).add(kind.http_status)
    assert {code: statuses for code, statuses in found.items() if len(statuses) > 1} == {}


ALL = sorted(set(_kinds(InterlockError)), key=_qualified)


@pytest.mark.parametrize("kind", ALL)
def test_every_error_class_has_a_sentence_and_a_code(kind: type[InterlockError]) -> None:
    assert (kind.__doc__ or "").strip()
    assert kind.code == kind.code.lower().replace("_", "-")


def test_finding_18_every_code_that_a_caller_sees_has_a_remedy_and_no_other_has() -> None:
    framework = {
        "bad-request", "parse-error", "not-authenticated", "authentication-failed", "permission-denied",
        "method-not-allowed", "not-acceptable", "unsupported-media-type", "throttled", "internal-error",
        "body-too-large", "reach-missing", "not-json", "json-not-acceptable", "member-repeated",
        "cursor-invalid", "limit-invalid", "idempotency-key-invalid",
    }  # fmt: skip
    _load_every_module()
    ours = [kind for kind in _kinds(InterlockError) if not kind.__module__.startswith("tests.")]
    seen = {kind.code for kind in ours if kind.http_status != 500}
    assert set(REMEDIES) == seen | framework
    assert all(text.endswith(".") and len(text) > 10 for text in REMEDIES.values())


def test_finding_18_a_breach_of_our_own_order_is_told_what_to_do_too() -> None:
    body = json.loads(answer(raising(OutsideTenant(table="secrets"))).content)
    assert (body["code"], body["remedy"]) == ("internal-error", REMEDIES["internal-error"])
