"""How two people of a tenant can be related, made for a test: who did it or asked for it, and who decides."""

from collections.abc import Callable
from dataclasses import dataclass

import psycopg

from tenancy.actions import NewKey, add_member, create_key
from tenancy.actions.keys import rotate_key
from tenancy.actions.relations import record_tie
from tenancy.core.relations import TieKind
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tests.factories.approvals import Desk
from tests.factories.tenancy import Somebody, make_somebody


@dataclass(frozen=True)
class Pair:
    """Who submitted, who decides and by which key, and who had the run begun again."""

    submitter: Somebody
    decider: Somebody
    key: NewKey
    retrier: Somebody | None = None


def plain(desk: Desk) -> Pair:
    """A submitter and a reviewer who have nothing to do with each other."""
    who = make_somebody(desk.house.tenant, Role.REVIEWER)
    return Pair(desk.house.people.submitter, who, create_key(desk.id, Role.REVIEWER, owner=who.person))


def tie(desk: Desk, kind: TieKind, by: Somebody, whose: Somebody) -> None:
    """One did this to the other."""
    with tenant_transaction(desk.id):
        record_tie(desk.id, kind, whose.person.id, by=by.id)


def day_over(superuser: psycopg.Connection, desk: Desk) -> None:
    """As if a day had gone by since."""
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute(
            "UPDATE tenancy_persontie SET at = at - interval '24 hours' WHERE tenant_id = %s", [desk.id]
        )


def none(desk: Desk, _: psycopg.Connection) -> Pair:
    return plain(desk)


def gave_role(desk: Desk, _: psycopg.Connection) -> Pair:
    pair = plain(desk)
    add_member(desk.id, pair.submitter.person, Role.CLIENT, by=pair.decider.id)
    return pair


def received_role(desk: Desk, _: psycopg.Connection) -> Pair:
    pair = plain(desk)
    add_member(desk.id, pair.decider.person, Role.CLIENT, by=pair.submitter.id)
    return pair


def through_third(desk: Desk, _: psycopg.Connection) -> Pair:
    pair, third = plain(desk), desk.house.people.admin
    add_member(desk.id, pair.decider.person, Role.CLIENT, by=third.id)
    add_member(desk.id, pair.submitter.person, Role.CLIENT, by=third.id)
    return pair


def saw_link(desk: Desk, superuser: psycopg.Connection) -> Pair:
    pair = plain(desk)
    tie(desk, TieKind.LINK_SEEN, pair.submitter, pair.decider)
    day_over(superuser, desk)
    return pair


def link_was_seen(desk: Desk, superuser: psycopg.Connection) -> Pair:
    pair = plain(desk)
    tie(desk, TieKind.LINK_SEEN, pair.decider, pair.submitter)
    day_over(superuser, desk)
    return pair


def confirmed_by_a_related_one(desk: Desk, superuser: psycopg.Connection) -> Pair:
    pair = saw_link(desk, superuser)
    add_member(desk.id, desk.house.people.admin.person, Role.CLIENT, by=pair.submitter.id)
    tie(desk, TieKind.CONFIRMED, desk.house.people.admin, pair.decider)
    return pair


def confirmed(desk: Desk, superuser: psycopg.Connection) -> Pair:
    pair = saw_link(desk, superuser)
    tie(desk, TieKind.CONFIRMED, desk.house.people.admin, pair.decider)
    return pair


def twenty_four_hours_over(desk: Desk, superuser: psycopg.Connection) -> Pair:
    pair = through_third(desk, superuser)
    day_over(superuser, desk)
    return pair


def made_the_key(desk: Desk, _: psycopg.Connection) -> Pair:
    pair = plain(desk)
    return Pair(of_key(desk, by=pair.decider), pair.decider, pair.key)


def made_the_key_for_another(desk: Desk, _: psycopg.Connection) -> Pair:
    pair = plain(desk)
    key = of_key(desk, by=pair.decider, owner=pair.submitter)
    return Pair(key, pair.decider, pair.key)


def related_to_the_maker(desk: Desk, _: psycopg.Connection) -> Pair:
    pair = plain(desk)
    add_member(desk.id, pair.decider.person, Role.CLIENT, by=desk.house.people.admin.id)
    return Pair(of_key(desk, by=desk.house.people.admin), pair.decider, pair.key)


def key_of_the_command(desk: Desk, _: psycopg.Connection) -> Pair:
    pair = plain(desk)
    return Pair(of_key(desk, by=None), pair.decider, pair.key)


def rotated_the_key(desk: Desk, _: psycopg.Connection) -> Pair:
    pair = plain(desk)
    made = create_key(desk.id, Role.CLIENT, owner=pair.submitter.person)
    rotate_key(desk.id, made.key.id, by=pair.decider.id)
    key = made.key.principal
    return Pair(Somebody(person=key.owner, principal=key), pair.decider, pair.key)


def had_it_begun_again(desk: Desk, _: psycopg.Connection) -> Pair:
    pair = plain(desk)
    return Pair(pair.submitter, pair.decider, pair.key, retrier=pair.decider)


def related_to_the_retrier(desk: Desk, _: psycopg.Connection) -> Pair:
    pair, retrier = plain(desk), desk.house.people.operator
    add_member(desk.id, retrier.person, Role.CLIENT, by=pair.decider.id)
    return Pair(pair.submitter, pair.decider, pair.key, retrier=retrier)


def made_the_key_that_had_it_begun_again(desk: Desk, _: psycopg.Connection) -> Pair:
    pair = plain(desk)
    return Pair(pair.submitter, pair.decider, pair.key, retrier=of_key(desk, by=pair.decider))


def unrelated_to_the_retrier(desk: Desk, _: psycopg.Connection) -> Pair:
    pair = plain(desk)
    return Pair(pair.submitter, pair.decider, pair.key, retrier=desk.house.people.operator)


def of_key(desk: Desk, *, by: Somebody | None, owner: Somebody | None = None) -> Somebody:
    """A key that submits, as somebody."""
    made = create_key(
        desk.id, Role.CLIENT, owner=owner.person if owner else None, by=by.id if by else None
    ).key.principal
    return Somebody(person=made.owner, principal=made)


Making = Callable[[Desk, psycopg.Connection], Pair]
PAIRS: dict[str, tuple[Making, str]] = {
    "none": (none, ""),
    "gave a role": (gave_role, "related"),
    "received a role": (received_role, "related"),
    "through a third": (through_third, "related"),
    "saw the link": (saw_link, "related"),
    "link was seen": (link_was_seen, "related"),
    "confirmed by a related one": (confirmed_by_a_related_one, "related"),
    "confirmed": (confirmed, ""),
    "twenty-four hours over": (twenty_four_hours_over, ""),
    "made the key": (made_the_key, "own_run"),
    "made the key for another": (made_the_key_for_another, "own_run"),
    "related to the maker": (related_to_the_maker, "related"),
    "key of the command": (key_of_the_command, ""),
    "rotated the key": (rotated_the_key, "own_run"),
    "had it begun again": (had_it_begun_again, "own_run"),
    "related to the retrier": (related_to_the_retrier, "related"),
    "made the retrier's key": (made_the_key_that_had_it_begun_again, "own_run"),
    "unrelated to the retrier": (unrelated_to_the_retrier, ""),
}


def is_retried(relation: str) -> bool:
    """True if the pair has somebody who had a run begun again, so that it says nothing of what is no run."""
    return "again" in relation or "retrier" in relation
