"""Requests that schemathesis draws from the OpenAPI document, and what may be answered to them.

`INTERLOCK_EXPLORE=500` draws five hundred of each kind instead, other ones at every start; with pytest's
`--hypothesis-seed=7` the same again.
"""

import os
import re
from collections.abc import Iterator
from typing import Any

import schemathesis
from django.core.wsgi import get_wsgi_application
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase
from hypothesis import settings as hypothesis_settings
from schemathesis import GenerationMode
from schemathesis.checks import load_all_checks
from schemathesis.config import SchemathesisConfig
from schemathesis.core.result import Ok
from schemathesis.generation.drivers import CoverageGenerator
from schemathesis.generation.feedback import NO_FEEDBACK
from schemathesis.generation.overrides import Override
from schemathesis.specs.openapi.checks import positive_data_acceptance

EXPLORED = int(os.environ.get("INTERLOCK_EXPLORE", "0"))
SEED = 20260101
# What is as documented may yet be another's to do (403), gone (404, 410), not possible now (409, 412, 424,
# 429) or never (422): that is the state of the tenant, and no schema has it.
TAKEN = ["2xx", "3xx", 403, 404, 409, 410, 412, 422, 424, 429]
# What is malformed may be refused for its length, its key's scope or its key's rate, before anybody reads it.
REFUSED = [400, 403, 404, 405, 406, 409, 413, 415, 422, 429]
BEYOND_CODES = {
    "cursor-invalid": "a cursor is what a page before it gave: a draw has the form of one and is none",
    "json-not-acceptable": "no schema bounds the numbers and the depth of members that it does not name",
}
STATE_CODES = ("not-allowed", "taken", "in-force")
# What these take is read by their verbs, whose faults have codes of their own.
READ_BY_VERBS = (
    "allow_tool", "give_member_role", "invite_member", "make_key", "publish_boundary", "set_member_limits",
)  # fmt: skip
BY_VERBS = (*STATE_CODES, "invalid", "owner-needed", "required", "unknown", "unknown-queue")
A_QUEUE = "every queue (*) stands alone, and a name is that of an open queue"
A_HOST = "which text is a host, and whether it may be reached, is the answer of a parser and of a list"
A_MODEL = "names another model of the tenant, or a role that no other plays"
A_REASON = "needed only where something is guarded less than it was"
FITTING = "what is said of a tool has to fit together and to its category"
BEYOND: dict[str, dict[str, str]] = {
    "add_model_profile": {
        r"/(cheaper|failover/\d+|roles|roles/\d+)": A_MODEL,
        r"/base_url": A_HOST,
        r"/(secret|price)": "names a secret that is kept for the address, and a price where nobody knows one",
        r"/name": "a name is taken once",
    },
    "add_mcp_server": {r"/address": f"names one of the operator's commands; or {A_HOST}"},
    "add_webhook": {r"/url": A_HOST},
    "add_queue": {
        r"/name": "a name is taken once",
        r"/description": "is one line of printable characters, which Unicode says and JSON Schema cannot",
    },
    "describe_queue": {
        r"/description": "is one line of printable characters, which Unicode says and JSON Schema cannot"
    },
    "admit_server_tool": {r"/admission/.*": FITTING, r"/reason": A_REASON},
    "allow_tool": {
        r"/tools/\d+/name": "names a tool of the tenant, or a family, by a form that its models have"
    },
    "change_tool": {r"/reason": A_REASON, r"/(risk|approval|compensation)": FITTING},
    "correct_price": {r"/version": "the version that is in force is not the one that was wrong"},
    "declare_http_tool": {r"/declaration/.*": FITTING, r"/reason": A_REASON},
    "keep_secret": {
        r"/expires_at": "lies in the future, and is said of what is renewed",
        r"/origin": A_HOST,
    },
    "make_key": {
        r"/owner": "a key that decides or administers has a person who answers for it",
        r"/workflows": "its items have a form that the document does not state yet",
    },
    "give_member_role": {r"/role": "a role is given once", r"/queues(/\d+)?": A_QUEUE},
    "invite_member": {r"/role": "a role is given once", r"/queues(/\d+)?": A_QUEUE},
    "set_member_limits": {r"/queues(/\d+)?": A_QUEUE},
    "publish_boundary": {r"/.*": "is a YAML document, whose faults are named by their places in it"},
    "put_document": {
        r"/title": "has printable characters alone, which Unicode says and JSON Schema cannot",
        r"/text": "has a word that is left once its marks are read",
    },
    "remove_model_profile": {
        r"/reason": A_REASON,
        r"/profiles/.*": "another model names this one",
    },
    "set_ceilings": {r"/reason": A_REASON},
    "set_databases": {
        r"/databases/\d+/host": A_HOST,
        r"/databases/\d+/name": "each name stands for one database",
        r"/databases/\d+/(reader|writer)(_account)?": "names a secret that is kept for the address",
    },
    "set_mail_server": {
        r"/server/host": A_HOST,
        r"/server/(secret|account)": "names a secret that is kept for the address",
        r"/server/tls": "a password is not sent in the clear",
    },
    "set_policy": {r"/rules": "two rules have not one name"},
    "set_private_places": {r"/places/\d+": A_HOST},
    "set_web_list": {r"/allow/\d+": A_HOST},
    "submit_task": {r"/files/\d+/path": "no path is given twice"},
}
BEYOND["change_model_profile"] = BEYOND["add_model_profile"]


