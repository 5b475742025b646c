"""Tools, workflows and ceilings for programs: what an admin changes by them (R-API-2, R-TOOL-4)."""

import pytest

from orchestrator import bundled_content
from orchestrator.runs.actions.emergency_stop import stop_everything
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry
from tests.doors.api.bodies import BODIES
from tests.doors.api.program import Program, pointers, refusal
from tests.factories.world import World
from tests.proves import proves

TOOL = "/tools/calculator.evaluate"
FILE = bundled_content.HERE / "workflows" / "tool-loop.yaml"


@proves("R-API-2", part="PATCH /tools/{name}")
@proves("R-TOOL-4", part="API")
def test_a_patch_makes_a_version_and_says_its_tag(admin: Program, world: World) -> None:
    seen = admin.get(TOOL)
    body = {
        "risk_class": "local_write", "approval_policy": "always", "scopes": ["submit"], "price_usd": "0.10",
        "limits": {"rate_per_minute": 5, "timeout_ms": 100}, "reason": "It was wrong",
    }  # fmt: skip
    changed = admin.send("patch", TOOL, body, headers={"If-Match": seen["ETag"]})
    assert changed.status_code == 200
    said = changed.json()
    assert said["version"] == seen.json()["version"] + 1
    assert (said["risk_class"], said["approval_policy"], said["needs_approval"]) == (
        "local_write",
        "always",
        True,
    )
    assert (said["scopes"], said["price_usd"]) == (["submit"], "0.1")
    assert said["limits"] == seen.json()["limits"] | body["limits"]
    assert changed["ETag"] == admin.get(TOOL)["ETag"] != seen["ETag"]
    with tenant_transaction(world.id):
        assert AuditEntry.objects.get(verb="tool.change").reason == "It was wrong"


@proves("R-API-2", part="If-Match on tools")
def test_a_patch_of_what_was_changed_meanwhile_is_412(admin: Program) -> None:
    tag = admin.get(TOOL)["ETag"]
    assert admin.send("patch", TOOL, {"price_usd": "1"}, headers={"If-Match": tag}).status_code == 200
    late = admin.send("patch", TOOL, {"price_usd": "2"}, headers={"If-Match": tag})
    assert refusal(late) == (412, "stale")
    assert admin.get(TOOL).json()["price_usd"] == "1"
    for nonsense in ('W/"x"', '"a", "b"', "x"):
        assert refusal(admin.send("patch", TOOL, {}, headers={"If-Match": nonsense}))[0] == 412


def test_what_is_known_by_its_tag_is_not_sent_again(admin: Program) -> None:
    for path in (TOOL, "/ceilings"):
        seen = admin.get(path)
        assert admin.get(path, headers={"If-None-Match": seen["ETag"]}).status_code == 304


@proves("R-API-1", part="an ETag changes with all that is shown")
def test_a_stopped_tool_is_not_as_it_was_and_is_changed_as_looked_at(admin: Program, world: World) -> None:
    before = admin.get(TOOL)
    stop_everything("tool", tenant_id=world.id, target="calculator.evaluate", by=None, reason="Now")
    after = admin.get(TOOL, headers={"If-None-Match": before["ETag"]})
    assert (after.status_code, before.json()["stopped"], after.json()["stopped"]) == (200, False, True)
    changed = admin.send("patch", TOOL, {"price_usd": "1"}, headers={"If-Match": before["ETag"]})
    assert changed.status_code == 200
    # A reader of a release before was given the version alone.
    bare = changed["ETag"].partition("~")[0] + '"'
    assert admin.send("patch", TOOL, {"price_usd": "2"}, headers={"If-Match": bare}).status_code == 200


@proves("R-API-1", part="an ETag changes with what is spent")
def test_ceilings_of_which_more_was_spent_are_not_as_they_were(admin: Program, world: World) -> None:
    before = admin.get("/ceilings")
    world.drive(world.submit("tool-loop", "How much is (12 + 30) * 2?"))
    after = admin.get("/ceilings", headers={"If-None-Match": before["ETag"]})
    assert (after.status_code, after.json()["day"] == before.json()["day"]) == (200, False)
    body = {"per_run_usd": "0.5", "daily_usd": "20", "monthly_usd": "1000"}
    assert admin.send("put", "/ceilings", body, headers={"If-Match": before["ETag"]}).status_code == 200


@proves("R-TOOL-4", part="disabling by API")
def test_a_disabled_tool_is_shown_as_such_and_can_come_back(admin: Program) -> None:
    off = admin.send("patch", TOOL, {"enabled": False}).json()
    assert (off["enabled"], off["stopped"]) == (False, True)
    listed = {row["name"]: row["enabled"] for row in admin.get("/tools").json()["results"]}
    assert listed["calculator.evaluate"] is False
    on = admin.send("patch", TOOL, {"enabled": True}).json()
    assert (on["enabled"], on["stopped"]) == (True, False)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"risk_class": "harmless"}, "/risk_class"),
        ({"approval_policy": "sometimes"}, "/approval_policy"),
        ({"scopes": ["root"]}, "/scopes/0"),
        ({"price_usd": -1}, "/price_usd"),
        ({"price_usd": 0.5}, "/price_usd"),
        ({"limits": {"timeout_ms": 0}}, "/limits/timeout_ms"),
        ({"limits": {"depth": 1}}, "/limits/depth"),
        ({"description": "Mine"}, "/description"),
        ({"enabled": "no"}, "/enabled"),
        ({"risk_class": "network", "approval_policy": "never"}, "/approval"),
    ],
)
def test_a_wrong_change_names_its_field_and_changes_nothing(
    admin: Program, body: dict[str, object], pointer: str
) -> None:
    before = admin.get(TOOL).json()
    answer = admin.send("patch", TOOL, body)
    assert refusal(answer) == (400, "invalid-input")
    assert pointers(answer) == [pointer]
    assert admin.get(TOOL).json() == before


