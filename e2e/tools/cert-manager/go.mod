module mldiagnostics.dev/tools/cert-manager

go 1.26.0
