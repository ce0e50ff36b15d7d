// What the table shows beside the list of runs, read a few rows at a time; that of active runs again after a while.
import { get, type Run } from "./api.js";
import { idOf, type Listed } from "./runs_columns.js";

const BATCH = 12;
const AGAIN_MS = 60_000;

interface Known<T> { read: T | null; at: number; phase: string }

export class RowReads<T> {
  private readonly known = new Map<string, Known<T>>();
  private wanted: Run[] = [];
  private isBusy = false;

  /** `path` is an address that takes runs and returns a document for each of them. */
  constructor(private readonly path: string, private readonly onLoad: () => void) {}

  /** Return what was read of a run; undefined before that. */
  of(run: Run): T | null | undefined {
    return this.known.get(idOf(run))?.read;
  }

  /** Return all that was read. */
  all(): T[] {
    return [...this.known.values()].flatMap(({ read }) => read ?? []);
  }

  /** Read these runs before others. */
  want(runs: readonly Listed[]): void {
    this.wanted = runs.map(({ run }) => run);
    if (!this.isBusy) void this.read();
  }

  private isDue(run: Run): boolean {
    const known = this.known.get(idOf(run));
    if (!known || known.phase !== run.phase) return true;
    return run.phase === "Active" && performance.now() - known.at > AGAIN_MS;
  }

  private async read(): Promise<void> {
    this.isBusy = true;
    for (let due = this.due(); due.length; due = this.due()) {
      const query = new URLSearchParams(due.map((run) => ["run", idOf(run)]));
      let documents: Record<string, T | null> = {};
      try {
        documents = (await get<{ runs: typeof documents }>(`${this.path}?${query}`)).runs;
      } catch {
        // The server refuses them: the cells stay empty.
      }
      for (const run of due) this.known.set(idOf(run), { read: documents[idOf(run)] ?? null, at: performance.now(), phase: run.phase });
      this.onLoad();
    }
    this.isBusy = false;
  }

  private due(): Run[] {
    return this.wanted.filter((run) => this.isDue(run)).slice(0, BATCH);
  }
}
