"""The one table from an error's code to what its reader does next. A test refuses a code that is missing."""

from __future__ import annotations

NEW_KEY = "Ask an administrator for a key: page API keys (/tenant/keys), or manage.py key create."
READ_AGAIN = "Read it again with GET, then decide what still fits."
LOOK_AT_RUN = "Read the run: GET /api/v1/runs/{id} says its status and what may be done with it."
MEND = "Mend what `detail` and `errors` name, and send it again."
ADMIN = "Ask an administrator of the tenant; the page People (/tenant/people) shows who that is."
OTHER_PERSON = "Let another person do it, one who is neither the submitter nor related to them."
LATER = (
    "Send it again after the seconds of the header Retry-After; the same Idempotency-Key keeps it one"
    " request."
)

REMEDIES: dict[str, str] = {
    # config, and what the framework refuses
    "bad-request": "Compare the request with the document at /api/schema, and send it again.",
    "parse-error": "Send well-formed JSON, each member's name once.",
    "not-json": "Send well-formed JSON in UTF-8.",
    "json-not-acceptable": MEND,
    "member-repeated": "Send each member's name once.",
    "cursor-invalid": "Leave the cursor out for the first page; follow the address in `next` from there.",
    "limit-invalid": "Send a limit within the bounds that `detail` names.",
    "idempotency-key-invalid": "Send 1 to 255 printable ASCII characters, a fresh UUID for instance.",
    "not-authenticated": NEW_KEY,
    "authentication-failed": NEW_KEY,
    "permission-denied": ADMIN,
    "method-not-allowed": "Take a method that the header Allow lists.",
    "not-acceptable": "Leave the header Accept out, or accept application/json.",
    "unsupported-media-type": "Send the header Content-Type: application/json with a JSON body.",
    "throttled": LATER,
    "body-too-large": "Send less; the document at /api/schema says each member's bounds.",
    "internal-error": (
        "Send it again with the same Idempotency-Key; if it stays, tell whoever runs this installation."
    ),
    "store-unavailable": LATER,
    # tenancy
    "interlock-error": READ_AGAIN,
    "tenancy-error": READ_AGAIN,
    "not-found": (
        "Check the address and the id; a list of what there is, is one level up. Another tenant's things "
        "are not found."
    ),
    "forbidden": ADMIN,
    "second-factor-missing": (
        "Set up a second factor on the page Second factor and passkeys (/account/2fa/), sign in again with "
        "it, and go on."
    ),
    "no-tenant": "Sign in as a member of a tenant, or take a key of one.",
    "tenant-suspended": "Ask whoever runs this installation to end the suspension.",
    "last-admin": "Make another person an administrator first.",
    "scope-missing": (
        "Take a key whose role may do this; an administrator makes one on the page API keys (/tenant/keys)."
    ),
    "reach-missing": (
        "Take a key that reaches this; an administrator makes one on the page API keys (/tenant/keys)."
    ),
    "key-invalid": NEW_KEY,
    "key-expired": NEW_KEY,
    "key-revoked": NEW_KEY,
    "key-elsewhere": "Send it from an address that the key allows, or have a key made for this one.",
    "workflow-out-of-reach": "Take a workflow that the key names, or a key that names this workflow.",
    "role-lacking": "Give the person the role first, on the page People (/tenant/people).",
    "key-too-wide": "Ask for no more than your own key has, or let an administrator make the key.",
    "key-gone": "Make a new key: POST /api/v1/keys.",
    "link-refused": "Let the person set a new password themselves, from the sign-in page.",
    "signed-out": "Sign in again.",
    "invalid-input": MEND,
    "parameter-unknown": "Leave the parameter out; the document at /api/schema lists those of each address.",
    "parameter-repeated": "Give the parameter once.",
    "idempotency-key-reused": (
        "Take a new Idempotency-Key for a new body; the old one belongs to the first request."
    ),
    "idempotency-key-in-use": LATER,
    "secret-unusable": "Keep the secret again under the same name, or name another one.",
    "not-confirmed": "Ask an administrator of that tenant to confirm you on /tenant/people.",
    "related-to-person": "Let an administrator who is related to neither confirm the person.",
    "not-signed-in": "Let the person set a password first, by the link they were given.",
    "nothing-to-confirm": "There is nothing to do: nobody waits for a confirmation here.",
    "stale": "Read it again and send the new ETag in If-Match.",
    "second-person-needed": (
        "Let an administrator who is not related to you look at the proposal and agree to it."
    ),
    # traces
    "trace-error": READ_AGAIN,
    "content-erased": "The content cannot be had again; its digest in the trace still proves what it was.",
    "sealed-value-gone": "The value cannot be had again; submit a new task with it.",
    "not-an-export": "Send a file that the export of a trace wrote, unchanged.",
    "too-many-viewers": "Close one of the streams you follow, then follow this one.",
    # approvals
    "approval-error": READ_AGAIN,
    "not-yours": "Let a person decide who may; the request's `refusal` says why it is not you.",
    "already-decided": "Read the request: it says who decided and how. Nothing is left to do.",
    "request-expired": (
        "Read the run: it went the way its gate says for its end. What is still wanted is a retry or a "
        "new task."
    ),
    "packet-changed": "Read the request again, and decide on the digest it has now.",
    "decision-invalid": "Take one of the request's `offers`, and give what it needs.",
    "yes-stands": "Take it back before it takes effect, or let it stand.",
    "nothing-to-undo": "Read the request: what takes effect cannot be taken back any more.",
    # budgets
    "budget-error": READ_AGAIN,
    "ceiling-reached": (
        "Wait until the window ends, or let an administrator raise the ceiling on the page Budgets."
    ),
    "ceiling-too-near": "Submit less, wait until the window ends, or let an administrator raise the ceiling.",
    "over-ceiling": "Ask for less, or let an administrator raise the ceiling of a run on the page Budgets.",
    "rate-reached": LATER,
    "dimension-unknown": "Take a dimension that the run's budget lists.",
    "amount-invalid": MEND,
    "price-unknown": "State the price of the model: POST /api/v1/prices; 0 where you run it yourself.",
    "account-closed": "The run has ended; submit a new task.",
    "lane-unbounded": "Give the lane or the run a limit of its cost.",
    # orchestrator
    "orchestrator-error": READ_AGAIN,
    "illegal-move": LOOK_AT_RUN,
    "compile-failed": "Mend the faults that `data` lists, and publish again.",
    "goal-invalid": MEND,
    "workflow-unknown": "Take a workflow that GET /api/v1/workflows lists, or publish this one.",
    "run-over": "Submit a new task, or retry the run: POST /api/v1/runs/{id}/retry.",
    "run-not-over": "Wait for its end, or cancel it: POST /api/v1/runs/{id}/cancel.",
    "run-succeeded": "Submit a new task if it is to happen once more.",
    "retried-already": "Go on with the newest run of the task, which `detail` names.",
    "no-checkpoint": "Retry from another checkpoint, or submit a new task.",
    "changed-since": "Retry from a later checkpoint, or submit a new task.",
    "effect-in-doubt": (
        "Find out at the other side whether it happened, and answer the run's open question about it."
    ),
    "learnt-late": (
        "Find out at the other side whether it happened, then submit a new task for what is missing."
    ),
    "still-recording": "Ask again in a few seconds.",
    "retry-refused": "Submit a new task.",
    "tier-too-high": (
        "Take a workflow of a lower tier, or ask whoever runs this installation to raise the tenant's."
    ),
    "emergency-stop": "Wait until an administrator lifts the stop; accepted runs are kept.",
    "no-model": (
        "Configure a model: page Models, POST /api/v1/model-profiles, or INTERLOCK_MODEL at the start."
    ),
    "store-full": "Tell whoever runs this installation that its disk is full; send it again afterwards.",
    "egress-refused": (
        "Take a public address, or let an administrator open this one on the page Tool servers."
    ),
    "definition-refused": MEND,
    "server-unreachable": "Check that the server runs and that its address is right, then look again.",
    "name-taken": "Take another name.",
    "quarantined": "Look at the tool and admit it, on the page of its server.",
    "own-proposal": OTHER_PERSON,
    "brought-along": OTHER_PERSON,
    "proposal-settled": "There is nothing to do: it was settled. Propose it again if it is still wanted.",
    "proposal-open": "Settle the open proposal first.",
    "webhook-off": "Turn the webhook on, then do this again.",
    "path-refused": "Take a relative path without `..` and without control characters.",
    "workspace-refused": MEND,
    "diff-refused": "Make the diff again for the workspace as it stands.",
    "workspace-moved": "Read the workspace again, and make the change for what it holds now.",
    "memory-refused": MEND,
    "review-refused": "Read the item again; its status says what may be done with it.",
    # what came of changes, queues, and who decides
    "run-under-way": "Answer the run's open request: GET /api/v1/approvals lists those that wait.",
    "effect-not-in-doubt": "Read GET /api/v1/runs/{id}/effects: it lists what is still in doubt.",
    "no-look-up": "Find out at the tool's own system, and say it with POST …/effects/reconcile.",
    "queue-in-use": "Name another queue in what `detail` lists, then close this one.",
    "not-independent": OTHER_PERSON,
    "wider-than-yours": "Give no more than your own limits allow, or ask an administrator who has as much.",
    "own-deed": OTHER_PERSON,
    "administrator-there": "Let an administrator of the tenant invite further people.",
}


def remedy_of(code: str) -> str:
    """The next step after a refusal with this code; "" where the table knows none."""
    return REMEDIES.get(code, "")
