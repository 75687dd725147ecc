# SPDX-License-Identifier: MIT
"""`flexguard bench`: the experiments of the papers, measured, drawn and judged.

  method        rounds, samples, intervals: how anything is measured
  experiments   what is run, with which parameters
  figures       which experiments make which figure of which paper, and what it claims
  plot, report  pictures and pages from samples
  compare       two files of samples
"""
