"""What the doors take of a text, an id, a moment or an amount is what the document says of it."""

import re
from typing import Any

import pytest
from django.urls import get_resolver
from rest_framework import serializers

from orchestrator.core.policy.rules import Rule
from orchestrator.core.tools.registration import HttpDeclaration
from tenancy.core.amounts import amount_pattern
from tenancy.core.roles import Role
from tenancy.db.model_schema import faults_in
from tenancy.rest.serializer_fields import (
    Amount,
    FormattedCharField,
    Id,
    Moment,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)
from tests.doors.api.bodies import BODIES
from tests.doors.api.program import Program, pointers, program, refusal
from tests.factories.world import World
from tests.proves import proves

ID = "0f3e70f0-0c5b-4a52-9d5f-1f2b3c4d5e6f"
# What each takes though its schema forbids it: a number as a text, as an id; a moment without a zone.
LAX = (
    serializers.CharField, serializers.RegexField, serializers.UUIDField, serializers.DateTimeField,
    serializers.IntegerField, serializers.DecimalField, serializers.BooleanField, serializers.FloatField,
)  # fmt: skip


@proves("R-API-1", part="fields that take what they document")
def test_every_input_is_of_fields_that_take_what_they_document() -> None:
    assert get_resolver().url_patterns
    shapes, seen, found = [StrictSerializer], set(), []
    while shapes:
        shape = shapes.pop()
        seen.add(shape.__name__)
        shapes += shape.__subclasses__()
        for name, field in shape().fields.items():
            child: Any = getattr(field, "child", field)
            if type(child) in LAX:
                found.append(f"{shape.__name__}.{name} is a {type(child).__name__}")
    assert {"TaskBody", "PriceBody", "RunFilters", "DecisionBody"} <= seen
    assert found == []


@pytest.mark.parametrize(
    ("field", "given", "taken"),
    [
        (Id(), ID, True),
        (Id(), ID.upper(), True),
        (Id(), 5, False),
        (Id(), f"urn:uuid:{ID}", False),
        (Id(), ID.replace("-", ""), False),
        (Id(), f"{ID}\n", False),
        (Moment(), "2026-01-31T12:00:00Z", True),
        (Moment(), "2026-01-31t12:00:00.123456789z", True),
        (Moment(), "2026-01-31T12:00:00+23:59", True),
        (Moment(), "2026-01-31T12:00:00", False),
        (Moment(), "2026-01-31", False),
        (Moment(), "2026-02-30T12:00:00Z", False),
        (Moment(), "9999-12-31T23:59:59-01:00", False),
        (Moment(), 5, False),
        (FormattedCharField("^[a-z]{1,3}$"), "abc", True),
        (FormattedCharField("^[a-z]{1,3}$"), " abc", False),
        (FormattedCharField("^[a-z]{1,3}$"), "abc\n", False),
        (FormattedCharField("^$|^[a-z]$"), "", True),
        (FormattedCharField("^[a-z]{1,3}$"), "", False),
        (StrictCharField(max_length=3), "abc", True),
        (StrictCharField(max_length=3), "abc ", False),
        (StrictCharField(), 5, False),
        (StrictIntegerField(), 5, True),
        (StrictIntegerField(), "5.0", False),
        (StrictBooleanField(), "yes", False),
        (Amount(), "1e3", False),
    ],
)
def test_field_takes_its_form_alone(field: Any, given: Any, *, taken: bool) -> None:
    try:
        field.run_validation(given)
        found = True
    except serializers.ValidationError:
        found = False
    assert found is taken


@pytest.mark.parametrize(
    ("text", "fits"),
    [("10000", True), ("10000.000", True), ("9999.999999999", True), ("000000000000001.5", True), ("0", True),
     ("10000.1", False), ("10001", False), ("99999", False), ("0000000000000001", False), ("1e3", False),
     (".5", False), ("", False)],
)  # fmt: skip
def test_amount_pattern_says_how_much_is_taken(text: str, *, fits: bool) -> None:
    assert (re.fullmatch(amount_pattern(10_000), text) is not None) is fits


def test_model_faults_name_each_member_that_is_wrong_missing_or_unknown() -> None:
    given = {
        "name": "crm", "reversibility": "pure", "price_usd": 0.5, "trust": "trusted", "input_schema": {},
        "description": "Finds.", "request": {"method": "GIVE", "a/b": 1},
    }  # fmt: skip
    found = {("/".join(map(str, one.path)), one.code) for one in faults_in(HttpDeclaration, given)}
    assert found == {
        ("name", "invalid"), ("price_usd", "invalid"), ("trust", "unknown"), ("request/method", "invalid"),
        ("request/url", "required"), ("request/a/b", "unknown"),
    }  # fmt: skip


def test_rule_of_a_policy_is_judged_by_its_schema() -> None:
    rule = {"name": "shut", "decision": "deny", "reason": "Shut."}
    assert list(faults_in(Rule, {**rule, "tools": ["mail.*", "crm.find"], "arguments": ["/to"]})) == []
    wrong = {**rule, "tools": ["m\u00e4il.*"], "arguments": ["to"], "mutating": "yes"}
    found = {one.path for one in faults_in(Rule, wrong)}
    assert found == {("tools", 0), ("arguments", 0), ("mutating",)}


@proves("R-API-1", part="405 before parameters")
def test_unknown_method_with_a_parameter_is_not_allowed(world: World) -> None:
    answer = program(world.id, Role.ADMIN).send("delete", "/runs?status=failed")
    assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD, OPTIONS")


def test_correction_that_names_a_tool_and_a_model_is_refused(admin: Program) -> None:
    body = {**BODIES["api/v1/prices/corrections"], "model": "house-model"}
    assert admin.post("/prices/corrections", body).status_code == 400


def test_number_is_no_id(admin: Program) -> None:
    wrong = admin.post(f"/approvals/{ID}/undo", {"deferred": 5})
    assert (wrong.status_code, pointers(wrong)) == (400, ["/deferred"])


def test_model_profile_says_which_name_has_the_wrong_form(admin: Program) -> None:
    body = {
        **BODIES["api/v1/model-profiles"],
        "name": " second",
        "secret": "No secret",
        "base_url": "ftp://a",
    }
    wrong = admin.post("/model-profiles", body)
    assert refusal(wrong) == (400, "invalid-input")
    assert sorted(pointers(wrong)) == ["/base_url", "/name", "/secret"]
