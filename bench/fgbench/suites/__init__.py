# SPDX-License-Identifier: MIT
"""The suites of bench/run: what is run, what is reported, and the project's targets."""
from fgbench.suites.monitor import Overhead, Registration
from fgbench.suites.mutex import Latency, Native, Paper, Sweet1, Sweet5, Uncontended
from fgbench.suites.objects import BarrierSuite, CondSuite, Modes, RwlockSuite, SemSuite, SpinSuite

ALL = [Uncontended, Paper, Sweet1, Sweet5, CondSuite, RwlockSuite, BarrierSuite, SpinSuite,
       SemSuite, Overhead, Registration, Latency, Native]
