"""Print the run id that Google's SDK computes where it believes in GKE, and what it knows of the workload."""

import json
import sys
import time

from google_cloud_mldiagnostics.utils import host_utils, orchestrator_utils

DEADLINE_S = 30


def main() -> int:
    # It gives the metadata server 0.1 s to answer, which on a busy machine is not always enough.
    end = time.monotonic() + DEADLINE_S
    while (orchestrator := orchestrator_utils.detect_orchestrator()) != "GKE":
        if time.monotonic() > end:
            print(f"the SDK takes this for {orchestrator}", file=sys.stderr)
            return 1
        time.sleep(0.1)
    workload = host_utils.get_workload_details(orchestrator)
    print(json.dumps({"run": host_utils.get_identifier(orchestrator, workload), "workload": workload}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
