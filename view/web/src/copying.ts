// Buttons that copy text, and commands with such a button.
import { button, element } from "./elements.js";

const SHOWN_MS = 1500;

/** Return a button that copies a text, and says so. */
export function copyButton(label: string, text: () => string): HTMLButtonElement {
  const made = button(label, () => {
    void copy(text()).then((isCopied) => {
      made.textContent = isCopied ? "Copied" : "Select and copy it";
      setTimeout(() => { made.textContent = label; }, SHOWN_MS);
    });
  });
  return made;
}

/** Return a command line in a box with a button that copies it. */
export function command(text: string): HTMLElement {
  return element("div", { className: "command" }, element("code", { tabIndex: 0 }, text), copyButton("Copy", () => text));
}

/** Return a word as a shell takes it. */
export const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** Copy a text; pages without TLS have no clipboard, but can copy what is selected. */
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = element("textarea", { value: text, className: "hidden" });
    (document.querySelector("dialog[open]") ?? document.body).append(field);
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    return isCopied;
  }
}
