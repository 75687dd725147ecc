# SPDX-License-Identifier: MIT
"""`flexguard bench`: the experiments of the papers, measured, drawn and judged.

  method        rounds, samples, intervals: how anything is measured
  experiments   what is run: what the papers' have in common
  figure        which experiments make a figure, and what it claims
  claims        what claims are made of
  flexguard, hybrid, futexes
                a paper each: its experiments, figures and claims (FlexGuard's in flexguard_claims)
  product       what no paper asks
  figures       all of them
  plot, report  pictures and pages from samples
  compare       two files of samples
"""
