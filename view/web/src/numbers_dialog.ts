// The numbers behind a chart, as a table that can be copied.
import { button, counted, element, labelled } from "./elements.js";
import { copyButton } from "./copying.js";

const MOST_ROWS = 2000;

/** Open a dialog with a table; `isCut` says that there are more rows, which the `files` have. */
export function showNumbers(title: string, heads: string[], rows: string[][], files: HTMLElement[] = [], isCut = false): void {
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  const body = rows.slice(0, MOST_ROWS).map((cells) => element("tr", {}, ...cells.map((cell) =>
    element("td", { className: cell !== "" && !Number.isNaN(Number(cell)) ? "number" : "" }, cell))));
  const count = isCut ? `the first ${rows.length} points; the file has all` : rows.length > MOST_ROWS ? `the first ${MOST_ROWS} of ${rows.length} rows; the copy has all` : counted(rows.length, "row");
  const dialog = element("dialog", { className: "numbers" });
  const text = () => [heads, ...rows].map((cells) => cells.join("\t")).join("\n");
  const id = "numbers-title";
  dialog.append(
    element("div", { className: "tools" }, element("h2", { id }, title), element("span", { className: "muted" }, count),
      ...files, copyButton("Copy as text", text), button("Close", () => dialog.close())),
    element("div", { className: "scroll", tabIndex: 0 }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...body))));
  labelled(dialog, { "aria-labelledby": id });
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.body.append(dialog);
  dialog.showModal();
}
