// Accounts of goodput for the rows on the screen, read a few at a time; those of active runs again after a while.
import { get, type Run } from "./api.js";
import { idOf, type Account, type Listed } from "./runs_columns.js";

const BATCH = 12;
const AGAIN_MS = 60_000;

interface Known { account: Account | null; at: number; phase: string }

export class Accounts {
  private readonly known = new Map<string, Known>();
  private wanted: Run[] = [];
  private isBusy = false;

  constructor(private readonly onLoad: () => void) {}

  /** Return the account of a run; undefined before it is read. */
  of(run: Run): Account | null | undefined {
    return this.known.get(idOf(run))?.account;
  }

  /** Read the accounts of these runs before others. */
  want(seen: readonly Listed[]): void {
    this.wanted = seen.map(({ run }) => run);
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
      let accounts: Record<string, Account | null> = {};
      try {
        accounts = (await get<{ runs: typeof accounts }>(`/api/goodput?${query}`)).runs;
      } catch {
        // The bars are missing; the page says elsewhere that the server does not respond.
      }
      for (const run of due) this.known.set(idOf(run), { account: accounts[idOf(run)] ?? null, at: performance.now(), phase: run.phase });
      this.onLoad();
    }
    this.isBusy = false;
  }

  private due(): Run[] {
    return this.wanted.filter((run) => this.isDue(run)).slice(0, BATCH);
  }
}
