"""What safety detectors mean in a house, set on the policy page (R-TOOL-24)."""

from orchestrator.policies.queries.policies import policy_now
from tenancy.db.tenant_context import tenant_transaction
from tests.doors.pages.people import at, text
from tests.doors.pages.people import world as world
from tests.factories.world import World
from tests.proves import proves


@proves("R-TOOL-24", part="set on the page, weakened by two")
def test_what_a_finding_means_is_set_on_the_page_and_survives_other_changes(world: World) -> None:
    admin = at(world.people.admin)
    said = {"detector": "result:injection", "severity": "stop", "reason": "Close it"}
    assert admin.post("/policy", said).status_code == 302
    assert admin.post("/policy", {"after_untrusted": "deny", "reason": "Stricter"}).status_code == 302
    with tenant_transaction(world.id):
        assert policy_now().policy.safety == {"result:injection": "stop"}
    assert "closes the run" in text(admin.get("/policy"))
    admin.post("/policy", {"detector": "result:injection", "severity": "off", "reason": "Too loud"})
    with tenant_transaction(world.id):
        assert policy_now().policy.safety == {"result:injection": "stop"}
    assert "result:injection" in text(admin.get("/policy"))
    assert admin.post("/policy", {"detector": "x:y", "severity": "off", "reason": "?"}).status_code == 422


@proves("R-TOOL-24", part="what is off is said, and switched on at once")
def test_the_page_says_which_detector_is_off_and_switches_it_on(world: World) -> None:
    admin = at(world.people.admin)
    page = text(admin.get("/policy"))
    assert 'id="off-personal"' in page
    assert "To switch it on" in page
    assert "An administrator can switch it on" in text(at(world.people.operator).get("/policy"))
    for place in ("input", "result"):
        said = {"detector": f"{place}:personal", "severity": "note", "reason": "We are told of it"}
        assert admin.post("/policy", said).status_code == 302
    assert 'id="off-personal"' not in text(admin.get("/policy"))
    run = world.submit("tool-loop", "How much is (12 + 30) * 2? Ask zoe@example.org.")
    world.drive(run)
    (found,) = [one for one in world.said(run, "safety_found") if one["place"] == "input"]
    assert (found["detector"], found["rule"], found["severity"]) == ("personal", "e_mail", "note")
