module mldiagnostics.dev/tools/lws

go 1.26.0
