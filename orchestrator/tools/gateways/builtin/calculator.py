"""calculator.evaluate: exact decimal arithmetic over a small grammar of its own (R-TOOL-19)."""

import ast
import re
from collections.abc import Callable
from decimal import (
    ROUND_HALF_UP,
    Context,
    Decimal,
    DivisionByZero,
    Inexact,
    InvalidOperation,
    Overflow,
    localcontext,
)
from typing import Annotated, Final

from pydantic import Field

from orchestrator.core.domain.tool_spec import Reversibility, Risk
from orchestrator.tools.gateways.egress.service_client import CallFailed
from orchestrator.tools.gateways.registry import ToolResult, tool

LONGEST: Final = 1_000
DEEPEST: Final = 64
# Wide enough that sums and products of what fits into an expression are exact; only a quotient can end here.
DIGITS: Final = 2_200
LARGEST_RESULT: Final = 1_000
LARGEST_EXPONENT: Final = 1_000
SHOWN_DIGITS: Final = 28
NUMBER: Final = re.compile(r"(\d[\d_]*\.?[\d_]*|\.\d[\d_]*)([eE][+-]?\d{1,4})?", re.ASCII)
Operation = Callable[[Decimal, Decimal], Decimal]


class Result(ToolResult):
    """The value as a plain decimal; `exact` is false where it was rounded to 28 digits."""

    expression: str
    result: Annotated[str, Field(pattern=r"^-?\d+(\.\d+)?$")]
    exact: bool


@tool(
    name="calculator.evaluate",
    category="calculator",
    capability="arithmetic",
    risk=Risk.READ_ONLY,
    reversibility=Reversibility.PURE,
    trust="trusted",
    parallel_safe=True,
    rate_per_minute=6_000,
    timeout_ms=1_000,
    facts={"expression": "/expression", "result": "/result"},
)
def evaluate_expression(expression: Annotated[str, Field(min_length=1, max_length=LONGEST)]) -> Result:
    """Evaluate an arithmetic expression with exact decimals.

    Operators + - * / // % ** and parentheses; functions round(x, digits) (half up), abs(x), min(a, b, …),
    max(a, b, …), sum(a, b, …). Exponents are whole. Numbers are written without thousands separators.
    """
    context = Context(
        prec=DIGITS, Emax=100_000, Emin=-100_000, traps=[InvalidOperation, DivisionByZero, Overflow]
    )
    with localcontext(context) as arithmetic:
        try:
            value = _evaluate_node(_parse_expression(expression).body, expression, 0)
            exact = not arithmetic.flags[Inexact]
            if not exact:
                value = Context(prec=SHOWN_DIGITS).plus(value)
        except (InvalidOperation, DivisionByZero, Overflow):
            raise make_refusal("the result is beyond what can be calculated") from None
        shown = f"{value:f}"
    if len(shown) > LARGEST_RESULT:
        raise make_refusal(f"the result has more than {LARGEST_RESULT} digits")
    return Result(
        expression=expression, result="0" if value == 0 and shown.startswith("-") else shown, exact=exact
    )


def make_refusal(sentence: str) -> CallFailed:
    """The refusal of an expression; the sentence goes to whoever asked."""
    return CallFailed("refused", sent=True, detail=sentence.encode("utf-8", "backslashreplace"))


def _parse_expression(expression: str) -> ast.Expression:
    if len(expression) > LONGEST:
        raise make_refusal(f"the expression is longer than {LONGEST} characters")
    try:
        return ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise make_refusal("this is no arithmetic expression") from None


def _evaluate_node(node: ast.expr, text: str, depth: int) -> Decimal:
    if depth > DEEPEST:
        raise make_refusal(f"the expression is nested deeper than {DEEPEST}")
    if isinstance(node, ast.Constant):
        return _parse_number(node, text)
    if isinstance(node, ast.UnaryOp):
        return _apply_sign(node, text, depth)
    if isinstance(node, ast.BinOp):
        operation = OPERATIONS.get(type(node.op))
        if operation is None:
            hint = ": write ** for a power" if isinstance(node.op, ast.BitXor) else ""
            raise make_refusal(f"the operator is not one of + - * / // % **{hint}")
        return operation(
            _evaluate_node(node.left, text, depth + 1), _evaluate_node(node.right, text, depth + 1)
        )
    if isinstance(node, ast.Call):
        return _call_function(node, text, depth)
    hint = ": write numbers without thousands separators" if isinstance(node, ast.Tuple) else ""
    raise make_refusal(f"only numbers, operators and functions{hint}")


