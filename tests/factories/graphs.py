"""Workflow documents for tests: small known-good ones, and a strategy for random graphs that compile.

`graphs()` composes known-good fragments (fixed calls, drafts, branches, one tool loop) on the one shared
ladder, then adds random guarded edges and cycle limits and keeps those with which the graph still compiles.
`covered` says what a graph has, so that a property test can print how much it saw.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from orchestrator.core.compiler.checks.graph_view import build_graph_view, find_cyclic_components
from orchestrator.core.compiler.checks.wiring import targets_of
from orchestrator.core.compiler.compiler import compile_graph
from orchestrator.core.compiler.errors import CompileFailed
from orchestrator.core.domain.graph import CompiledGraph
from orchestrator.core.nodes import discover_node_kinds
from tests.factories.tools import BOUNDARY as BOUNDARY
from tests.factories.tools import PROMPT as PROMPT
from tests.factories.tools import TOOLS as TOOLS

Document = dict[str, Any]
WRITES = ["trace", "status", "release", "final_state"]
CODES = (
    "SUCCESS",
    "BUDGET_EXHAUSTED",
    "TIMEOUT",
    "USER_CANCEL",
    "UNSAFE_DETECTION",
    "PERMISSION_DENIED",
    "UNAVAILABLE_DEP",
    "REPEATED_FAILURE",
    "VALIDATION_FAIL",
    "CONFIRM_REQUIRED",
    "REVIEW_REQUIRED",
    "SOURCE_CONFLICT",
    "LOW_CONFIDENCE",
    "IMPOSSIBLE",
    "MISSING_INFO",
    "AMBIGUOUS_INTENT",
)
INTERRUPTS = {
    "cancelled": "USER_CANCEL",
    "budget_exhausted": "partial",
    "timeout": "TIMEOUT",
    "expired": "TIMEOUT",
    "unsafe": "UNSAFE_DETECTION",
    "permission_denied": "PERMISSION_DENIED",
    "dependency_unavailable": "UNAVAILABLE_DEP",
    "repeated_failure": "REPEATED_FAILURE",
}


def end(code: str) -> str:
    """The id of the terminal node with `code`."""
    return "end-" + code.lower().replace("_", "-")


def edge(source: str, outcome: str, target: str, guard: str | None = None, **parameters: Any) -> Document:
    """One edge of a document."""
    plain: Document = {"source": source, "outcome": outcome, "target": target}
    if guard is not None:
        plain["guard"] = {"name": guard, "parameters": parameters}
    return plain


def document(*pieces: str, choices: bool = True) -> Document:
    """A document that does `pieces` in this order: ``tool``, ``respond``, ``branch``, ``act`` (once at most).

    The last draft is verified and finalized; where no piece writes one, a ``respond`` is added.
    """
    return _Builder((*pieces, "respond") if not {"respond", "act"} & {*pieces} else pieces).document(
        choices=choices
    )


class _Builder:
    """Puts the fragments on one ladder."""

    def __init__(self, pieces: tuple[str, ...]) -> None:
        self.pieces = pieces
        self.ids = [f"{kind}-{number}" for number, kind in enumerate(pieces, start=1)]
        self.nodes: list[Document] = []
        self.edges: list[Document] = []
        self.ladder = "tool" in pieces or "act" in pieces

    def document(self, *, choices: bool) -> Document:
        self._opening(choices=choices)
        for number, kind in enumerate(self.pieces):
            getattr(self, f"_{kind}")(self.ids[number], self._after(number))
        if self.ladder:
            self._shared_ladder()
        self._closing()
        return {
            "slug": "generated",
            "tier": 6 if "act" in self.pieces else 4,
            "boundary": "test",
            "justification": "a test" if "act" in self.pieces else "",
            "tools": ["t.*"] if self.ladder else [],
            "entry": "intake",
            "nodes": self.nodes,
            "edges": self.edges,
            "interrupts": {name: to if to == "partial" else end(to) for name, to in INTERRUPTS.items()},
            "cycles": [{"through": "scope", "limit": 3}],
        }

    def _after(self, number: int) -> str:
        return self.ids[number + 1] if number + 1 < len(self.ids) else "done"

    def _node(self, name: str, kind: str, **config: Any) -> None:
        self.nodes.append({"id": name, "kind": kind, "config": config})

    def _leads(self, source: str, **targets: str) -> None:
        self.edges.extend(edge(source, outcome, target) for outcome, target in targets.items())

    def _opening(self, *, choices: bool) -> None:
        self._node("intake", "goal_intake")
        self._node("classify", "classify_intent", intents={"task": [], "other": ["other"]}, default="task")
        self._node("scope", "resolve_scope")
        self._node("init", "init_state")
        self._leads(
            "intake",
            accepted="classify",
            unparseable=end("VALIDATION_FAIL"),
            against_policy=end("PERMISSION_DENIED"),
            unsafe=end("UNSAFE_DETECTION"),
        )
        self._leads(
            "classify",
            classified="scope",
            ambiguous=end("AMBIGUOUS_INTENT"),
            low_confidence=end("LOW_CONFIDENCE"),
        )
        missing = "ask" if choices else end("MISSING_INFO")
        self._leads("scope", resolved="init", missing_info=missing, denied=end("PERMISSION_DENIED"))
        self._leads("init", ready=self.ids[0], failed=end("VALIDATION_FAIL"))
        if choices:
            self._node("ask", "ask_user", text="What is missing?")
            self._leads("ask", answered="scope", expired=end("MISSING_INFO"))

    def _tool(self, name: str, after: str) -> None:
        tools = tuple(TOOLS)
        fact = name.replace("-", "_")
        chosen = tools[int(name.rsplit("-", 1)[1]) % len(tools)]
        self._node(
            name,
            "tool",
            tool=chosen,
            fact=fact,
            arguments={"n": {"from": "constant", "value": len(self.nodes)}},
        )
        self._leads(name, requested="check", missing_info=end("MISSING_INFO"))
        self.edges.append(
            edge("update", "committed", after if after != "done" else "progress", "asked_by", node=name)
        )

    def _respond(self, name: str, after: str) -> None:
        self._node(name, "respond", role="writer", prompt=PROMPT)
        self._leads(
            name,
            drafted="judge" if after == "done" else after,
            refused=end("IMPOSSIBLE"),
            empty=end("VALIDATION_FAIL"),
            model_unavailable=end("UNAVAILABLE_DEP"),
        )

    def _branch(self, name: str, after: str) -> None:
        predicate = {"name": "intent_is", "parameters": {"intent": "task"}}
        self._node(name, "branch", predicate=predicate)
        self._leads(name, holds="judge" if after == "done" else after, fails=end("IMPOSSIBLE"))

    def _act(self, name: str, after: str) -> None:
        self._node(name, "act", prompt=PROMPT)
        judge = f"judge-{name}" if after != "done" else "judge"
        if after != "done":
            self._judge(judge, after)
        self._leads(
            name,
            requested="check",
            answered=judge,
            refused=end("IMPOSSIBLE"),
            empty=end("VALIDATION_FAIL"),
            model_unavailable=end("UNAVAILABLE_DEP"),
        )

    def _judge(self, name: str, passed: str) -> None:
        self._node(name, "verify_output")
        self._leads(
            name,
            passed=passed,
            failed=end("VALIDATION_FAIL"),
            needs_review=end("REVIEW_REQUIRED"),
            rejected=end("REVIEW_REQUIRED"),
        )

    def _shared_ladder(self) -> None:
        for name, kind in (
            ("check", "check_tool"),
            ("gate", "approval"),
            ("invoke", "invoke_tool"),
            ("capture", "capture_observation"),
            ("verify", "verify_observation"),
            ("update", "update_state"),
        ):
            self._node(name, kind)
        model = next((name for name in self.ids if name.startswith("act")), None)
        refused = {
            "malformed": "VALIDATION_FAIL",
            "missing_info": "MISSING_INFO",
            "unregistered": "PERMISSION_DENIED",
            "denied": "PERMISSION_DENIED",
        }
        for outcome, code in refused.items():
            self._not_run("check", outcome, end(code), model)
        self._not_run("gate", "rejected", end("CONFIRM_REQUIRED"), model)
        self._not_run("invoke", "circuit_open", end("UNAVAILABLE_DEP"), model)
        if model is not None:
            self.edges.append(edge("gate", "revised", "check", "queue_left"))
            self.edges.append(edge("gate", "revised", model, "asked_by", node="model"))
        self._leads("check", eligible="invoke", needs_approval="gate", over_budget="partial")
        self._leads("gate", approved="check", edited="check", expired=end("CONFIRM_REQUIRED"))
        self._leads("invoke", dispatched="capture")
        self._leads("capture", captured="verify")
        self._leads(
            "verify",
            verified="update",
            failed="update",
            conflict=end("SOURCE_CONFLICT"),
            low_confidence=end("LOW_CONFIDENCE"),
            unsafe=end("UNSAFE_DETECTION"),
        )
        if model is not None:
            self.edges.append(edge("update", "committed", "check", "queue_left"))
        self._leads("update", committed="turn" if model is not None else "progress")
        if model is not None:
            self._progress("turn", "answer", incomplete=model, complete=model)
        if any(one["target"] == "progress" for one in self.edges):
            self._progress("progress", "facts", incomplete=end("REPEATED_FAILURE"), complete="judge")

    def _not_run(self, node: str, outcome: str, otherwise: str, model: str | None) -> None:
        if model is not None:
            self.edges.append(edge(node, outcome, "check", "queue_left"))
            self.edges.append(edge(node, outcome, model, "asked_by", node="model"))
        self._leads(node, **{outcome: otherwise})

    def _progress(self, name: str, until: str, *, incomplete: str, complete: str) -> None:
        self._node(name, "check_completion", until=until)
        self._leads(
            name,
            complete=complete,
            incomplete=incomplete,
            stalled=end("REPEATED_FAILURE"),
            conflict=end("SOURCE_CONFLICT"),
            low_confidence=end("LOW_CONFIDENCE"),
            blocked=end("REPEATED_FAILURE"),
            impossible=end("IMPOSSIBLE"),
        )

    def _closing(self) -> None:
        self._judge("judge", "finish")
        self._node("finish", "finalize")
        self._node("partial", "finalize", partial=True)
        self._leads("finish", finalized=end("SUCCESS"))
        self._leads("partial", finalized=end("BUDGET_EXHAUSTED"))
        used = {edge["target"]: None for edge in self.edges} | {
            end(code): None for code in INTERRUPTS.values()
        }
        for code in CODES:
            if end(code) in used:
                self._node(end(code), "terminate", code=code, writes=WRITES)


def compiled(plain: Document) -> CompiledGraph:
    """Compile against the factory's own tools and boundary."""
    return compile_graph(plain, tools=TOOLS, boundary=BOUNDARY, prompts=(PROMPT,))


