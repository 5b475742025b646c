"""POST /tasks."""

from typing import Any

from drf_spectacular.utils import extend_schema
from pydantic import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from orchestrator.api.presenters import build_run_links
from orchestrator.api.serializers import TaskAccepted, TaskBody
from orchestrator.core.common.errors import GoalInvalid
from orchestrator.core.common.goal import Goal
from orchestrator.knowledge.api.file_serializers import files_of
from orchestrator.runs.actions.submit import Submission, Submitter, submit_task
from tenancy.core.roles import Scope
from tenancy.rest.api_helpers import get_caller, post_once
from tenancy.rest.api_view import APIView
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import validate_input


class Tasks(APIView):
    """Submit a task; it runs as soon as a worker is free."""

    permission_classes = [make_scope_permission(Scope.SUBMIT)]

    @extend_schema(operation_id="submit_task", request=TaskBody, responses={202: TaskAccepted})
    def post(self, request: Request) -> Response:
        """Accept a task: 202 with its first run. `workflow` names a published workflow, `goal.objective` says
        in plain words what is to be done, `goal.inputs` holds what the workflow needs. The run starts as soon
        as a worker is free; `links` in the answer say where to follow it."""
        body = validate_input(TaskBody, request.data)
        goal = _parse_goal(body)
        return post_once(request, lambda: self._submit(request, body, goal))

    def _submit(self, request: Request, body: dict[str, Any], goal: Goal) -> StoredResponse:
        who = get_caller(request)
        submission = Submission(
            workflow=body["workflow"], goal=goal, boundary=body.get("boundary"),
            budget=body.get("budget", {}), metadata=body.get("metadata", {}),
            idempotency_key=request.headers.get("Idempotency-Key", ""), files=files_of(body.get("files", [])),
        )  # fmt: skip
        submitter = Submitter(principal=who.principal, owner=who.owner, scopes=who.scopes)
        accepted = submit_task(who.tenant, submitter, submission)
        run = {"id": str(accepted.run), "status": accepted.status}
        return StoredResponse(
            202, {"id": str(accepted.task), "run": run, "links": build_run_links(accepted.run)}
        )


def _parse_goal(body: dict[str, Any]) -> Goal:
    """The goal object. Raises GoalInvalid with the field that is wrong."""
    try:
        return Goal.model_validate({**body["goal"], "mode": body.get("mode", "async")})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = "/".join(["", "goal", *map(str, first["loc"])])
        raise GoalInvalid(detail=first["msg"], pointer=where) from None
