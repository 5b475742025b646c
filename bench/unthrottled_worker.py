"""A worker whose runs never wait for those of other tenants: what `bench fairness` compares with.

`python -m bench.unthrottled_worker` takes the arguments of `python -m celery`.
"""

from unittest import mock

from celery.__main__ import main

from orchestrator.worker.commit_throttle import CommitThrottle

if __name__ == "__main__":
    with (
        mock.patch.object(CommitThrottle, "_has_turn", return_value=True),
        mock.patch.object(CommitThrottle, "give_way"),
    ):
        main()
