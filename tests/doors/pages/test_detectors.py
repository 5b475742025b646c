"""What safety detectors mean in a house, set on the policy page (R-TOOL-24)."""

from orchestrator.queries.policies import policy_now
from tenancy.context import tenant
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
    with tenant(world.id):
        assert policy_now().policy.safety == {"result:injection": "stop"}
    assert "closes the run" in text(admin.get("/policy"))
    admin.post("/policy", {"detector": "result:injection", "severity": "off", "reason": "Too loud"})
    with tenant(world.id):
        assert policy_now().policy.safety == {"result:injection": "stop"}
    assert "result:injection" in text(admin.get("/policy"))
    assert admin.post("/policy", {"detector": "x:y", "severity": "off", "reason": "?"}).status_code == 422
