# SPDX-License-Identifier: MIT
"""The benchmark harness: of `flexguard bench` (the papers' experiments, measured, drawn and
judged), of bench/run (suites of our own lock) and of bench/micro (every lock).

  running       a program on a contender's locks, and what it prints
  work          the loops that more than one runs
  machine       what it is, how much of it was not ours, the unit of work
  monitors      a preemption monitor of our own, programs registered there
  environment   all of that for one call of a command
  stats, text   medians, intervals, ratios; tables and progress
  options       values of options
  method        rounds in random order, samples, their file: how anything is measured

  suites        of bench/run: what is run, and the project's targets

  experiments   what is run: what the papers' have in common
  figure        which experiments make a figure, and what it claims
  claims        what claims are made of
  flexguard, hybrid, futexes
                a paper each: its experiments, figures and claims (or in NAME_claims)
  product       what no paper asks
  simulated     FlexGuard's figures on simulated machines
  figures       all of them
  plot, report  pictures and pages from samples
  compare       two files of samples
"""