@proves("R-API-2", part="POST /workflows")
@proves("R-GRAPH-4", part="publishing by API")
def test_a_workflow_is_published_by_its_document_or_its_text(admin: Program) -> None:
    text = FILE.read_text().replace("title: Tool loop", "title: Mine")
    made = admin.post("/workflows", {"yaml": text, "reason": "Better"})
    assert (made.status_code, made.json()["version"], made.json()["title"]) == (201, 2, "Mine")
    again = admin.post("/workflows", {"document": made.json()["document"]})
    assert (again.status_code, again.json()["digest"]) == (200, made.json()["digest"])
    rows = admin.get("/workflows/tool-loop/versions").json()["results"]
    assert [(row["version"], row["retired_at"]) for row in rows] == [(2, None), (1, None)]


@proves("R-API-2", part="422 with every fault")
def test_a_faulty_workflow_is_422_with_every_fault_and_changes_nothing(admin: Program) -> None:
    text = (
        FILE.read_text()
        .replace("kind: verify_output}", "kind: guess}")
        .replace("target: end-missing}", "target: nowhere}")
    )
    answer = admin.post("/workflows", {"yaml": text})
    assert refusal(answer) == (422, "compile-failed")
    faults = answer.json()["data"]["faults"]
    assert {2, 5} <= {fault["number"] for fault in faults}
    assert all(set(fault) == {"number", "rule", "node", "edge", "sentence", "line"} for fault in faults)
    assert all(fault["line"] for fault in faults if fault["node"])
    assert admin.get("/workflows/tool-loop").json()["version"] == 1


@pytest.mark.parametrize("body", [{}, {"yaml": "a: 1", "document": {}}, {"nodes": []}, {"yaml": 5}])
def test_a_body_that_is_no_workflow_is_400(admin: Program, body: dict[str, object]) -> None:
    assert refusal(admin.post("/workflows", body)) == (400, "invalid-input")


@proves("R-GRAPH-4", part="retiring by API")
def test_a_version_is_retired_once_and_is_no_longer_offered(admin: Program) -> None:
    path = "/workflows/tool-loop/versions/1/retire"
    first = admin.post(path, {"reason": "It stalls"})
    assert first.status_code == 200
    assert first.json()["retired_at"] == admin.post(path).json()["retired_at"] is not None
    assert refusal(admin.get("/workflows/tool-loop")) == (404, "not-found")
    for wrong in ("2", "x", "-1", "9" * 30):
        assert refusal(admin.post(f"/workflows/tool-loop/versions/{wrong}/retire"))[0] == 404


@proves("R-API-2", part="GET, PUT /ceilings")
@proves("R-SEC-6", part="ceilings by API")
def test_ceilings_are_read_and_set_as_one(admin: Program, world: World) -> None:
    seen = admin.get("/ceilings")
    assert seen.json()["daily_usd"] == "100"
    assert seen.json()["day"] | {"starts_at": "", "ends_at": ""} == {
        "starts_at": "", "ends_at": "", "spent_usd": "0", "reserved_usd": "0", "left_usd": "100",
    }  # fmt: skip
    body = {"per_run_usd": "0.5", "daily_usd": 20, "monthly_usd": "900.50", "reason": "A quiet month"}
    done = admin.send("put", "/ceilings", body, headers={"If-Match": seen["ETag"]})
    assert done.status_code == 200
    assert (done.json()["per_run_usd"], done.json()["daily_usd"], done.json()["monthly_usd"]) == (
        "0.5",
        "20",
        "900.5",
    )
    assert (done.json()["day"]["left_usd"], done.json()["month"]["left_usd"]) == ("20", "900.5")
    assert refusal(admin.send("put", "/ceilings", body, headers={"If-Match": seen["ETag"]})) == (412, "stale")
    with tenant_transaction(world.id):
        entry = AuditEntry.objects.get(verb="set_ceilings")
    assert (entry.reason, entry.before["daily_usd"], entry.after["daily_usd"]) == (
        "A quiet month",
        "100",
        "20",
    )


@pytest.mark.parametrize(
    ("change", "pointer"),
    [({"daily_usd": "-1"}, "/daily_usd"), ({"daily_usd": 1.5}, "/daily_usd"), ({"per_tool": 1}, "/per_tool")],
)
def test_wrong_ceilings_change_nothing(admin: Program, change: dict[str, object], pointer: str) -> None:
    before = admin.get("/ceilings").json()
    answer = admin.send("put", "/ceilings", BODIES["api/v1/ceilings"] | change)
    assert refusal(answer) == (400, "invalid-input")
    assert pointer in pointers(answer)
    assert admin.get("/ceilings").json() == before
    missing = admin.send("put", "/ceilings", {"daily_usd": "1"})
    assert pointers(missing) == ["/per_run_usd", "/monthly_usd"]
