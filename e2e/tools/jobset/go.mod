module mldiagnostics.dev/tools/jobset

go 1.26.0
