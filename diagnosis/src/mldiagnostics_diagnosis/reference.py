"""Generates docs/reference/diagnosis-rules.md from the rules.

Run `python -m mldiagnostics_diagnosis.reference`.
"""

from __future__ import annotations

import sys

from mldiagnostics.findings import INCONCLUSIVE

from mldiagnostics_diagnosis.diagnosis import NO_PROBLEM
from mldiagnostics_diagnosis.matching import FEWEST_STEPS, LEAST_COVERAGE
from mldiagnostics_diagnosis.rule import percent
from mldiagnostics_diagnosis.rules import RULES

HEAD = """# The rules of the diagnosis

Written by `python -m mldiagnostics_diagnosis.reference`; do not edit. A rule sees the summaries of all hosts and no
trace. It abstains if it cannot see what it needs. Findings are ordered by their cost per step. Shares are shares of the
time of a step.

| code | finds | threshold | abstains |
|---|---|---|---|
"""


def reference() -> str:
    """Return the page as Markdown."""
    rows = [(rule.code, rule.finds, rule.thresholds, rule.abstains) for rule in RULES]
    rows += [
        (
            INCONCLUSIVE,
            "A host or the session cannot be judged; the message has the reason. Findings about other hosts stay.",
            (
                f"less than {percent(LEAST_COVERAGE)} of the time explained on the median host, fewer than "
                f"{FEWEST_STEPS} matched steps, another program, no steps, an unreadable trace, no trace and no "
                "summary, several hosts of which some have no collectives, or a capture that selects pods, ranks, "
                "slices, nodes, a replicated job, a container or a number of hosts"
            ),
            "never",
        ),
        (NO_PROBLEM, "No rule applies.", "none", "if the session is inconclusive as a whole"),
    ]
    return HEAD + "".join(
        f"| `{code}` | {finds} | {thresholds} | {abstains} |\n" for code, finds, thresholds, abstains in rows
    )


if __name__ == "__main__":
    sys.stdout.write(reference())
