"""Evaluation of lab.yml's work counts: arithmetic over a case's sizes, such as `2 * m * n * k`, `ceil_div(n, 128)`."""

import ast
import operator
from collections.abc import Callable, Mapping

from kernel_scientist.records import syntax


def _power(base: float, exponent: float) -> float:
    if not 0 <= exponent <= MOST_EXPONENT:
        raise ValueError(f"exponent {exponent} is not from 0 to {MOST_EXPONENT}")
    return base**exponent


MOST_EXPONENT = 64
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: _power,
    ast.LShift: lambda a, b: a * _power(2, b),
}


def _ceil_div(a: float, b: float) -> float:
    return -(-a // b)


_FUNCTIONS: dict[str, Callable[..., float]] = {"ceil_div": _ceil_div, "min": min, "max": max}


def evaluate(text: str, names: Mapping[str, float]) -> float:
    """Return the value of an arithmetic expression over `names`.

    Raises ValueError that names the unknown size or the part that is not arithmetic.
    """
    try:
        return _value(syntax.expression(text), names)
    except SyntaxError as error:
        raise ValueError(f"{text!r} is not an expression") from error
    except ZeroDivisionError as error:
        raise ValueError(f"{text!r} divides by zero") from error
    except OverflowError as error:
        raise ValueError(f"{text!r} is too large") from error


def _value(node: ast.expr, names: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name(id=name):
            if name not in names:
                raise ValueError(f"unknown size {name!r}; known: {', '.join(names)}")
            return names[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, names), _value(right, names))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            try:
                return _FUNCTIONS[name](*[_value(a, names) for a in arguments])
            except TypeError as error:
                raise ValueError(f"{ast.unparse(node)!r} has a wrong number of arguments") from error
        case _:
            raise ValueError(f"{ast.unparse(node)!r} is not arithmetic (+ - * / // ** << ceil_div min max)")
