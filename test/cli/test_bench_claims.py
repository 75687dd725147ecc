# SPDX-License-Identifier: MIT
"""flexguard bench: what makes a claim hold, or not, or not to be said."""
from benchmod import *


def check_two_limits():
    """An interval over both limits has good values inside, though neither of its ends is good: no
    verdict."""
    modules()
    from fgbench import claims, stats

    def of(*values):
        one, many = stats.Series(), stats.Series()
        for v in values:
            many.add(v)
        for _ in range(3):
            one.add(1)
        return claims.Ratio(2, many, one).judge(claims.Within(0.9, 1.1))
    same("inside", of(0.95, 1, 1.05), True)
    same("below, above", (of(0.5, 0.6, 0.7), of(1.2, 1.3, 1.4)), (False, False))
    same("over one of them", (of(0.8, 1, 1.05), of(0.95, 1, 1.2)), (None, None))
    same("over both", of(0.5, 1, 1.5), None)
    same("one run", of(1), None)


main(globals())
