#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tables of sweep results: show.py FILE [field...]"""
import json, sys
if len(sys.argv) < 2:
    sys.exit("usage: show.py FILE [field...]")
try:
    rows = [json.loads(l) for l in open(sys.argv[1])]
except OSError as e:
    sys.exit(f"show.py: {e.filename}: {e.strerror}; give a file that sweep.py has written")
def get(r, f):
    if "failed" in r: return "-"
    if f == "lock_tr": v = r["transfers"]["lock"]; return f"{v[0]+v[1]:.1f}"
    if f == "all_tr": return f"{sum(map(sum, r['transfers'].values())):.1f}"
    if f == "remote_tr": return f"{sum(v[1] for v in r['transfers'].values()):.1f}"
    v = r[f]
    return f"{v:.3g}" if isinstance(v, float) else str(v)
for field in sys.argv[2:] or ["per_ms", "cs_us"]:
    ts = sorted({r["threads"] for r in rows}); locks = list(dict.fromkeys(r["lock"] for r in rows))
    print(f"{field:>18}", *(f"{t:>8}" for t in ts))
    for l in locks:
        cells = (next((get(r, field) for r in rows if r["lock"] == l and r["threads"] == t), "")
                 for t in ts)
        print(f"{l:>18}", *(f"{cell:>8}" for cell in cells))
