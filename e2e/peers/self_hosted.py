"""Report a run with Google's SDK, unchanged, to a control plane; end it as the first argument says."""

import json
import sys
from typing import Any

import google_cloud_mldiagnostics as peer
from google_cloud_mldiagnostics.custom_types.mlrun_types import ServingEngine

machinelearning_run: Any = peer.machinelearning_run


def main() -> int:
    """Create a run and print its id; `return` ends it well, `raise` with an exception.

    The second argument is its storage.
    """
    storage = {"gcs_path": sys.argv[2]} if len(sys.argv) > 2 else {}
    # This engine needs neither JAX nor torch.
    run = machinelearning_run(
        name="theirs", serving_engine=ServingEngine.VLLM, metrics_record_interval_sec=0, **storage
    )
    print(json.dumps({"id": run.name}), flush=True)
    if sys.argv[1] == "raise":
        raise RuntimeError("the training fails")
    return 0


if __name__ == "__main__":
    sys.exit(main())