def compiles(plain: Document) -> bool:
    """Whether it does."""
    try:
        compiled(plain)
    except CompileFailed:
        return False
    return True


_GUARDS: st.SearchStrategy[tuple[str, Document]] = st.one_of(
    st.sampled_from(["queue_left", "queue_empty", "step_failed", "edited"]).map(lambda name: (name, {})),
    st.sampled_from(["repairs_left", "malformed_spent", "refusals_left", "refusals_spent"]).flatmap(
        lambda name: st.integers(1, 4).map(lambda limit: (name, {"limit": limit}))
    ),
    st.sampled_from(["task", "other"]).map(lambda intent: ("intent_is", {"intent": intent})),
    st.sampled_from(["timeout", "refused"]).map(lambda error: ("failed_with", {"error": error})),
    st.integers(1, 4).map(lambda times: ("visited_less_than", {"node": "scope", "times": times})),
    st.sampled_from(["tool_1", "tool_2", "f1"]).map(lambda fact: ("facts", {"fact": fact})),
)


@st.composite
def documents(draw_one: st.DrawFn, extra: int = 8) -> Document:
    """A random document that compiles: fragments in random order, up to `extra` further edges, limits."""
    pieces = draw_one(st.lists(st.sampled_from(["tool", "tool", "respond", "branch"]), max_size=4))
    if draw_one(st.booleans()):
        pieces.insert(draw_one(st.integers(0, len(pieces))), "act")
    # A branch at the end would leave nothing to verify.
    while pieces and pieces[-1] == "branch":
        pieces.pop()
    plain = document(*pieces, choices=draw_one(st.booleans()))
    if not compiles(plain):
        plain = document("tool")
    for _ in range(draw_one(st.integers(0, extra))):
        plain = draw_one(_with_one_more(plain))
    return plain


