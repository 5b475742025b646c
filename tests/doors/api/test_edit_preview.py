"""How many people an edit would need, asked before anybody decides."""

from tenancy.core.roles import Role
from tests.conftest import House
from tests.doors.api.program import program, refusal
from tests.factories.approvals import ASKED, open_desk
from tests.proves import proves


@proves("R-APPR-5", part="what an edit would need, before it is decided")
def test_a_program_asks_what_an_edit_would_need_and_nothing_is_said(house: House) -> None:
    with open_desk(house) as desk:
        request, reviewer = desk.ask(), program(desk.id, Role.REVIEWER)
        where = f"/approvals/{request.id}/edit-preview"
        small, large = ({**ASKED, "amount": amount} for amount in ("80.00", "300.00"))
        one = reviewer.post(where, {"arguments": small})
        assert (one.status_code, one.json()["quorum"], one.json()["missing"]) == (200, 1, 1)
        two = reviewer.post(where, {"arguments": large}).json()
        assert (two["quorum"], two["agreed"], two["missing"], two["amount"]) == (2, 0, 2, "300.00")
        assert desk.said(request) == []
        desk.say(request, desk.house.people.approver, "edit", arguments=large)
        assert reviewer.post(where, {"arguments": large}).json()["missing"] == 1
        assert refusal(reviewer.post(where, {"arguments": dict(ASKED)})) == (422, "decision-invalid")
        desk.say(request, desk.house.people.second_approver, "reject")
        assert refusal(reviewer.post(where, {"arguments": small})) == (409, "already-decided")
