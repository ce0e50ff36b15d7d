"""What is handed to users: manifests, packaged charts and images, all made from the chart and the Dockerfile."""
