"""Precision and rounding of decimal numbers: where a test changes them, the product computes alike."""

from __future__ import annotations

import decimal


def read_arithmetic() -> tuple[int, str]:
    """Return precision and rounding of decimal numbers here."""
    context = decimal.getcontext()
    return context.prec, context.rounding


class FollowedArithmetic:
    """Decimal numbers of the product's process, which are computed as those of the tests are."""

    def __init__(self) -> None:
        self._told = read_arithmetic()

    def follow(self, told: tuple[int, str]) -> None:
        """Compute with the precision and rounding that `read_arithmetic` returned in the tests' process."""
        if told != self._told:
            self._told, context = told, decimal.getcontext()
            context.prec, context.rounding = told
