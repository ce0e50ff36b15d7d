"""Metadata server like that of a GKE node, also for clients that use it as proxy: `PORT CLUSTER`."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


def main(port: int, cluster: str) -> None:
    """Serve until the process is killed."""
    answers = {
        "/computeMetadata/v1/instance/id": "1234567890",
        "/computeMetadata/v1/instance/attributes/cluster-name": cluster,
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers.get(urlsplit(self.path).path)
            self.send_response(404 if answer is None else 200)
            self.send_header("Metadata-Flavor", "Google")
            self.end_headers()
            self.wfile.write((answer or "").encode())

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