def _parse_number(node: ast.Constant, text: str) -> Decimal:
    """The number as it is written: through a float it would not be exact."""
    written = (ast.get_source_segment(text.strip(), node) or "").replace("_", "")
    if isinstance(node.value, bool) or not NUMBER.fullmatch(written):
        raise make_refusal(f"{written[:40]!r} is no decimal number")
    value = Decimal(written)
    if not -LARGEST_EXPONENT <= value.adjusted() <= LARGEST_EXPONENT:
        raise make_refusal("a number is too large or too small")
    return value


def _apply_sign(node: ast.UnaryOp, text: str, depth: int) -> Decimal:
    value = _evaluate_node(node.operand, text, depth + 1)
    if isinstance(node.op, ast.USub):
        return -value
    if isinstance(node.op, ast.UAdd):
        return value
    raise make_refusal("the sign is not + or -")


def _call_function(node: ast.Call, text: str, depth: int) -> Decimal:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name not in FUNCTIONS or node.keywords or not node.args:
        raise make_refusal(f"only the functions {', '.join(FUNCTIONS)}, with values in parentheses")
    return FUNCTIONS[name]([_evaluate_node(argument, text, depth + 1) for argument in node.args])


def _compute_quotient(left: Decimal, right: Decimal) -> Decimal:
    if right == 0:
        raise make_refusal("division by zero")
    return left / right


def _floor_divide(left: Decimal, right: Decimal) -> Decimal:
    """The quotient rounded down, as remainders of negative numbers are usually meant."""
    if right == 0:
        raise make_refusal("division by zero")
    whole = left // right
    return whole - 1 if left % right != 0 and (left < 0) != (right < 0) else whole


def _compute_modulo(left: Decimal, right: Decimal) -> Decimal:
    if right == 0:
        raise make_refusal("division by zero")
    rest = left % right
    return rest + right if rest != 0 and (rest < 0) != (right < 0) else rest


def _compute_power(base: Decimal, exponent: Decimal) -> Decimal:
    if exponent != exponent.to_integral_value():
        raise make_refusal("an exponent must be a whole number")
    if abs(exponent) > LARGEST_EXPONENT or abs(exponent) * len(base.as_tuple().digits) > 2 * LARGEST_RESULT:
        raise make_refusal("the power is too large")
    return Decimal(1) / base ** int(-exponent) if exponent < 0 else base ** int(exponent)


def _round_half_up(values: list[Decimal]) -> Decimal:
    places = values[1] if len(values) > 1 else Decimal(0)
    if len(values) > 2 or places != places.to_integral_value() or abs(places) > 100:
        raise make_refusal("round takes a value and at most 100 digits")
    # In a context of its own: what was asked to be rounded is no loss of exactness.
    unit = Decimal(1).scaleb(-int(places))
    return values[0].quantize(unit, rounding=ROUND_HALF_UP, context=Context(prec=DIGITS))


def _compute_abs(values: list[Decimal]) -> Decimal:
    if len(values) > 1:
        raise make_refusal("abs takes one value")
    return abs(values[0])


def _compute_sum(values: list[Decimal]) -> Decimal:
    return sum(values, Decimal(0))


OPERATIONS: Final[dict[type[ast.operator], Operation]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: _compute_quotient,
    ast.FloorDiv: _floor_divide,
    ast.Mod: _compute_modulo,
    ast.Pow: _compute_power,
}
FUNCTIONS: Final[dict[str, Callable[[list[Decimal]], Decimal]]] = {
    "round": _round_half_up,
    "abs": _compute_abs,
    "min": min,
    "max": max,
    "sum": _compute_sum,
}
