"""The packet is bytes: what is shown is what is hashed, and all of it."""

import os
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from approvals.core.packet import Packet, Proposal, packet_bytes, packet_digest, read_packet
from tests.factories.approvals import NOON, REFUND, make_packet
from tests.proves import proves
from tests.servers import ROOT

OTHER: dict[str, Any] = {
    "request": "r2",
    "run": "r3",
    "kind": "reconciliation",
    "goal": "Refund A-2",
    "step": "other",
    "call": "c2",
    "tool": REFUND.model_copy(update={"version": 2}),
    "arguments": "{}",
    "arguments_digest": "e" * 64,
    "previous_arguments": "{}",
    "provenance": (),
    "why": "So.",
    "evidence": (),
    "costs": {"so_far": Decimal(1), "this": Decimal(0), "left": None},
    "confidence": None,
    "scores": {},
    "candidates": ("a",),
    "recommended_action": "Reject.",
    "who": {"roles": (), "queue": "q", "quorum": 2},
    "trigger": "other",
    "boundary": "c" * 64,
    "action_digest": "f" * 64,
    "expires_at": NOON.replace(hour=13),
    "proposal": {"number": 1, "most": 3, "returnable": True},
}


def test_every_field_is_tried() -> None:
    assert {*OTHER, "v"} == set(Packet.model_fields)


@proves("A1", part="the packet")
@proves("R-APPR-2", part="hashed")
@pytest.mark.parametrize("name", OTHER)
def test_any_change_is_another_packet(name: str) -> None:
    changed = make_packet(**{name: OTHER[name]})
    assert packet_digest(packet_bytes(changed)) != packet_digest(packet_bytes(make_packet()))


@proves("R-APPR-2", part="frozen")
def test_a_packet_can_be_read_back_and_not_be_changed() -> None:
    packet = make_packet()
    assert Packet.model_validate_json(packet_bytes(packet)) == packet
    with pytest.raises(ValidationError):
        packet.why = "Because."  # type: ignore[misc]


def test_a_packet_keeps_the_exact_arguments_as_text() -> None:
    assert (
        '"arguments":"{\\"amount\\":\\"150.00\\",\\"order_id\\":\\"A-1\\"}"'
        in packet_bytes(make_packet()).decode()
    )


def test_a_packet_without_proposals_keeps_the_bytes_of_before_there_were_any() -> None:
    assert b"proposal" not in packet_bytes(make_packet())
    told = Proposal(number=2, most=3, returnable=True, previous="r1", words=("Why?",), answer="So.")
    assert read_packet(packet_bytes(make_packet(proposal=told))).proposal == told


def test_the_bytes_do_not_depend_on_the_process() -> None:
    code = (
        "import sys\n"
        "from approvals.core.packet import Packet, packet_bytes, packet_digest\n"
        "packet = Packet.model_validate_json(sys.stdin.read())\n"
        "print(packet_digest(packet_bytes(packet)))"
    )
    packet = make_packet(scores={"b": Decimal(1), "a": Decimal(2)})
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            input=packet.model_dump_json(),
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert digests == {packet_digest(packet_bytes(packet))}
