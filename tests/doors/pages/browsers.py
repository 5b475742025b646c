"""Browsers without script, and what stands on a page."""

import html
import re
from typing import Any

from django.test import Client

from tests.factories.tenancy import Somebody


def browser(who: Somebody) -> Client:
    """A browser in which somebody is signed in."""
    client = Client(headers={"accept": "text/html"})
    client.force_login(who.person)
    return client


def words(answer: Any) -> str:
    """What a page says: its text with single blanks, without the words of scripts and hidden fields."""
    text = re.sub(r"<[^>]*>", " ", answer.content.decode())
    return re.sub(r"\s+", " ", html.unescape(text))