def operations() -> dict[str, Any]:
    """The operations of the document, by their ids."""
    load_all_checks()
    generator: Any = SchemaGenerator
    document = generator().get_schema(request=None, public=True)
    config = SchemathesisConfig.from_dict(
        {
            "seed": SEED,
            # No text of ours has a NUL (400), which would have to be said of each by a pattern.
            "generation": {"with-security-parameters": False, "allow-x00": False},
            "checks": {
                "positive_data_acceptance": {"expected-statuses": TAKEN},
                "negative_data_rejection": {"expected-statuses": REFUSED},
            },
        }
    )
    schema = schemathesis.openapi.from_dict(document, config=config)
    schema.app = get_wsgi_application()
    found = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
    return {operation.definition.raw["operationId"]: operation for operation in found}


def drawing(examples: int) -> hypothesis_settings:
    """How many requests are drawn: always the same ones, but where the document is explored."""
    return hypothesis_settings(
        max_examples=EXPLORED or examples, deadline=None, database=None, derandomize=not EXPLORED,
        phases=(Phase.generate,), suppress_health_check=list(HealthCheck),
    )  # fmt: skip


def modes_of(operation: Any) -> list[GenerationMode]:
    """In which modes requests of an operation are drawn: a path of any text, and nothing else, cannot be
    malformed: what is not there is 404."""
    return list(GenerationMode) if operation.query or operation.body else [GenerationMode.POSITIVE]


def covering(operation: Any) -> Iterator[Any]:
    """A request for each bound, each member that is left out or unknown, each type that is another, each
    method and media type that is not there."""
    config = operation.schema.config.generation_for(operation=operation, phase="coverage")
    yield from CoverageGenerator(
        operation=operation, generation_modes=list(GenerationMode), generation_config=config,
        auth_storage=None, override=Override(), feedback=NO_FEEDBACK,
    )  # fmt: skip


def hold(name: str, case: Any, key: dict[str, str]) -> None:
    """Send a request, and hold the answer against the document by every check that there is."""
    response = case.call(headers=key)
    well_formed = case.meta is None or case.meta.generation.mode.is_positive
    excluded = [positive_data_acceptance] if well_formed and _is_beyond(name, response) else []
    case.validate_response(
        response, headers=key, excluded_checks=excluded, transport_kwargs={"headers": dict(key)}
    )


def _is_beyond(name: str, response: Any) -> bool:
    """Whether a request that is as documented is refused by a rule that the document cannot state."""
    if response.status_code != 400:
        return False
    said, rules = response.json(), BEYOND.get(name, {})
    if said["code"] in BEYOND_CODES:
        return True
    return bool(said.get("errors")) and all(
        error["code"] in (BY_VERBS if name in READ_BY_VERBS else STATE_CODES)
        and any(re.fullmatch(rule, error["pointer"]) for rule in rules)
        for error in said["errors"]
    )
