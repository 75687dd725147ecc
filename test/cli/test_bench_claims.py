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


def judge(name, check, points, failed, cpus=2):
    """Of three runs at each point, and of those that failed once."""
    method = modules()[1]
    path = result(name, {key: [v, v * 1.01, v * 1.02] for key, v in points.items()}, failed)
    return check(method.load(path), cpus)


def of_threads(**series):
    """{series: {threads: value}} of an experiment e."""
    return {("e", s, x): v for s, values in series.items() for x, v in values.items()}


def check_judged_lock_fails():
    """A claim that a lock is good does not hold where it failed, and the sentence says where and
    why; how bad it is, nobody has seen then.  Such points were left out without a word."""
    modules()
    from fgbench import claims
    good, slow = {2: 9, 4: 9}, {2: 1, 4: 1, 32: 1}
    points, failed = of_threads(ours=good, peer=slow), [("e", "ours", 32)]
    for name, check in (
            ("best", claims.best_of_all("e", "ours", 0.03)),
            ("all", claims.compare("e", "ours", "peer", lambda v: v > 1)),
            ("mean", claims.on_average("e", "ours", "peer", [("", claims.busy, 2)])),
            ("mean-of-times", claims.on_average("e", "ours", "peer", [("", claims.busy, 0.05)],
                                                False)),
            ("fair", claims.fairness_below(["e"], "ours", 10))):
        holds, sentence = judge(name, check, points, failed)
        same(f"{name}: {sentence}", holds, False)
        true(sentence, "ours failed at 32: it hung" in sentence)
        same(name, judge(name + "-whole", check, points, [])[0], True)
    everywhere = [("e", "ours", x) for x in slow]
    holds, sentence = judge("nowhere", claims.best_of_all("e", "ours", 0.03), points, everywhere)
    same("no number at all", (holds, sentence), (False, "ours failed at 2, 4, 32: it hung"))
    somewhere = claims.somewhere("e", "ours", "peer", lambda v: v > 8)
    same("somewhere it holds", judge("somewhere", somewhere, points, failed)[0], True)
    holds, sentence = judge("worse", claims.collapses("e", "ours", "peer", 100), points, failed)
    same(f"how bad it is: {sentence}", (holds, "ours failed at 32" in sentence), (None, True))


def check_other_lock_fails():
    """Nothing can be said of a ratio to it; a claim to be the best leaves it out.  Both say it."""
    modules()
    from fgbench import claims
    points = of_threads(ours={2: 9, 4: 9, 32: 9}, peer={2: 1, 4: 1}, third={2: 2, 4: 2, 32: 2})
    failed = [("e", "peer", 32)]
    for name, check, wanted in (
            ("all", claims.compare("e", "ours", "peer", lambda v: v > 1), None),
            ("not", claims.compare("e", "ours", "peer", lambda v: v < 1), False),
            ("mean", claims.on_average("e", "ours", "peer", [("", claims.busy, 2)]), None),
            ("best", claims.best_of_all("e", "ours", 0.03), True)):
        holds, sentence = judge("other-" + name, check, points, failed)
        same(f"{name}: {sentence}", holds, wanted)
        true(sentence, "peer failed at 32: it hung" in sentence)
    alone = of_threads(ours={2: 9}, peer={})
    same("nobody to compare with",
         judge("alone", claims.best_of_all("e", "ours", 0.03), alone, [("e", "peer", 2)]),
         (None, "peer failed at 2: it hung"))


def check_all_claims_bear_failures():
    """Each claim of each figure, with one lock after the other that failed at one point of each
    experiment, or at all: no claim holds whose lock failed at all."""
    figures, method, report = modules()
    for f in figures.all_figures():
        series = {s for e in f.experiments for s in getattr(e, "locks", [])}
        locks = series & {lock for c in f.claims for lock in c.locks}
        xs = (0, 1, 2, 3, 4, 100, 1000, 4096)
        points = {(e.id, s, x): [1, 1.01, 1.02] for e in f.experiments for s in series for x in xs}
        for who in locks:
            for at in (xs, [4]):
                failed = [(e.id, who, x) for e in f.experiments for x in at]
                results = method.load(result("bears", points, failed))
                for j in judged_with(report, f, results, 104):
                    if j.lock == who and at is xs:
                        true(f"{f.id}: {j.claim.text}: {j.holds}, {j.sentence}",
                             j.holds is not True and "it hung" in j.sentence)


def check_all_but_one():
    """Almost all are no claim that holds at none of one, nor at one of two."""
    modules()
    from fgbench import claims
    check = claims.best_of_all("e", "ours", 0.05, but=1)
    peer = {2: 5, 4: 5, 8: 5, 16: 5}
    for name, ours, wanted in (("none-of-one", {2: 1}, False), ("one-of-one", {2: 9}, True),
                               ("one-of-two", {2: 9, 4: 1}, False),
                               ("two-of-three", {2: 9, 4: 1, 8: 9}, True),
                               ("two-of-four", {2: 9, 4: 1, 8: 9, 16: 1}, False)):
        points = of_threads(ours=ours, peer={x: peer[x] for x in ours})
        same(name, judge(name, check, points, [])[0], wanted)


def check_a_thread_a_cpu():
    """The hybrid lock's paper had 30 to 50 threads on 40 CPUs: what it says of under-subscribed
    ones is of fewer than 40, and 40 are among those that write as fast as stock."""
    figures, method, report = modules()
    figure = next(f for f in figures.all_figures() if f.id == "hybrid-3")

    def verdicts(name, at_40):
        points = {(f"hybrid-leveldb-{mode}", s, x): [v, v * 1.001, v * 1.002]
                  for mode, fast in (("fillrandom", 3.2), ("readrandom", 1.7))
                  for x, by in ((30, fast), (40, at_40), (50, 1.2))
                  for s, v in (("glibc", 100), ("hybrid-mcs-cond", 100 / by))}
        return [j.holds for j in judged_with(report, figure, method.load(result(name, points)), 40)
                if j.lock == "hybrid-mcs-cond"]
    same("as the paper has it", verdicts("as-stock", 1), [True, True])
    same("slower with 40", verdicts("slower", 0.8), [True, False])


def check_json():
    """As the report says it."""
    points = {("sections-1us", s, x): [v, v * 1.01, v * 1.02]
              for s, v in (("glibc", 500), ("flexguard", 900)) for x in (2, 4, 8, 32)}
    del points["sections-1us", "flexguard", 32]
    data = told("best-of-all", "product", points, [("sections-1us", "flexguard", 32)])
    claim = next(c for c in data["claims"] if "best of all" in c["paper"])
    same("verdict", claim["holds"], False)
    true(claim["measured"],
         claim["measured"].endswith("at 3 of 4; flexguard failed at 32: it hung"))


main(globals())
