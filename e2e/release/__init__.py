"""Release artifacts: manifests, packaged charts and images, made of the charts and Dockerfiles."""
