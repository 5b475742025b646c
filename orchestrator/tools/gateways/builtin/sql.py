"""sql.query and sql.write: a PostgreSQL database, read by a role that can only read, and changed behind a
gate by as many rows as were said (R-TOOL-19).
"""

from typing import Annotated, Any

from pydantic import Field

from orchestrator.core.domain.tool_spec import Reversibility, Risk, Verifier
from orchestrator.tools.gateways.egress.service_client import ToolContext
from orchestrator.tools.gateways.egress.sql import Scalar, ask_database, change_database, no_database
from orchestrator.tools.gateways.registry import ToolResult, read_only_tool, tool

Source = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$", description="which database")]
Statement = Annotated[
    str, Field(min_length=1, max_length=20_000, description="PostgreSQL; values as $1, $2 …")
]
Parameters = Annotated[list[Scalar], Field(max_length=100, description="the values of $1, $2 …")]


class Result(ToolResult):
    """Rows, at most as many as asked for. Numbers with a fraction are text, exact. `cut`: there are more."""

    source: str
    count: int
    rows: list[dict[str, Any]]
    cut: bool
    too_large: int


class Changed(ToolResult):
    """How many rows were changed, by the database's own count of the transaction."""

    source: str
    rows: int


@read_only_tool(
    name="sql.query",
    unset=no_database("reader"),
    category="database",
    capability="database_query",
    timeout_ms=15_000,
    rate_per_minute=60,
    max_result_chars=60_000,
    facts={"source": "/source", "count": "/count", "cut": "/cut"},
    verifier=Verifier(name="asked", equal={"/result/source": "/arguments/source"}),
)
async def query_database(
    context: ToolContext,
    source: Source,
    query: Statement,
    parameters: Parameters = [],  # noqa: B006 - never changed; a schema wants a plain default
    limit: Annotated[int, Field(ge=1, le=1_000, description="at most so many rows")] = 100,
) -> Result:
    """Ask a database: one SELECT, read-only. Its tables stand in information_schema.columns."""
    found = await ask_database(context, source, query, parameters, limit)
    return Result(
        source=source, count=len(found.rows), rows=found.rows, cut=found.cut, too_large=found.too_large
    )


@tool(
    name="sql.write",
    unset=no_database("writer"),
    category="database",
    capability="database_write",
    risk=Risk.DESTRUCTIVE,
    reversibility=Reversibility.IRREVERSIBLE,
    external=True,
    max_retries=0,
    timeout_ms=15_000,
    sensitive=("/source", "/statement", "/parameters", "/expected_rows"),
    side_effects="Rows of a database are changed.",
    effect_sentence="Change {expected_rows} rows of the database {source}: {statement}",
    blast_radius="Exactly {expected_rows} rows, or none: another count is taken back.",
    effects=("the rows are as the statement says",),
    conflict_keys=("sql:{source}",),
    claims=("updated the database", "have updated the record", "deleted the row"),
    facts={"source": "/source", "rows": "/rows"},
    verifier=Verifier(name="rows", equal={"/result/rows": "/arguments/expected_rows"}),
)
async def write_database(
    context: ToolContext,
    source: Source,
    statement: Statement,
    expected_rows: Annotated[
        int,
        Field(
            ge=1, le=1_000, description="how many rows it changes, exactly, triggers and cascades included"
        ),
    ],
    parameters: Parameters = [],  # noqa: B006 - never changed; a schema wants a plain default
) -> Changed:
    """Change rows by one INSERT, UPDATE, DELETE or MERGE. Needs a person's approval; if it would change
    another number of rows, nothing is done.
    """
    count = await change_database(context, source, statement, parameters, expected_rows)
    return Changed(source=source, rows=count)
