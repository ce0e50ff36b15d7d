// The hosts of a run, and their step times over time, which show the slow ones.
import { get, type Host, type Metric, type Metrics, type RankColumns, type RunDocument } from "./api.js";
import { choice, duration, element, moment, problem, ROWS_AT_ONCE, table } from "./elements.js";
import { heatMap } from "./heat_map.js";
import { onTheme, stateOf, type Part } from "./run_parts.js";
import { change, parameter } from "./url_state.js";

const STEP_TIME = "step_time";
const COLUMNS = 120;
const SIGNS: Record<string, string> = { Active: "▶", Completed: "✔", Failed: "✖", Pending: "○" };

/** Return the part with the hosts. */
export function hostsPart(base: string): Part {
  const list = element("div"), map = element("div"), pick = element("div", { className: "tools" });
  const box = element("section", {}, map, element("h2", {}, "Hosts"), list);
  const limit = { rows: ROWS_AT_ONCE };
  let run: RunDocument | null = null, metrics: Metric[] = [], data: RankColumns | null = null, shown = "";

  function metric(): string {
    const wanted = parameter("metric"), common = metrics.filter(({ ranks }) => ranks > 1).map((each) => each.metric);
    if (wanted === "heartbeats" || common.includes(wanted)) return wanted;
    return common.includes(STEP_TIME) ? STEP_TIME : "heartbeats";
  }

  function drawMap(): void {
    const hosts = new Map(run?.hosts.map((host) => [host.rank, host]));
    const unit = metric() === "heartbeats" ? "s" : (metrics.find((each) => each.metric === metric())?.unit ?? "");
    if (!data || data.ranks.length < 2) {
      map.replaceChildren();
      return;
    }
    const name = (rank: number) => `rank ${rank}${hosts.get(rank)?.host ? ` · ${hosts.get(rank)?.host}` : ""}`;
    const isPace = ["heartbeats", STEP_TIME].includes(metric()), title = data.metric ?? "step time between heartbeats";
    map.replaceChildren(element("h2", {}, "By host over time"), pick, heatMap(data, { title, over: "time", unit, name, column: columnTime(data), isPace }));
  }

  function drawPick(): void {
    const common = metrics.filter(({ ranks }) => ranks > 1).map((each): [string, string] => [each.metric, each.metric]);
    pick.replaceChildren(choice("Value of the map", [["heartbeats", "step time between heartbeats"], ...common], metric(), (value) => change({ metric: value })));
  }

  async function load(): Promise<string> {
    try {
      const answer = await get<Metrics>(`${base}/metrics`);
      metrics = answer.metrics;
      shown = metric();
      const query = new URLSearchParams({ columns: String(COLUMNS), ...(metric() === "heartbeats" ? {} : { metric: metric() }) });
      data = await get<RankColumns>(`${base}/ranks?${query}`);
      drawPick();
      drawMap();
      return stateOf(answer);
    } catch (error) {
      map.replaceChildren(problem((error as Error).message));
      return "";
    }
  }
  onTheme(drawMap);
  return {
    box,
    update: (changed) => {
      run = changed;
      list.replaceChildren(changed.hosts.length ? hostTable(changed.hosts, limit) : element("p", { className: "muted" },
        "No host has reported yet, or you may not list the pods of this namespace."));
    },
    refresh: load,
    redraw: () => { if (metric() !== shown) void load(); },
  };
}

/** Return the time of each column. */
function columnTime({ from, to, rows }: RankColumns): (column: number) => string {
  return (column) => moment(new Date(1000 * (from + ((to - from) * column) / (rows[0]?.length ?? 1))).toISOString());
}

function hostTable(hosts: Host[], limit: { rows: number }): HTMLElement {
  const columns: [string, (host: Host) => Node | string | number | null][] = [
    ["Rank", (host) => String(host.rank)],
    [hosts.some(({ pod }) => pod) ? "Pod" : "Host", (host) => host.pod ?? host.host],
    ["Node", (host) => host.node],
    ["Slice", (host) => (host.slice === null ? null : String(host.slice))],
    ["Profiler port", (host) => (host.port === null ? null : String(host.port))],
    ["Phase", (host) => element("span", { title: host.message ?? "" },
      element("span", { className: `sign ${host.phase.toLowerCase()}`, ariaHidden: "true" }, SIGNS[host.phase] ?? "·"),
      [host.phase, host.reason].filter(Boolean).join(": "))],
    ["Step", (host) => host.progress.step],
    ["Step time", (host) => (host.progress.stepTimeSeconds === null ? null : duration(host.progress.stepTimeSeconds))],
    ["Last report", (host) => (host.lastHeartbeatTime ? moment(host.lastHeartbeatTime) : null)],
  ];
  const shown = columns.filter(([title, value]) => ["Rank", "Phase"].includes(title) || hosts.some((host) => value(host) !== null));
  return table(shown.map(([title]) => title), hosts.map((host) => shown.map(([, value]) => value(host))), limit);
}
