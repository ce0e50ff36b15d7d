"""Attacks of one tenant on the others: everything that a user or a pod of `chaos-attacker` may do."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from demo.kubectl import eventually

from chaos.accounting import Observed
from chaos.scenarios import Scenarios
from chaos.stage import (
    ALL_PORTS,
    ATTACKER,
    CAPTURES,
    NOW,
    PODS,
    RUNS,
    TRAINER,
    VICTIM,
    Stage,
    in_parallel,
    parked_pod,
    pod_body,
)

ATTACKS = attack = Scenarios()

PORTS = "diagon.gke.io/profiler-ports"
EVERY_PORT = {PORTS: ",".join(map(str, ALL_PORTS))}
ANY: frozenset[str] = frozenset()
"""Every verdict on hosts that behave badly that is not a fault of the operator."""
JOBSETS = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{VICTIM}/jobsets"
JOBSET = "jobset.sigs.k8s.io/jobset-name=two"
WEBHOOK_PORT, HTTP_PORT, CONTROL_PLANE_PORT = 10250, 8081, 8443
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "owner", "uid": "00000000-0000-0000-0000-000000000000"}


def on_all_ports(manner: str, ports: tuple[int, ...] = ALL_PORTS) -> list[str]:
    return [f"{port}={manner}" for port in ports]


def finish(stage: Stage, seen: Observed, names: list[str], allowed: frozenset[str]) -> None:
    """Wait for the attacker's own captures: each ends with a verdict that names the right cause."""
    seen.others += [stage.end(ATTACKER, name, allowed=allowed, deadline_s=120) for name in names]


def capture_of_ports(stage: Stage, seen: Observed, manner: str, ports: tuple[int, ...], **spec: Any) -> Iterator[None]:
    """Capture a pod whose profilers on these ports all behave so."""
    annotations = {PORTS: ",".join(map(str, ports))}
    with stage.pod("profiler", *on_all_ports(manner, ports), annotations=annotations) as pod:
        name = stage.capture(ATTACKER, pod, **spec)
        yield
        finish(stage, seen, [name], ANY)


@attack("two uncompressed traces of 255 MiB")
def large_traces(stage: Stage, seen: Observed) -> Iterator[None]:
    yield from capture_of_ports(stage, seen, "plain:255", (9999, 10000))


@attack("17 ports send small traces first, then 20 MiB each", short=True)
def growing_traces(stage: Stage, seen: Observed) -> Iterator[None]:
    with stage.pod("profiler", *on_all_ports("growing:20"), annotations=EVERY_PORT) as pod:
        names = [stage.capture(ATTACKER, pod) for _ in range(3)]
        yield
        finish(stage, seen, names, ANY)


@attack("17 ports send their traces at 256 bytes per second", short=True)
def dripping_traces(stage: Stage, seen: Observed) -> Iterator[None]:  # noqa: ARG001  # its captures are dropped
    with stage.pod("profiler", *on_all_ports("drip"), annotations=EVERY_PORT) as pod:
        stage.until(ATTACKER, stage.capture(ATTACKER, pod), "Running")
        yield
        stage.delete_captures(ATTACKER)


@attack("17 ports accept connections and never answer; their capture is cancelled", short=True)
def silent_servers(stage: Stage, seen: Observed) -> Iterator[None]:
    with stage.pod("profiler", *on_all_ports("silent"), annotations=EVERY_PORT) as pod:
        name = stage.capture(ATTACKER, pod)
        stage.until(ATTACKER, name, "Running")
        yield
        stage.patch(f"{CAPTURES.format(ATTACKER)}/{name}", {"spec": {"cancel": True}})
        seen.others.append(stage.end(ATTACKER, name, allowed=frozenset({"Cancelled"}), deadline_s=15))


@attack("7 traces of 100 MiB in fields of 2 bytes, with a deadline of 5 s", short=True)
def tiny_fields(stage: Stage, seen: Observed) -> Iterator[None]:
    yield from capture_of_ports(stage, seen, "tiny:100", ALL_PORTS[1:8], deadlineSeconds=5)


@attack("4 traces of 255 MiB that arrive as 260 kB of gzip")
def compressed_bombs(stage: Stage, seen: Observed) -> Iterator[None]:
    yield from capture_of_ports(stage, seen, "bomb:255", ALL_PORTS[1:5])


@attack("a server whose error has 4 kB, control characters and paths", short=True)
def nasty_error(stage: Stage, seen: Observed) -> Iterator[None]:
    with stage.pod("profiler", "9999=nasty") as pod:
        name = stage.capture(ATTACKER, pod)
        yield
        finish(stage, seen, [name], frozenset({"ServerError"}))
        if len(str(seen.others[-1].status)) > 4096:
            seen.faults.append("the server's whole error is in the status")


