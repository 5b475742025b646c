"""What the gateway sends equals what was granted, byte for byte, for every member name and shape (R-SEC-4,
G2). Each call goes the whole way: written by a model, sealed, granted by a person, opened at dispatch, sent.
Judged by the bytes that the server read."""

from itertools import count
from typing import Any

import orjson
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from pytest_django import Settings

from approvals.models import Request
from orchestrator.core.guardrails.safety_rules import GRAVE
from orchestrator.core.policy.rules import Policy
from orchestrator.policies.actions.policy_versions import ChangeAuthor, agree_to_policy, change_policy
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.core.traces.test_sealed import KEY, NAMES, TEXTS, VALUES, Drawer
from tests.doubles.crm import Crm
from tests.doubles.openai_server import Call, calls
from tests.factories.foreign import onwards
from tests.factories.world import World
from tests.journeys.test_sealed_values import Scripted, asking, change
from tests.proves import proves
from tests.shell.orchestrator.test_http_tools import crm as crm
from tests.shell.orchestrator.test_http_tools import declare
from tests.shell.orchestrator.test_http_tools import world as world
from traces.core.canonical import canonical_outside
from traces.core.redaction import marked_places
from traces.core.sealed_references import extract_references, with_opened, with_sealed
from traces.queries import load_payloads, vault_of

FRESH = count()
# A tool without code takes no other members of its own; below these stands any name.
MEMBERS = ("anything", "password", "api_key", "note")
LIKE_REFERENCES = st.sampled_from(
    [
        *("[sealed:api_key:abc]", "[sealed:secret_field:" + "0" * 63 + "]", "[sealed:]", "(sealed)"),
        *("[redacted]", "[redacted:", "redacted:api_key", "[secret]", "[SEALED:api_key:" + "a" * 64 + "]"),
    ]
)
ANY_NAME = NAMES | LIKE_REFERENCES | TEXTS
ANY_VALUE = st.recursive(
    VALUES | LIKE_REFERENCES | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_NAME, inner, max_size=3),
    max_leaves=6,
)
DOCUMENTS = st.fixed_dictionaries(
    {"anything": st.dictionaries(ANY_NAME, ANY_VALUE, max_size=4)},
    optional=dict.fromkeys(MEMBERS[1:], ANY_VALUE),
)
KEPT = "https://ada:hunter2@c.example/x"
EDGES: list[dict[str, Any]] = [
    {"anything": {"password": "", "secret": None, "token": [], "": "", "pin": False}, "password": [None]},
    {
        "anything": {"x secret=a1": {KEPT: ["password=b", KEPT]}, "password": {"": [{"a": [[]]}]}},
        "note": [KEPT],
    },
    {"anything": {"note": '{"password": "a\\u0000b", "x": "\\"[sealed:"}', "a/b~": {"Passphrase": -0.0}}},
    {
        "anything": {"secret": KEY},
        "password": {"pin": 2**63 - 1},
        "api_key": "",
        "note": "secret=b é\u2028",
    },
]
MARKED: list[Any] = [
    "[redacted:api_key]", "[sealed:secret_field:" + "0" * 64 + "]", {"password": "x [redacted:secret_field]"},
    {"[redacted:api_key]": 1}, [["[sealed:api_key:" + "a" * 64 + "] and more"]],
]  # fmt: skip


def is_sent(document: Any) -> bool:
    """Whether a call is sent at all: with a mark or a whole reference in it it is refused, and a run whose
    model writes a key or a bearer token outside of a secret's member ends."""
    drawer = Kinds()
    with_sealed(document, drawer.seal)
    return not (
        marked_places(document) or any(extract_references(document)) or drawer.kinds.intersection(GRAVE)
    )


class Kinds(Drawer):
    """Notes the kinds of what is sealed."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: set[str] = set()

    def seal(self, kind: str, secret: str, member: str) -> str:
        """Its reference."""
        self.kinds.add(kind)
        return super().seal(kind, secret, member)


def takes_anything(world: World, crm: Crm) -> None:
    """Declare a tool that takes anything in these members, and sends it as it is."""
    request = {"method": "POST", "url": f"{crm.origin}/anything", "body": "rest"}
    schema = {"type": "object", "properties": {name: {} for name in (*MEMBERS, "number")}}
    declare(world, change(crm, name="crm.anything", input_schema=schema, request=request))
    crm.says = {"id": "n1"}
    # Whether a call may carry an address that nobody named is another question.
    first, second = (ChangeAuthor(principal=fresh_id(), owner=fresh_id()) for _ in range(2))
    asked = change_policy(world.id, Policy(rules=()), expected=None, who=first, reason="Any text.")
    assert asked.proposal is not None
    agree_to_policy(world.id, asked.proposal.id, who=second, reason="Any text.")


def granted(world: World, run: Any, request: Request) -> bytes:
    """What the request's packet says is asked for, with what is sealed in it opened."""
    arguments = orjson.loads(bytes(request.packet))["arguments"].encode()
    with tenant_transaction(world.id):
        vault = vault_of(world.id, run)
        assert vault is not None
        return canonical_outside(
            with_opened(
                orjson.loads(arguments), lambda one: vault.open_value(load_payloads(run, (one,))[one])
            )
        )


def sent_for(world: World, crm: Crm, settings: Settings, asked: list[dict[str, Any]]) -> list[bytes]:
    """The bytes that arrived for a run that asks for these calls, one granted after another."""
    crm.bodies.clear()
    model = Scripted(calls(*(Call("crm_anything", one, f"c{number}") for number, one in enumerate(asked))))
    with asking(world, settings, model) as run:
        while requests := world.open_requests(run):
            (request,) = requests
            allowed = granted(world, run, request)
            before = len(crm.bodies)
            world.decide(request, world.people.approver)
            onwards(world, run)
            assert crm.bodies[before:] == [allowed]
        assert world.run(run).terminal_code == "SUCCESS"
    return list(crm.bodies)


SHARED = settings(
    max_examples=8, phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[
        HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much,
    ],
)  # fmt: skip


@proves("G2", part="what the gateway sends is what was granted, for every name and shape")
@proves("R-SEC-4", part="every member name and shape is sent exactly")
@example(asked=EDGES)
@given(asked=st.lists(DOCUMENTS.filter(is_sent), min_size=4, max_size=4))
@SHARED
def test_what_is_sent_is_what_was_asked_for_and_granted_byte_for_byte(
    world: World, crm: Crm, settings: Settings, asked: list[dict[str, Any]]
) -> None:
    if not crm.seen:
        takes_anything(world, crm)
    fresh = [{**one, "number": next(FRESH)} for one in asked]
    assert sent_for(world, crm, settings, fresh) == [canonical_outside(one) for one in fresh]


@proves("M16", part="no mark and no reference of another run is sent, wherever it stands")
def test_a_call_with_a_mark_or_a_strange_reference_is_never_sent(
    world: World, crm: Crm, settings: Settings
) -> None:
    takes_anything(world, crm)
    for value in MARKED:
        assert not is_sent({"anything": value})
        with asking(world, settings, Scripted(calls(Call("crm_anything", {"anything": value}, "c1")))) as run:
            # A mark within a sealed value is seen once it is opened.
            for request in world.open_requests(run):
                world.decide(request, world.people.approver)
            onwards(world, run)
    assert crm.bodies == []
