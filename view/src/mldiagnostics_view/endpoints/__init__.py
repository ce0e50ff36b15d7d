"""HTTP: guard, problem documents, JSON endpoints, streams of events, and the page."""