@attack("18 captures of pods whose owner references are URLs")
def forged_owner_paths(stage: Stage, seen: Observed) -> Iterator[None]:
    # Kinds that no API server has: the garbage collector would delete pods of absent owners.
    forged = [
        {"apiVersion": "..%2f..%2fapi/v1", "name": "..%2f..%2fsecrets?watch=true&x="},
        {"apiVersion": "batch/v1?watch=true", "name": "x/../../../jobs?watch=true"},
        {"apiVersion": "batch%2fv1", "name": "%2e%2e/watch"},
    ]
    with ExitStack() as pods:
        names = []
        for each in forged:
            owner = OWNER | each | {"controller": True}
            pod = pods.enter_context(stage.pod("profiler", "9999=plain", ownerReferences=[owner]))
            names += [stage.capture(ATTACKER, pod) for _ in range(6)]
        yield
        finish(stage, seen, names, ANY)


def with_huge_annotations(stage: Stage, seen: Observed, count: int) -> Iterator[None]:
    labels, annotations = {"app": "huge"}, {PORTS: "9999," * 50_000}
    pods = [parked_pod(f"huge-{number}", labels=labels, annotations=annotations) for number in range(count)]
    in_parallel(lambda pod: stage.create_pod(ATTACKER, pod), pods)
    try:
        target = {"selector": {"matchLabels": labels}}
        names = [stage.capture(ATTACKER, target=target) for _ in range(4)]
        yield
        finish(stage, seen, names, ANY)
    finally:
        stage.api("DELETE", f"{PODS.format(ATTACKER)}?labelSelector=app=huge", NOW)


@attack("80 pending pods with 250 kB of profiler ports each, and 4 captures of all of them", short=True)
def huge_annotations(stage: Stage, seen: Observed) -> Iterator[None]:
    yield from with_huge_annotations(stage, seen, 80)


@attack("320 pending pods with 250 kB of profiler ports each, and 4 captures of all of them")
def many_huge_annotations(stage: Stage, seen: Observed) -> Iterator[None]:
    yield from with_huge_annotations(stage, seen, 320)


def waiting(stage: Stage, count: int) -> Iterator[None]:
    target = {"selector": {"matchLabels": {"app": "nothing"}}}
    in_parallel(lambda _: stage.capture(ATTACKER, target=target, waitForPodsSeconds=3600), range(count))
    try:
        yield
    finally:
        stage.delete_captures(ATTACKER)


@attack("300 captures that wait an hour for pods", short=True)
def waiters(stage: Stage, seen: Observed) -> Iterator[None]:  # noqa: ARG001  # its captures are dropped
    yield from waiting(stage, 300)


@attack("1500 captures that wait an hour for pods")
def many_waiters(stage: Stage, seen: Observed) -> Iterator[None]:  # noqa: ARG001  # its captures are dropped
    yield from waiting(stage, 1500)


@attack("a capture names the session and the place of another's, and is deleted", short=True, captures=1)
def stolen_session(stage: Stage, seen: Observed) -> Iterator[None]:
    honest = stage.end(VICTIM, stage.capture(VICTIM)).status
    location = honest["captureResult"]["outputLocation"]
    with stage.pod("profiler", "9999=plain") as pod:
        for number in range(12):
            place = {"sessionId": honest["sessionId"] if number % 2 else None, "storageLocation": location}
            answer = stage.api("POST", CAPTURES.format(ATTACKER), theft(pod, place))
            if answer.status == 201 and number < 4:
                stage.end(ATTACKER, "theft")
            stage.delete_captures(ATTACKER)
    yield
    holder = honest["holder"].partition("/")[0]
    folder = f"/var/lib/mldiagnostics/{location.removeprefix('volume://').strip('/')}/plugins/profile"
    files = stage.files(holder, f"{folder}/{honest['sessionId']}")
    if files != ["capture.json", f"{TRAINER}.xplane.pb"]:
        seen.faults.append(f"the victim's session has {files} after the theft")


def theft(pod: str, place: dict[str, Any]) -> dict[str, Any]:
    trigger = {key: value for key, value in place.items() if value} | {"podName": pod, "durationMilliseconds": 100}
    return {
        "apiVersion": "diagon.gke.io/v1alpha1",
        "kind": "MLDiagnosticsConnection",
        "metadata": {"name": "theft"},
        "spec": {"triggerCapture": trigger},
    }


