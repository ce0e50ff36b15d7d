module mldiagnostics.dev/tools/kuberay

go 1.26.0
