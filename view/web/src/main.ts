// Chooses the page of the address.
import { showComparison } from "./compare_page.js";
import { element, problem } from "./elements.js";
import { KEYS_OF_CHARTS, KEYS_OF_RUNS, offerKeys } from "./keys_dialog.js";
import { showRun } from "./run_page.js";
import { showRuns } from "./runs_page.js";

const main = document.getElementById("main");
if (main && location.pathname === "/") {
  showRuns(main);
  offerKeys(KEYS_OF_RUNS);
} else if (main && location.pathname === "/compare") {
  showComparison(main);
  offerKeys(KEYS_OF_CHARTS);
} else if (main && /^\/runs\/[^/]+\/[^/]+$/.test(location.pathname)) {
  showRun(main, location.pathname);
  offerKeys(KEYS_OF_CHARTS);
} else main?.replaceChildren(element("h1", {}, "No such page"), problem("This address has no page; the link may be old or cut off."), element("a", { href: "/" }, "All runs"));