@st.composite
def _with_one_more(draw_one: st.DrawFn, plain: Document) -> Document:
    """The document with one random edge or limit more, if it still compiles; else as it was."""
    changed = deepcopy(plain)
    kind_of = {node["id"]: node["kind"] for node in plain["nodes"]}
    if draw_one(st.integers(0, 4)) == 0:
        working = [name for name, kind in kind_of.items() if discover_node_kinds()[kind].starts_work]
        changed["cycles"].append(
            {"through": draw_one(st.sampled_from(working)), "limit": draw_one(st.integers(1, 9))}
        )
    else:
        ways = list(_possible(plain, kind_of))
        source, outcome, target = draw_one(st.sampled_from(ways))
        name, parameters = draw_one(_GUARDS)
        first = next(
            i for i, e in enumerate(plain["edges"]) if (e["source"], e["outcome"]) == (source, outcome)
        )
        changed["edges"].insert(first, edge(source, outcome, target, name, **parameters))
    return changed if compiles(changed) else plain


def _possible(plain: Document, kind_of: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    seen: dict[tuple[str, str], None] = {(e["source"], e["outcome"]): None for e in plain["edges"]}
    for source, outcome in seen:
        may = targets_of(kind_of[source], outcome)
        yield from ((source, outcome, target) for target, kind in kind_of.items() if kind in may)


def graphs(extra: int = 8) -> st.SearchStrategy[CompiledGraph]:
    """Random compiled graphs over `TOOLS` and `BOUNDARY`."""
    return documents(extra).map(compiled)


def covered(graph: CompiledGraph) -> Counter[str]:
    """What the graph has, as ``kind:act``, ``guard:facts``, ``cycles``, ``nodes``, ``tier:4``."""
    drawing = build_graph_view(graph.spec, discover_node_kinds())
    found = Counter(f"kind:{node.kind}" for node in graph.nodes.values())
    found.update(f"guard:{guard.name}" for guard, _, _ in drawing.guards())
    found["cycles"] = len(find_cyclic_components(drawing.next_of()))
    found["nodes"] = len(graph.nodes)
    found[f"tier:{graph.tier}"] = 1
    return found
