"""POST /tasks."""

from typing import Any

from drf_spectacular.utils import extend_schema
from pydantic import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from orchestrator.actions.submit import Submission, Submitter, submit_task
from orchestrator.api.serializers import TaskAccepted, TaskBody
from orchestrator.api.shown import links
from orchestrator.core.errors import GoalInvalid
from orchestrator.core.goal import Goal
from tenancy.core.roles import Scope
from tenancy.doors import caller, post_once
from tenancy.idempotency import Answer
from tenancy.permissions import requires


class Tasks(APIView):
    """Submit a task; it runs as soon as a worker is free."""

    permission_classes = [requires(Scope.SUBMIT)]

    @extend_schema(request=TaskBody, responses={202: TaskAccepted})
    def post(self, request: Request) -> Response:
        """Accept a task: 202 with its first run."""
        body = TaskBody(data=request.data)
        body.is_valid(raise_exception=True)
        return post_once(request, lambda: self._submit(request, body.validated_data))

    def _submit(self, request: Request, asked: dict[str, Any]) -> Answer:
        who = caller(request)
        submission = Submission(
            workflow=asked["workflow"], goal=_goal(asked), boundary=asked.get("boundary"),
            budget=asked.get("budget", {}), metadata=asked.get("metadata", {}),
            idempotency_key=request.headers.get("Idempotency-Key", ""),
        )  # fmt: skip
        submitter = Submitter(principal=who.principal, owner=who.owner, scopes=who.scopes)
        accepted = submit_task(who.tenant, submitter, submission)
        run = {"id": str(accepted.run), "status": accepted.status}
        return Answer(202, {"id": str(accepted.task), "run": run, "links": links(accepted.run)})


def _goal(asked: dict[str, Any]) -> Goal:
    """The goal object. Raises GoalInvalid with the field that is wrong."""
    try:
        return Goal.model_validate({**asked["goal"], "mode": asked.get("mode", "async")})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = "/".join(["", "goal", *map(str, first["loc"])])
        raise GoalInvalid(detail=first["msg"], pointer=where) from None
