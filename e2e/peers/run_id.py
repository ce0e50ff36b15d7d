"""Print the run id and the workload that Google's SDK computes on GKE."""

import json
import sys
import time

from google_cloud_mldiagnostics.utils import host_utils, orchestrator_utils

DEADLINE_S = 60


def main() -> int:
    """Wait until the SDK detects GKE, and print its result as JSON."""
    # It waits 0.1 s for the metadata server, which may be too short on a busy machine.
    end = time.monotonic() + DEADLINE_S
    while (orchestrator := orchestrator_utils.detect_orchestrator()) != "GKE":
        if time.monotonic() > end:
            print(f"the SDK detects {orchestrator}, not GKE", file=sys.stderr)
            return 1
        time.sleep(0.1)
    workload = host_utils.get_workload_details(orchestrator)
    print(json.dumps({"run": host_utils.get_identifier(orchestrator, workload), "workload": workload}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
