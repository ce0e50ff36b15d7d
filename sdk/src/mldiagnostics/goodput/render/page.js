"use strict";
const NS = "http://www.w3.org/2000/svg", GUTTER = 52, AXIS = 26, HIGH = 26, MOST_LANES = 24, FEWER_LANES = 6, MOST_MARKS = 150;
const UNITS = [[86400e3, "d", 3600e3, "h"], [3600e3, "h", 60e3, "min"], [60e3, "min", 1e3, "s"]];
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3, 300e3, 600e3, 900e3, 1800e3,
  3600e3, 7200e3, 10800e3, 21600e3, 43200e3, 86400e3, 172800e3, 604800e3, 1209600e3, 2592000e3];
const dark = matchMedia("(prefers-color-scheme: dark)");

function make(name, attributes, parent, text) {
  const element = document.createElementNS(NS, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

function length(ms) {
  for (const [size, unit, small, smallUnit] of UNITS)
    if (ms >= size) { const rest = Math.floor(ms % size / small); return `${Math.floor(ms / size)} ${unit}${rest ? ` ${rest} ${smallUnit}` : ""}`; }
  return ms >= 1000 ? `${(ms / 1000).toFixed(3)} s` : `${ms.toFixed(3)} ms`;
}

const clock = (ms, full) => { const iso = new Date(ms).toISOString(); return full ? iso.slice(0, 23).replace("T", " ") : iso; };

function tickText(ms, step) {
  const iso = new Date(ms).toISOString();
  if (ms % 86400e3 === 0) return iso.slice(5, 10);
  return step >= 60e3 ? iso.slice(11, 16) : step >= 1e3 ? iso.slice(11, 19) : iso.slice(17, 23);
}

class Timeline {
  constructor(figure, run) {
    this.figure = figure; this.run = run;
    this.svg = figure.querySelector("svg"); this.tip = figure.querySelector(".tip"); this.live = figure.querySelector("[aria-live]");
    for (const layer of run.layers) {          // start and lane of each piece
      let at = layer.from, lane = 0;
      layer.starts = layer.pieces.map(piece => { const start = at; at += piece[0]; return start; });
      layer.lanes = layer.starts.map(start => {
        while (lane + 1 < run.lanes.length && start >= run.lanes[lane + 1][1] - 0.0005) lane++;
        return lane;
      });
    }
    this.look(0);
    this.listen();
  }

  look(index) { const [, from, to] = this.run.windows[index]; this.chip = index; this.show(from, to); }

  show(from, to) { this.from = from; this.to = Math.max(to, from + 1); this.draw(); }

  layer() {                                    // the finest layer that covers the view
    const covering = this.run.layers.filter(layer => layer.from <= this.from + 1 && layer.to >= this.to - 1);
    return (covering.length ? covering : [this.run.layers[0]]).reduce((a, b) => b.to - b.from < a.to - a.from ? b : a);
  }

  x(ms) { return GUTTER + (ms - this.from) / (this.to - this.from) * (this.width - GUTTER - 8); }

  time(x) { return this.from + (x - GUTTER) / (this.width - GUTTER - 8) * (this.to - this.from); }

  y(lane) { return 8 + (lane - this.firstLane) % this.lanes * (HIGH + 6); }

  draw() {
    const run = this.run, svg = this.svg;
    this.width = Math.max(360, svg.parentElement.clientWidth);
    const shown = run.lanes.map((lane, i) => i).filter(i => run.lanes[i][2] > this.from && run.lanes[i][1] < this.to);
    this.firstLane = shown.length ? shown[0] : 0;
    const many = shown.length > MOST_MARKS ? 1 : FEWER_LANES;  // attempts share lanes
    this.lanes = shown.length > MOST_LANES ? many : Math.max(1, shown.length);
    const bottom = 8 + this.lanes * (HIGH + 6);
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${this.width} ${bottom + AXIS}`);
    const defs = make("defs", {}, svg), ink = dark.matches ? "#000b" : "#fffa";
    const hatch = make("pattern", {id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)"}, defs);
    make("rect", {width: 2, height: 6, fill: ink}, hatch);
    this.axis(bottom);
    const paths = run.kinds.map(() => []), layer = this.layer();
    for (let i = 0; i < layer.pieces.length; i++) {
      const start = layer.starts[i], end = start + layer.pieces[i][0];
      if (end < this.from || start > this.to) continue;
      const left = Math.max(GUTTER, this.x(start)), right = Math.min(this.width - 8, this.x(end));
      const wide = right - left;
      let y = this.y(layer.lanes[i]);
      const kind = layer.pieces[i][3], parts = typeof kind === "number" ? [kind, 1] : kind;
      const total = typeof kind === "number" ? 1 : layer.pieces[i][0];
      for (let p = 0; p < parts.length; p += 2) {
        const high = HIGH * parts[p + 1] / total;
        paths[parts[p]].push(`M${left.toFixed(1)} ${y.toFixed(1)}h${wide.toFixed(2)}v${high.toFixed(1)}h${-wide.toFixed(2)}z`);
        y += high;
      }
    }
    run.kinds.forEach((kind, k) => {
      if (!paths[k].length) return;
      make("path", {d: paths[k].join(""), fill: dark.matches ? kind.dark : kind.light}, svg);
      if (kind.hatched) make("path", {d: paths[k].join(""), fill: "url(#hatch)"}, svg);
    });
    this.words(shown);
    this.brush = make("rect", {class: "chosen", y: 0, height: bottom, width: 0, x: 0}, svg);
    this.figure.querySelectorAll("button").forEach((button, i) => button.setAttribute("aria-pressed", i === this.chip));
  }

  axis(bottom) {
    const step = STEPS.find(size => (this.to - this.from) / size <= this.width / 95) || STEPS[STEPS.length - 1];
    const origin = this.run.origin;
    for (let at = Math.ceil((origin + this.from) / step) * step; at <= origin + this.to; at += step) {
      const x = this.x(at - origin);
      make("line", {x1: x, x2: x, y1: 2, y2: bottom, class: "rule"}, this.svg);
      make("text", {x, y: bottom + 16, "text-anchor": "middle", class: "soft"}, this.svg, tickText(at, step));
    }
    make("text", {x: 6, y: bottom + 16, class: "soft"}, this.svg, "UTC");
  }

  words(shown) {                               // numbers of attempts, and their causes of end if they fit
    const turns = shown.length > this.lanes;
    for (const i of shown) {
      const [number, start, end] = this.run.lanes[i], middle = this.y(i) + HIGH / 2 + 4;
      if (!turns) make("text", {x: GUTTER - 8, y: middle, "text-anchor": "end", class: "soft"}, this.svg, `#${number}`);
      const mark = this.run.marks[i];
      if (!mark || shown.length > MOST_MARKS) continue;
      const lost = this.x(mark[0]);
      if (lost < GUTTER || lost > this.width - 8) continue;
      make("path", {d: `M${lost} ${this.y(i) - 3}v${HIGH + 6}`, class: turns ? "mark thin" : "mark"}, this.svg);
      if (turns) continue;
      const right = this.x(end) + 8, left = this.x(start) - 8, room = mark[1].length * 6.2;
      if (right >= GUTTER && right + room < this.width) make("text", {x: right, y: middle}, this.svg, mark[1]);
      else if (left - room > GUTTER) make("text", {x: left, y: middle, "text-anchor": "end"}, this.svg, mark[1]);
    }
  }

  find(ms) {
    const layer = this.layer();
    let low = 0, high = layer.starts.length - 1;
    while (low < high) { const middle = (low + high + 1) >> 1; if (layer.starts[middle] <= ms) low = middle; else high = middle - 1; }
    return low;
  }

  tell(index) {
    const layer = this.layer(), [long, first, last, kind] = layer.pieces[index], start = layer.starts[index];
    const kinds = this.run.kinds, lines = [];
    if (typeof kind === "number") lines.push(kinds[kind].label);
    else for (let p = 0; p < kind.length; p += 2) lines.push(`${length(kind[p + 1])} ${kinds[kind[p]].label}`);
    if (first !== null) lines.push(first === last ? `step ${first}` : `steps ${first} to ${last}`);
    const origin = this.run.origin;
    lines.push(long < 60e3 ? length(long) : `${length(long)} (${(long / 1000).toFixed(3)} s)`, `${clock(origin + start, true)} to ${clock(origin + start + long).slice(11, 23)} UTC`);
    return lines;
  }

  point(index, x, y) {
    const lines = this.tell(index);
    this.tip.replaceChildren(...lines.map((line, i) => { const row = document.createElement(i ? "div" : "b"); row.textContent = line; return row; }));
    this.tip.hidden = false;
    const box = this.figure.getBoundingClientRect();
    this.tip.style.left = `${Math.min(Math.max(0, x - box.left + 14), Math.max(0, box.width - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${y - box.top + 18}px`;
  }

  listen() {
    const svg = this.svg, local = event => event.clientX - svg.getBoundingClientRect().left;
    svg.addEventListener("pointermove", event => {
      if (this.down !== undefined) {
        const [a, b] = [this.down, local(event)].sort((p, q) => p - q);
        this.brush.setAttribute("x", a); this.brush.setAttribute("width", b - a);
        return;
      }
      const ms = this.time(local(event));
      if (ms < this.from || ms > this.to) { this.tip.hidden = true; return; }
      this.point(this.find(ms), event.clientX, event.clientY);
    });
    svg.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    svg.addEventListener("pointerdown", event => { this.down = local(event); svg.setPointerCapture(event.pointerId); });
    svg.addEventListener("pointerup", event => {
      const [a, b] = [this.down, local(event)].sort((p, q) => p - q);
      this.down = undefined;
      if (b - a > 6) { this.chip = -1; this.show(Math.max(this.from, this.time(a)), Math.min(this.to, this.time(b))); }
    });
    svg.addEventListener("dblclick", () => this.look(0));
    svg.addEventListener("keydown", event => {
      const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (event.key === "Escape") { this.tip.hidden = true; this.look(0); }
      if (!by) return;
      event.preventDefault();
      const layer = this.layer();
      this.at = Math.min(layer.pieces.length - 1, Math.max(0, this.at === undefined ? this.find(this.from) : this.at + by));
      const box = svg.getBoundingClientRect(), x = this.x(layer.starts[this.at] + layer.pieces[this.at][0] / 2);
      this.point(this.at, box.left + x, box.top + this.y(layer.lanes[this.at]));
      this.live.textContent = this.tell(this.at).join(", ");
    });
    this.figure.querySelectorAll("button").forEach((button, i) => button.addEventListener("click", () => this.look(i)));
    document.querySelectorAll(`button[data-run="${this.figure.dataset.run}"]`).forEach(button =>
      button.addEventListener("click", () => { this.look(+button.dataset.window); this.figure.scrollIntoView({block: "nearest"}); }));
    addEventListener("resize", () => this.draw());
    dark.addEventListener("change", () => this.draw());
  }
}

const runs = JSON.parse(document.getElementById("runs").textContent);
document.querySelectorAll("figure").forEach((figure, i) => new Timeline(figure, runs[i]));
