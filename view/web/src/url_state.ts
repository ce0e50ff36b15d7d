// The state of a page: the query of its URL. Back and forward restore it, a link shares it.

const listeners = new Set<() => void>();
addEventListener("popstate", () => listeners.forEach((listener) => listener()));

export const parameters = (): URLSearchParams => new URLSearchParams(location.search);
export const parameter = (name: string): string => parameters().get(name) ?? "";

/** Return the query after some changes; an empty value removes a name, a list repeats it. */
export function changed(changes: Record<string, string | readonly string[]>): string {
  const query = parameters();
  for (const [name, value] of Object.entries(changes)) {
    query.delete(name);
    for (const each of typeof value === "string" ? [value] : value) if (each) query.append(name, each);
  }
  const text = query.toString().replaceAll("%2F", "/").replaceAll("%3A", ":").replaceAll("%2C", ",");
  return location.pathname + (text && `?${text}`);
}

/**
 * Change the URL and redraw.
 *
 * A choice ("push") is a step for the back button; typing and dragging ("replace") are not.
 */
export function change(changes: Record<string, string | readonly string[]>, how: "push" | "replace" = "push"): void {
  const url = changed(changes);
  if (url === location.pathname + location.search) return;
  if (how === "push") history.pushState(null, "", url);
  else history.replaceState(null, "", url);
  listeners.forEach((listener) => listener());
}

/** Call back when the state has changed, by this page or by the buttons of the browser. */
export function onChange(listener: () => void): void {
  listeners.add(listener);
}