@attack("odd label keys and API versions in targets", short=True, captures=1)
def odd_targets(stage: Stage, seen: Observed) -> Iterator[None]:
    long = "k" * 300
    targets: list[dict[str, Any]] = [
        {"selector": {"matchLabels": {long: "x"}}},
        {"selector": {"matchLabels": {"a/b/c": "x", "": "y"}}},
        {"selector": {"matchExpressions": [{"key": long, "operator": "In", "values": ["x" * 300]}]}},
        {"workloadRef": {"apiVersion": "a/b/c", "kind": "Job", "name": "x"}},
        {"workloadRef": {"apiVersion": "/", "kind": "Job", "name": "x"}},
        {"workloadRef": {"apiVersion": "batch/v1", "kind": "Job", "name": "%2e%2e"}},
    ]
    names = []
    for target in targets:
        body = theft("", {}) | {"metadata": {"generateName": "odd-"}}
        body["spec"] = {"triggerCapture": {"target": target}}
        answer = stage.api("POST", CAPTURES.format(ATTACKER), body)
        if answer.status == 201:
            names.append(answer.body["metadata"]["name"])
        elif answer.status != 422:
            seen.faults.append(f"target {target}: status {answer.status} at admission: {answer.message}")
    yield
    refused = frozenset({"InvalidSpec", "WorkloadNotFound", "PodsNotFound", "NoPodMatches", "KindNotSupported"})
    finish(stage, seen, names, refused)


@attack("pods with forged owner references claim rank 0 of a JobSet of two", short=True, captures=1)
def forged_rank(stage: Stage, seen: Observed) -> Iterator[None]:
    stage.api("POST", JOBSETS, jobset_of_two(stage))
    claims = {"jobset-name": "two", "replicatedjob-name": "workers", "job-index": "0", "job-global-index": "0"}
    labels = {f"jobset.sigs.k8s.io/{key}": value for key, value in claims.items()}
    index = {"batch.kubernetes.io/job-completion-index": "0"}
    try:
        with ExitStack() as intruders:
            yield
            job = eventually(lambda: stage.jobs(VICTIM, JOBSET), "the JobSet's Job", deadline_s=60)[0]["metadata"]
            (jobset,) = job["ownerReferences"]
            owner = OWNER | {"name": job["name"], "uid": job["uid"]}
            for forged in (owner | {"controller": True}, owner | {"controller": False}, jobset):
                metadata = {"labels": labels | index, "annotations": index, "ownerReferences": [forged]}
                intruders.enter_context(stage.pod("profiler", "9999=plain", namespace=VICTIM, **metadata))
            eventually(lambda: len(stage.running(VICTIM, JOBSET)) == 5, "the JobSet's pods", deadline_s=60)
            target = {"workloadRef": {"kind": "JobSet", "name": "two"}}
            end = stage.end(VICTIM, stage.capture(VICTIM, target=target, minimumCaptured=1), allowed=ANY)
            seen.others.append(end)
            captured = [each for each in end.status.get("results", ()) if each["state"] == "Captured"]
            ranks = sorted((each.get("rank", -1), each["pod"].startswith("two-")) for each in captured)
            if ranks != [(0, True), (1, True)]:
                seen.faults.append(f"ranks and owners of the captured pods: {ranks}")
    finally:
        stage.api("DELETE", f"{JOBSETS}/two", NOW)


def jobset_of_two(stage: Stage) -> dict[str, Any]:
    pod = pod_body("two", stage.image, ["python", "/chaos/profiler.py", "9999=plain"])["spec"]
    job = {"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimit": 0}
    job |= {"template": {"spec": pod | {"restartPolicy": "Never"}}}
    jobs = [{"name": "workers", "replicas": 1, "template": {"spec": job}}]
    version = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    return version | {"metadata": {"name": "two"}, "spec": {"replicatedJobs": jobs}}


def clients(stage: Stage, manner: str, connections: int, *addresses: str) -> Iterator[None]:
    """Run hostile clients in a pod while the victim captures and pods are created."""
    with stage.pod("client", manner, str(connections), *addresses, namespace=ATTACKER):
        yield


@attack("two concurrent reviews of 2 MiB of small objects, at each webhook replica", short=True)
def hostile_reviews(stage: Stage, seen: Observed) -> Iterator[None]:  # noqa: ARG001
    yield from clients(stage, "hostile-reviews", 2, *stage.webhook.addresses(WEBHOOK_PORT))


@attack("4800 idle TLS connections to one webhook replica")
def idle_connections(stage: Stage, seen: Observed) -> Iterator[None]:  # noqa: ARG001
    yield from clients(stage, "idle-tls", 4800, stage.webhook.addresses(WEBHOOK_PORT)[0])


