// A document that is loaded again when an event of its stream names another revision of it.
import { read } from "./api.js";
import { throttled } from "./live.js";

const SETTLE_MS = 6000;  // longer than the server's pause between two looks

export interface LiveDocument {
  /** Load the document if an event says that it has changed. */
  changed: (event: string) => void;
  /** Load the document. */
  reload: () => void;
}

/** Return a document that is shown each time it is loaded, at most once in a time. */
export function liveDocument<T>(path: string, pause_ms: number, show: (document: T) => void, fail: (error: Error) => void): LiveDocument {
  let loaded = "", newest = "", timer = 0;

  async function load(): Promise<void> {
    clearTimeout(timer);
    if (loaded && loaded === newest) return;
    try {
      const { document, revision } = await read<T>(path);
      loaded = revision;
      show(document);
    } catch (error) {
      loaded = "";
      fail(error as Error);
    }
    // It has changed since the event, and an event will say so; or it had changed and changed back, and none will.
    if (newest && newest !== loaded) timer = setTimeout(soon, SETTLE_MS);
  }
  const soon = throttled(load, pause_ms);

  function changed(event: string): void {
    newest = (JSON.parse(event) as { revision: string }).revision;
    if (!newest) loaded = "";  // the server could not read it: show the reason
    soon();
  }
  function reload(): void {
    loaded = "";
    soon();
  }
  return { changed, reload };
}
