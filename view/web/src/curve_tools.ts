// The tools above the charts; all of their state is in the URL.
import { button, choice, element, labelled, zone } from "./elements.js";
import { change, parameter } from "./url_state.js";

const DEFAULTS: Record<string, string> = { axis: "step", scale: "linear", smooth: "0", by: "run" };

export interface CurveTools {
  box: HTMLElement;
  /** Return a setting, from the URL or the default. */
  setting: (name: "axis" | "scale" | "smooth" | "by") => string;
  /** Show the state of the URL. */
  update: (isAlone: boolean) => void;
}

/** Return the tools. `defaults` differ from those of all charts. */
export function curveTools(defaults: () => Record<string, string>): CurveTools {
  const standard = (name: string): string => defaults()[name] ?? DEFAULTS[name] ?? "";
  const setting = (name: string): string => parameter(name) || standard(name);
  const set = (name: string, value: string, more: Record<string, string> = {}, how: "push" | "replace" = "push") =>
    change({ [name]: value === standard(name) ? "" : value, ...more }, how);
  const search = labelled(element("input", { type: "search", placeholder: "Search metrics" }), { "aria-label": "Search metrics" });
  search.addEventListener("input", () => change({ q: search.value }, "replace"));
  const axis = choice("X axis", [["step", "Step"], ["time", `Time (${zone()})`], ["relative", "Relative time"]], "step",
    (value) => set("axis", value, { from: "", to: "" }));
  const scale = choice("Y axis", [["linear", "Linear"], ["log", "Logarithmic"]], "linear", (value) => set("scale", value));
  const by = choice("Curves", [["run", "Mean of hosts"], ["rank", "Each host"], ["device", "Each device"]], "run", (value) => set("by", value));
  const smooth = labelled(element("input", { type: "range", min: "0", max: "0.99", step: "0.01" }), { "aria-label": "Smoothing" });
  const amount = element("output", {});
  smooth.addEventListener("input", () => set("smooth", smooth.value, {}, "replace"));
  const whole = button("Reset zoom", () => change({ from: "", to: "" }));
  const all = button("All charts", () => change({ metric: "" }));
  const list = button("List", () => change({ show: parameter("show") === "list" ? "" : "list", metric: "" }), { title: "All metrics in a list" });
  const box = labelled(element("div", { className: "tools" }, search, axis, scale, by,
    element("label", { className: "check" }, "Smoothing", smooth, amount), list, all, whole), { role: "group", "aria-label": "Charts" });
  addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof HTMLElement && event.target.matches("input, select, textarea");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !box.isConnected || document.querySelector("dialog[open]")) return;
    if (event.key === "/") {
      event.preventDefault();
      search.focus();
    } else if (event.key === "Escape") change({ metric: "", from: "", to: "" });
  });

  function update(isAlone: boolean): void {
    if (search.value !== parameter("q")) search.value = parameter("q");
    axis.value = setting("axis");
    scale.value = setting("scale");
    by.value = setting("by");
    smooth.value = setting("smooth");
    amount.textContent = Number(smooth.value) ? Number(smooth.value).toFixed(2) : "off";
    list.setAttribute("aria-pressed", String(parameter("show") === "list" && !isAlone));
    whole.hidden = !parameter("from") && !parameter("to");
    all.hidden = !isAlone;
  }
  return { box, setting, update };
}
