// Streams of events. A page in the background has none: browsers open six connections to a server, for all tabs together.

const RETRY_MS = 3000, REJECTED_MS = 10_000;
const GONE = 404;

type State = "live" | "reconnecting" | "rejected";

/** Call back on each event of a stream, while the page is visible; the header says if the connection is lost. */
export function follow(path: string, handlers: Record<string, (data: string) => void>, onState: (state: State) => void = () => {}): void {
  let stream: EventSource | null = null, timer = 0;
  function open(): void {
    clearTimeout(timer);
    stream?.close();
    stream = new EventSource(path);
    stream.addEventListener("open", () => show("live"));
    stream.addEventListener("error", () => {
      if (stream?.readyState !== EventSource.CLOSED) return show("reconnecting");
      void reasonOf(path).then((reason) => {  // rejected: the browser gives up
        timer = setTimeout(open, reason === null ? RETRY_MS : REJECTED_MS);
        if (reason === null) show("reconnecting");
        else show("rejected", reason);
      });
    });
    for (const [name, handler] of Object.entries(handlers)) stream.addEventListener(name, ({ data }: MessageEvent<string>) => handler(data));
  }
  function show(state: State, reason = ""): void {
    const sign = document.getElementById("connection");
    if (sign) {
      sign.className = state;
      sign.textContent = state === "rejected" ? ["not live", reason].filter(Boolean).join(": ") : state === "live" ? "live" : "connection lost, reconnecting …";
    }
    onState(state);
  }
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) return open();
    clearTimeout(timer);
    stream?.close();
  });
  if (!document.hidden) open();
}

/** Return why the server rejects a stream, empty where the page says it; null where it does not respond, or accepts it now. */
async function reasonOf(path: string): Promise<string | null> {
  const aborter = new AbortController();
  try {
    const response = await fetch(path, { signal: aborter.signal });
    if (response.ok) return null;
    return response.status === GONE ? "" : String((await response.json()).detail ?? response.statusText);
  } catch {
    return null;
  } finally {
    aborter.abort();
  }
}

/** Return a function that calls another one at most once in a time, and once more for calls in between. */
export function throttled(task: () => Promise<unknown>, pause_ms: number): () => void {
  let isBusy = false, isWanted = false;
  return function run(): void {
    isWanted = true;
    if (isBusy) return;
    isBusy = true;
    isWanted = false;
    const wait = new Promise((resolve) => setTimeout(resolve, pause_ms));
    void Promise.all([task(), wait]).then(() => {
      isBusy = false;
      if (isWanted) run();
    });
  };
}
