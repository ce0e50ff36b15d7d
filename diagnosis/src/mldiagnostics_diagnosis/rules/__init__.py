"""The rules; each is pure, and sees summaries alone."""

from mldiagnostics_diagnosis.rules import (
    alternating_hosts,
    communication_bound,
    device_limits,
    host_waits,
    repeated_work,
    slow_host,
)

RULES = (
    slow_host.SINGLE,
    slow_host.SEVERAL,
    alternating_hosts.RULE,
    host_waits.INPUT_BOUND,
    host_waits.TRANSFER_BOUND,
    host_waits.HOST_BOUND,
    communication_bound.RULE,
    repeated_work.RECOMPILING,
    repeated_work.DEBUG_CALLBACK,
    device_limits.MEMORY_NEAR_LIMIT,
    device_limits.COMPUTE_BOUND,
    device_limits.MEMORY_BANDWIDTH_BOUND,
)
"""In the order of findings of equal cost."""