@attack("16 bodies of 2 MiB at 10 bytes per second, at each webhook replica", short=True)
def slow_bodies(stage: Stage, seen: Observed) -> Iterator[None]:  # noqa: ARG001
    yield from clients(stage, "slow-bodies", 16, *stage.webhook.addresses(WEBHOOK_PORT))


@attack("200 connections with endless headers, and 200 that read no response, to port 8081 of all replicas")
def http_ports(stage: Stage, seen: Observed) -> Iterator[None]:  # noqa: ARG001
    addresses = [*stage.operator.addresses(HTTP_PORT), *stage.webhook.addresses(HTTP_PORT)]
    with ExitStack() as pods:
        for manner in ("endless-headers", "unread-responses"):
            pods.enter_context(stage.pod("client", manner, "40", *addresses))
        yield


@attack("pods of almost the largest size that the API server stores", captures=1)
def largest_pods(stage: Stage, seen: Observed) -> Iterator[None]:
    path = PODS.format(VICTIM)
    labels = {"managed-mldiagnostics-gke": "true"}
    for size in range(1_572_864 - 12_000, 1_572_864, 1000):
        alone, injected = (parked_pod(f"fat-{injected}-{size}") for injected in (0, 1))
        injected["metadata"]["labels"] = labels
        for body in (alone, injected):
            body["spec"]["containers"][0]["env"] = [{"name": "FAT", "value": "x" * size}]
        accepted = stage.api("POST", path, alone).status
        verdict = stage.api("POST", path, injected)
        if accepted == 201 and verdict.status != 201:
            seen.faults.append(f"a pod of {size} bytes is rejected only with the webhook: {verdict.message[:200]}")
        for name in (alone["metadata"]["name"], injected["metadata"]["name"]):
            stage.api("DELETE", f"{path}/{name}", NOW)
    yield


# Reports


def reports(stage: Stage, seen: Observed, manner: str, accounts: int = 16) -> Iterator[None]:
    """Report with accounts of the attacker while the victim reports and captures."""
    with stage.reporting(seen), stage.clients(ATTACKER, manner, accounts):
        yield


@attack("no attack: a victim that reports", captures=10)
def calm(stage: Stage, seen: Observed) -> Iterator[None]:
    with stage.reporting(seen):
        yield


@attack("reports of 350 bytes whose events are 370 MB, one by one", captures=10)
def amplifying_reports(stage: Stage, seen: Observed) -> Iterator[None]:
    yield from reports(stage, seen, "amplifying")


@attack("reports with 15 000 kinds, 250 kB of configurations, or 32 long profiles, of 200 runs", captures=10)
def large_dictionaries(stage: Stage, seen: Observed) -> Iterator[None]:
    yield from reports(stage, seen, "dictionaries")


@attack("1100 new run ids of one namespace, each with a few events", captures=10)
def new_runs(stage: Stage, seen: Observed) -> Iterator[None]:
    yield from reports(stage, seen, "new-runs", 20)


@attack("8 pods with 600 idle TLS connections each to the control plane", captures=10)
def idle_reporters(stage: Stage, seen: Observed) -> Iterator[None]:
    address = f"{stage.operator.leader()['status']['podIP']}:{CONTROL_PLANE_PORT}"
    with stage.reporting(seen), ExitStack() as pods:
        for _ in range(8):
            pods.enter_context(stage.pod("client", "idle-tls", "600", address))
        yield


@attack("400 MLRuns with 250 kB of annotations each", captures=10)
def annotated_runs(stage: Stage, seen: Observed) -> Iterator[None]:
    path, annotations = RUNS.format(ATTACKER), {"notes": "x" * 250_000}
    kind = {"apiVersion": "diagon.gke.io/v1alpha1", "kind": "MLRun"}

    def create(number: int) -> None:
        body = kind | {"metadata": {"name": f"annotated-{number}", "annotations": annotations}, "spec": {}}
        if (answer := stage.api("POST", path, body)).status != 201:
            seen.faults.append(f"annotated-{number}: {answer.status}: {answer.message[:200]}")

    with stage.reporting(seen):
        try:
            in_parallel(create, range(400))
            yield
        finally:
            stage.delete_runs(ATTACKER)


@attack("reports whose journals fill the volume", captures=10)
def bulky_reports(stage: Stage, seen: Observed) -> Iterator[None]:
    yield from reports(stage, seen, "bulky")


@attack("an honest fleet: 800 runs that report every 10 s", captures=10)
def honest_fleet(stage: Stage, seen: Observed) -> Iterator[None]:
    with stage.reporting(seen, "fleet", 64):
        yield
