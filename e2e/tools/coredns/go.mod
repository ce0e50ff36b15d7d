module mldiagnostics.dev/tools/coredns

go 1.26.0
