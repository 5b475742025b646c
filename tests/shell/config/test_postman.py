"""Celery is a postman: it carries JSON, keeps nothing, and never holds anybody up."""

from __future__ import annotations

import time

import kombu.exceptions
import pytest
from celery import Celery
from celery.contrib.testing.worker import start_worker
from celery.signals import worker_init, worker_ready, worker_shutdown, worker_shutting_down
from django.conf import settings
from kombu.exceptions import ContentDisallowed
from kombu.serialization import loads

from config.celery import _give_way, app, beat_schedule
from config.devstack.embedded import EmbeddedValkey
from tests.proves import proves


def postman(url: str) -> Celery:
    """A Celery with the house's own settings and another broker."""
    found = Celery("interlock-test", set_as_current=False)
    found.config_from_object("django.conf:settings", namespace="CELERY")
    found.conf.update(broker_url=url.replace("unix://", "redis+socket://", 1))
    return found


def test_the_postman_keeps_nothing_and_speaks_json() -> None:
    conf = app.conf
    assert not conf.result_backend
    assert conf.task_ignore_result is True
    assert (conf.accept_content, conf.task_serializer) == (["json"], "json")
    assert (conf.task_acks_late, conf.worker_prefetch_multiplier) == (True, 1)


@proves("D3", part="posting does not wait")
def test_posting_to_a_dead_broker_fails_at_once() -> None:
    begun = time.monotonic()
    with pytest.raises(kombu.exceptions.OperationalError):
        postman("unix:///nonexistent/valkey.sock").send_task("nobody.answers", kwargs={})
    assert time.monotonic() - begun < 30


def test_a_pickle_is_not_opened() -> None:
    with pytest.raises(ContentDisallowed):
        loads(b"x", "application/x-python-serialize", "binary", accept=app.conf.accept_content)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that are nothing but Celery's: what ours refuse, start and stop is left out."""
    for signal in (worker_init, worker_ready, worker_shutting_down, worker_shutdown):
        monkeypatch.setattr(signal, "receivers", [])


@pytest.mark.usefixtures("bare")
def test_a_message_goes_through_valkey_to_a_worker(valkey: EmbeddedValkey) -> None:
    office = postman(valkey.url)
    heard: list[str] = []

    @office.task(name="tests.hear", shared=False)
    def hear(*, word: str) -> None:
        heard.append(word)

    with start_worker(office, perform_ping_check=False, pool="solo", shutdown_timeout=20):
        hear.apply_async(kwargs={"word": "wake"})
        deadline = time.monotonic() + 20
        while not heard and time.monotonic() < deadline:
            time.sleep(0.02)
    assert heard == ["wake"]


def test_every_beat_names_a_known_job() -> None:
    app.loader.import_default_modules()
    assert sorted(entry["task"] for entry in beat_schedule().values() if entry["task"] not in app.tasks) == []


@pytest.mark.parametrize(("own", "then"), [(0, settings.INTERLOCK_WORKER_NICENESS), (19, 19)])
def test_a_worker_stands_behind_the_requests_of_people(
    monkeypatch: pytest.MonkeyPatch, own: int, then: int
) -> None:
    said: list[int] = []
    monkeypatch.setattr("config.celery.os.getpriority", lambda which, who: own)
    monkeypatch.setattr("config.celery.os.setpriority", lambda which, who, value: said.append(value))
    _give_way()
    assert said == [then]
    assert then > 0
