"""`python -m bench.faults`: break the running application under load, and count.

Starts web, worker, scheduler, embedded PostgreSQL and Valkey and the demo company as `make up` does, on a
port and in a folder of its own, and a second worker beside them. Submits runs that change things at a demo
company and at a tool server, both the harness's own: no fault touches them, and their logs are the judge.
Injects each fault while runs are under way. Ends with status 1 where an effect was lost or doubled, a run is
stuck or came to no result, or a trace does not verify. What is drawn by chance follows from the seed; the
machine decides at which moment of a run a fault meets it.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from random import Random, randrange
from tempfile import TemporaryDirectory

import django

from bench.faults.fault_injection import FAULTS, Target
from bench.faults.processes import Database, RunningApplication, SecondWorker, running
from bench.faults.step_model import Job, StepModel
from bench.faults.tool_service import ToolService
from bench.servers import parent
from bench.thresholds import VERDICTS
from tests.doubles.company import Company

THREADS = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the harness; the status to end with."""
    given = _given(arguments)
    print(f"seed {given.seed}: {given.runs} runs of {given.effects} changes each", flush=True)
    with TemporaryDirectory(prefix="interlock-faults-", dir=parent()) as name:
        folder = Path(name)
        folder.chmod(0o711)
        jobs: dict[str, Job] = {}
        with (
            _services(folder) as (company, service),
            StepModel(jobs) as model,
            running(folder / "data", _settings(model)) as application,
        ):
            _experiment(given, application, company, service, model, jobs)
    return VERDICTS.status


def _given(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.faults")
    parser.add_argument("--seed", type=int, default=randrange(10**6))
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--effects", type=int, default=5)
    parser.add_argument(
        "--fault", action="append", choices=tuple(FAULTS), help="this one alone; may be given several times"
    )
    parser.add_argument("--load-only", action="store_true", help="do not measure how runs change hands")
    parser.add_argument(
        "--sabotage", choices=("twice", "never"),
        help="let the tool service perform one step so: the harness has to notice",
    )  # fmt: skip
    return parser.parse_args(arguments)


@contextmanager
def _services(folder: Path) -> Iterator[tuple[Company, ToolService]]:
    """Run the two services whose logs are the judge."""
    company, service = Company(folder / "company"), ToolService(folder / "service")
    company.start()
    try:
        yield company, service
    finally:
        service.stop()
        company.stop()
        company.http.close()


def _settings(model: StepModel) -> dict[str, str]:
    return {
        "OPENAI_BASE_URL": model.url, "INTERLOCK_MODEL_PRICE": "0", "INTERLOCK_MODEL_AT_ONCE": "100",
        "INTERLOCK_WORKER_THREADS": str(THREADS),
    }  # fmt: skip


def _experiment(
    given: argparse.Namespace,
    application: RunningApplication,
    company: Company,
    service: ToolService,
    model: StepModel,
    jobs: dict[str, Job],
) -> None:
    """Point Django at the running application's database, and begin."""
    os.environ |= application.noted() | {
        "INTERLOCK_DATA_DIR": str(application.data), "INTERLOCK_POOL": "0", "INTERLOCK_LOG_LEVEL": "ERROR",
        "DJANGO_SETTINGS_MODULE": "config.settings",
    }  # fmt: skip
    os.environ.pop("DATABASE_OWNER_URL", None)
    django.setup()
    load = import_module("bench.faults.workload").Workload(
        url=application.url, company=company, service=service, effects=given.effects,
        chance=Random(given.seed), jobs=jobs,
    )  # fmt: skip
    target = Target(
        application=application, second=SecondWorker(application, threads=THREADS),
        database=Database(application.data),
    )  # fmt: skip
    try:
        target.second.start()
        import_module("bench.faults.experiment").run_experiment(given, target, load, model)
    finally:
        load.end_reviewer()
        target.second.end()
        target.database.close()


if __name__ == "__main__":
    sys.exit(main())
