"""The text of a reply while it is written: how much of it is told, and how often."""

import asyncio

import pytest

from orchestrator.llm.gateways import live_text as utterance
from orchestrator.llm.gateways.live_text import MOST_TEXT, PACE_SECONDS, WINDOW, LiveReply
from tests.doors.gateways.effects import PATIENCE, Watching


async def test_nothing_is_told_once_the_reply_is_there() -> None:
    watching = Watching()
    utterance = LiveReply(watching)
    utterance.add("Hello there")
    await asyncio.sleep(PACE_SECONDS / 2)
    utterance.add(", all of you")
    utterance.close()
    utterance.add(" and more")
    await asyncio.sleep(2 * PACE_SECONDS)
    assert watching.told == [(0, "Hello ")]


async def test_a_piece_of_any_length_is_told_within_bounds() -> None:
    watching = Watching()
    written = LiveReply(watching)
    written.add("words " * MOST_TEXT)
    async with asyncio.timeout(PATIENCE):
        while not watching.told:  # noqa: ASYNC110 - told by a timer of the loop, with no event
            await asyncio.sleep(PACE_SECONDS)
    written.close()
    at, text = watching.told[0]
    assert MOST_TEXT - WINDOW < at + len(text) <= MOST_TEXT


async def test_whoever_was_told_much_is_told_the_rest_more_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utterance, "MOST_BYTES", 1)
    monkeypatch.setattr(utterance, "AGAIN_SECONDS", PACE_SECONDS * 2)
    watching, began = Watching(), asyncio.get_running_loop().time()
    written = LiveReply(watching)
    async with asyncio.timeout(PATIENCE):
        for number in range(2):
            written.add("more and more ")
            while len(watching.told) == number:  # noqa: ASYNC110 - as above
                await asyncio.sleep(PACE_SECONDS / 10)
    written.close()
    assert [text for _, text in watching.told] == ["more and more ", "more and more more and more "]
    assert asyncio.get_running_loop().time() - began >= PACE_SECONDS * 2
