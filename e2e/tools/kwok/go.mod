module mldiagnostics.dev/tools/kwok

go 1.26.0
