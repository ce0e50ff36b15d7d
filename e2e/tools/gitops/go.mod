module mldiagnostics.dev/tools/gitops

go 1.26.0

require (
	github.com/argoproj/argo-cd/v3 v3.4.13
	github.com/fluxcd/source-controller v1.9.6
)
