# SPDX-License-Identifier: MIT
"""All cases of the lab, a module a concept, in the order of its table."""
from case import CASES
from . import counts, order, refused, life, races, rules, sleepers, classes, guests, slices
