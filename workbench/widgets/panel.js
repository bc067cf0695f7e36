// One panel on a page: controls, charts, and what reproduces them. It draws what it is sent and
// computes nothing. `model` is a widget's, or the stand-in of a file without a kernel (shared.py).

const EDGE = { right: 12, top: 8, bottom: 36 };
const LEAST = 235, MOST = 560, GAP = 18; // px, of a chart's width and between charts
const PATIENCE = 4000; // ms after which an unanswered question no longer holds back the next
const SLOW = 400; // ms after which a panel says that it works

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  return setAttributes(node, attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  return setAttributes(node, attributes, children);
}

function setAttributes(node, attributes, children) {
  for (const [name, x] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), x);
    else if (x !== false && x !== null && x !== undefined) node.setAttribute(name, x === true ? "" : x);
  }
  node.append(...children.filter((c) => c !== null && c !== undefined));
  return node;
}

// ---- numbers, as axes of the printed figures write them

function number(x) {
  if (x === 0 || (Math.abs(x) >= 0.01 && Math.abs(x) < 10000)) return String(+x.toPrecision(4)).replace("-", "−");
  const power = Math.floor(Math.log10(Math.abs(x)) + 1e-9);
  const digits = String(+(x / 10 ** power).toPrecision(3)).replace("-", "−");
  const raised = "10" + String(power).replace(/[-0-9]/g, (c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] ?? "⁻");
  return digits === "1" ? raised : `${digits}·${raised}`;
}

const end = (x) => (x >= 1000 && x < 1e7 ? Math.round(x).toLocaleString("en") : number(x)); // of a scale

const percent = (x) => `${+(100 * x).toPrecision(3)} %`.replace("-", "−");

function grouped(x) {
  if (typeof x !== "number") return String(x ?? "none");
  return Number.isInteger(x) && Math.abs(x) < 1e15 ? x.toLocaleString("en") : String(x);
}

// ---- axes

function scale(axis, [low, high], from, to) {
  const f = axis.log ? Math.log : (x) => x;
  return (x) => from + ((f(x) - f(low)) / (f(high) - f(low) || 1)) * (to - from);
}

function ticks(axis, [low, high], most) {
  if (axis.log) {
    const all = (steps, every = 1) => {
      const places = [];
      for (let p = Math.floor(Math.log10(low)); p <= Math.log10(high) + 1e-9; p++)
        if (p % every === 0)
          for (const s of steps) if (s * 10 ** p >= low * 0.999 && s * 10 ** p <= high * 1.001) places.push(s * 10 ** p);
      return places;
    };
    for (const [steps, every] of [[[1, 2, 5], 1], [[1, 3], 1], [[1], 1], [[1], 2], [[1], 3]]) {
      const places = all(steps, every);
      if (places.length <= most) return places;
    }
    return all([1], 4);
  }
  const rough = (high - low) / most || 1;
  const base = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((s) => s * base).find((s) => s >= rough);
  const places = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) places.push(+(k * step).toPrecision(12));
  return places;
}

// Limits that stay while what is drawn fits and fills them, so that moving a slider moves the curves.
function limits(axis, values, previous, tight) {
  const fit = values.filter((v) => v !== null && (!axis.log || v > 0));
  if (!fit.length) return previous ?? (axis.log ? [1, 10] : [0, 1]);
  let low = Math.min(...fit), high = Math.max(...fit);
  const f = axis.log ? Math.log : (x) => x;
  if (previous && low >= previous[0] && high <= previous[1] && (tight || f(high) - f(low) > 0.45 * (f(previous[1]) - f(previous[0])))) {
    if (!tight || (low === previous[0] && high === previous[1])) return previous;
  }
  if (tight) return low < high ? [low, high] : [low, axis.log ? low * 10 : low + 1];
  if (axis.log) {
    const step = (x, up) => {
      const p = 10 ** Math.floor(Math.log10(x)), s = [1, 2, 5, 10].map((k) => k * p);
      return up ? s.find((y) => y >= x * 1.05) ?? 20 * p : [...s].reverse().find((y) => y <= x * 0.95) ?? p / 2;
    };
    return [step(low, false), step(high, true)];
  }
  if (low > 0 && low < high / 2) low = 0;
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  return [low === 0 ? 0 : low - room, high + room];
}

// ---- marks and lines

const corners = (n, r, turn = 0, inner = 0) =>
  Array.from({ length: inner ? 2 * n : n }, (_, i) => {
    const a = turn - Math.PI / 2 + (i * 2 * Math.PI) / (inner ? 2 * n : n);
    const q = inner && i % 2 ? inner * r : r;
    return [q * Math.cos(a), q * Math.sin(a)];
  });
const cross = (r) => [[-1, -3], [1, -3], [1, -1], [3, -1], [3, 1], [1, 1], [1, 3], [-1, 3], [-1, 1], [-3, 1], [-3, -1], [-1, -1]].map(([x, y]) => [(x * r) / 3, (y * r) / 3]);
const rotated = (points, a) => points.map(([x, y]) => [x * Math.cos(a) - y * Math.sin(a), x * Math.sin(a) + y * Math.cos(a)]);
const SHAPES = {
  ".": () => corners(8, 1.6), o: () => corners(16, 3.1), s: () => corners(4, 3.9, Math.PI / 4),
  D: () => corners(4, 3.9), d: () => corners(4, 3.9).map(([x, y]) => [x * 0.6, y]),
  "^": () => corners(3, 3.9), v: () => corners(3, 3.9, Math.PI), "<": () => corners(3, 3.9, -Math.PI / 2),
  ">": () => corners(3, 3.9, Math.PI / 2), P: () => cross(3.7), X: () => rotated(cross(3.7), Math.PI / 4),
  "*": () => corners(5, 4.4, 0, 0.42), p: () => corners(5, 3.7), h: () => corners(6, 3.6), H: () => corners(6, 3.6, Math.PI / 6),
};
const shape = (marker, x, y) =>
  "M" + (SHAPES[marker] ?? SHAPES.o)().map(([dx, dy]) => `${(x + dx).toFixed(1)},${(y + dy).toFixed(1)}`).join("L") + "Z";

// Dashed lines have hollow marks: two series of one look differ by them.
function mark(line, x, y) {
  const ink = line.dashed ? { fill: "#ffffff", stroke: line.color, "stroke-width": 1.2 } : { fill: line.color };
  return svg("path", { d: shape(line.marker, x, y), ...ink });
}

const strokeWidth = (line) => (line.name === "truth" ? 3.5 : line.marker === undefined ? 1 : 1.6);

function trace(line, sx, sy) {
  let path = "", pen = "M";
  line.x.forEach((x, i) => {
    const y = line.y[i];
    const at = y === null ? NaN : sy(y);
    if (!Number.isFinite(at)) { pen = "M"; return; }
    path += `${pen}${sx(x).toFixed(1)},${Math.max(-400, Math.min(900, at)).toFixed(1)}`;
    pen = "L";
  });
  return path;
}

const tickText = (axis) => (axis.percent ? percent : number);

// Room for the widest label beside the y axis.
const leftMargin = (axis, span) => 26 + 6 * Math.max(...ticks(axis, span, 6).map((t) => tickText(axis)(t).length), 2);

function frame(chart, xs, ys, sx, sy, left, clip, [W, H]) {
  const inner = [left, EDGE.top, W - EDGE.right, H - EDGE.bottom];
  const parts = [svg("clipPath", { id: clip }, svg("rect", { x: inner[0], y: inner[1] - 4, width: inner[2] - inner[0] + 6, height: inner[3] - inner[1] + 8 }))];
  for (const t of ticks(chart.x, xs, 6)) {
    parts.push(svg("line", { class: "wb-grid", x1: sx(t), x2: sx(t), y1: inner[1], y2: inner[3] }));
    parts.push(svg("text", { x: sx(t), y: inner[3] + 13, "text-anchor": "middle" }, tickText(chart.x)(t)));
  }
  for (const t of ticks(chart.y, ys, 6)) {
    parts.push(svg("line", { class: "wb-grid", x1: inner[0], x2: inner[2], y1: sy(t), y2: sy(t) }));
    parts.push(svg("text", { x: inner[0] - 5, y: sy(t) + 3.5, "text-anchor": "end" }, tickText(chart.y)(t)));
  }
  parts.push(svg("path", { class: "wb-axis", d: `M${inner[0]},${inner[1]}V${inner[3]}H${inner[2]}` }));
  parts.push(svg("text", { x: (inner[0] + inner[2]) / 2, y: H - 6, "text-anchor": "middle" }, chart.x.label));
  const middle = (inner[1] + inner[3]) / 2;
  parts.push(svg("text", { transform: `translate(11 ${middle}) rotate(-90)`, "text-anchor": "middle" }, chart.y.label));
  return parts;
}

let clips = 0;

function curves(chart, pinned, shownLimits, size) {
  const [W, H] = size;
  const ghosts = pinned ? pinned.lines.filter((l) => !l.dashed || l.marker !== undefined) : [];
  const lines = [...chart.lines, ...ghosts];
  const xs = limits(chart.x, chart.lines.flatMap((l) => l.x), shownLimits.x, true);
  const ys = limits(chart.y, lines.flatMap((l) => [...l.y, ...(l.high ?? []), ...(chart.y.log ? [] : l.low ?? [])]), shownLimits.y, false);
  shownLimits.x = xs; shownLimits.y = ys;
  const pad = chart.x.log || chart.lines.every((l) => l.marker) ? 6 : 0;
  const left = leftMargin(chart.y, ys), sx = scale(chart.x, xs, left + pad, W - EDGE.right - pad), sy = scale(chart.y, ys, H - EDGE.bottom, EDGE.top);
  const clip = `wb-clip-${clips++}`;
  const ends = chart.lines.map((l) => `${l.name}: ${number(l.y.findLast((y) => y !== null) ?? 0)} at the right end`).join("; ");
  const node = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${chart.title}. ${chart.y.label} over ${chart.x.label}. ${ends}` });
  node.append(...frame(chart, xs, ys, sx, sy, left, clip, size));
  const ink = svg("g", { "clip-path": `url(#${clip})` });
  if (chart.mark !== null && chart.mark !== undefined)
    ink.append(svg("line", { class: "wb-mark", x1: sx(chart.mark), x2: sx(chart.mark), y1: EDGE.top, y2: H - EDGE.bottom }));
  for (const line of ghosts) ink.append(svg("path", { class: "wb-pinned", d: trace(line, sx, sy), stroke: line.color }));
  for (const line of chart.lines) {
    if (line.low) {
      const floor = (y) => (chart.y.log && !(y > 0) ? ys[0] : y);
      const up = line.x.map((x, i) => `${sx(x)},${sy(line.high[i])}`), down = line.x.map((x, i) => `${sx(x)},${sy(floor(line.low[i]))}`);
      ink.append(svg("polygon", { points: [...up, ...down.reverse()].join(" "), fill: line.color, opacity: 0.2 }));
    }
    ink.append(svg("path", { d: trace(line, sx, sy), fill: "none", stroke: line.color, "stroke-width": strokeWidth(line), "stroke-dasharray": line.dashed || false }));
    if (line.marker) line.x.forEach((x, i) => {
      if (line.y[i] !== null && Number.isFinite(sy(line.y[i]))) ink.append(mark(line, sx(x), sy(line.y[i])));
    });
  }
  node.append(ink);
  const pale = [...new Set(ghosts.map((l) => l.color))].slice(0, 4);
  return { node, sx, legend: [...chart.lines, ...(pale.length ? [{ name: "pinned", pale }] : [])] };
}

function cells(chart, [W]) {
  const [x0, y0, x1, y1] = chart.boxes, box = [Math.min(...x0), Math.min(...y0), Math.max(...x1), Math.max(...y1)];
  const high = Math.round(640 * chart.high), least = (4 * 640) / W, [from, to] = chart.limits.map(end);
  const canvas = make("canvas", { width: 640, height: high, style: `aspect-ratio: 1 / ${chart.high}`, role: "img", "aria-label": `${chart.title}. ${x0.length} boxes, shaded by ${chart.label}, from ${from} to ${to}` });
  const pen = canvas.getContext("2d");
  const sx = (x) => ((x - box[0]) / (box[2] - box[0])) * 640, sy = (y) => high - ((y - box[1]) / (box[3] - box[1])) * high;
  pen.fillStyle = "#ffffff";
  pen.fillRect(0, 0, 640, high);
  pen.lineWidth = 0.6;
  pen.strokeStyle = "#999999";
  x0.forEach((_, i) => {
    const at = [sx(x0[i]), sy(y1[i]), sx(x1[i]) - sx(x0[i]), sy(y0[i]) - sy(y1[i])];
    if (chart.shade[i] !== null) {
      pen.fillStyle = chart.colors[Math.round(chart.shade[i] * (chart.colors.length - 1))];
      pen.fillRect(at[0], at[1], at[2] + 0.6, at[3] + 0.6);
    }
    if (chart.outlines && Math.min(at[2], at[3]) >= least) pen.strokeRect(...at);
  });
  const bar = make("div", { class: "wb-scale" }, make("span", {}, from), make("i", { style: `background:linear-gradient(90deg, ${chart.colors.join(",")})` }), make("span", {}, to), make("span", {}, chart.label));
  const axes = chart.axes.some(Boolean) ? make("div", { class: "wb-axes" }, `→ ${chart.axes[0]}   ↑ ${chart.axes[1]}`) : null;
  return { node: make("div", { class: "wb-cells" }, canvas, axes, bar), legend: [] };
}

function key(line) {
  const stroke = (y, attributes) => svg("line", { x1: 1, x2: 25, y1: y, y2: y, ...attributes });
  const drawn = line.pale
    ? line.pale.map((color, i) => stroke(6 + 3 * (i - (line.pale.length - 1) / 2), { class: "wb-pinned", stroke: color }))
    : [stroke(6, { stroke: line.color, "stroke-width": strokeWidth(line), "stroke-dasharray": line.dashed || false }), line.marker ? mark(line, 13, 6) : null];
  return make("span", { class: "wb-key" }, svg("svg", { viewBox: "0 0 26 12", width: 26, height: 12, "aria-hidden": "true" }, ...drawn), line.name);
}

function numbers(chart) {
  if (chart.kind !== "curves") return null;
  const box = make("details", {}, make("summary", {}, "Numbers"));
  box.addEventListener("toggle", () => {
    if (!box.open || box.querySelector("table")) return;
    const rows = chart.lines.flatMap((l) => l.x.map((x, i) => make("tr", {}, make("td", {}, l.name), make("td", {}, number(x)), make("td", {}, l.y[i] === null ? "" : number(l.y[i])))));
    const head = ["series", chart.x.label, chart.y.label].map((t) => make("th", { scope: "col" }, t));
    box.append(make("div", { class: "wb-scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows))));
  });
  return box;
}

function tip(figure, chart, sx, W) {
  const box = make("div", { class: "wb-tip", "aria-hidden": "true", hidden: true });
  const node = figure.querySelector("svg");
  node.addEventListener("pointermove", (event) => {
    const r = node.getBoundingClientRect(), at = ((event.clientX - r.left) / r.width) * W;
    const near = chart.lines.filter((l) => l.marker !== undefined).map((l) => {
      const i = l.x.reduce((best, x, j) => (Math.abs(sx(x) - at) < Math.abs(sx(l.x[best]) - at) ? j : best), 0);
      return [l.name, l.x[i], l.y[i]];
    });
    if (!near.length) return;
    box.replaceChildren(make("b", {}, number(near[0][1])), ...near.map(([name, , y]) => make("div", {}, `${name}: ${y === null ? "none" : number(y)}`)));
    box.hidden = false;
    box.style.left = `${Math.min(event.clientX - r.left + 12, r.width - 130)}px`;
  });
  node.addEventListener("pointerleave", () => (box.hidden = true));
  return box;
}

// ---- controls

function control(declared, state, ask, fixed) {
  const name = declared.unit ? `${declared.label} (${declared.unit})` : declared.label, frozen = fixed && declared.stops.length < 2;
  const head = make("span", { class: "wb-name" }, name);
  const row = make("label", { class: `wb-control wb-${declared.kind}${frozen ? " wb-frozen" : ""}`, title: declared.doc, "data-name": declared.name }, head);
  const set = (x, rest) => { state.values[declared.name] = x; ask(rest); };
  if (declared.kind === "slider") {
    const slide = make("input", { type: "range", min: 0, max: declared.stops.length - 1, step: 1, "aria-label": name, disabled: frozen, hidden: frozen });
    const box = make("input", { type: "number", step: "any", "aria-label": `${name}, any number`, class: "wb-box", readonly: fixed });
    const nearest = (x) => declared.stops.reduce((best, s, i) => (Math.abs(s - x) < Math.abs(declared.stops[best] - x) ? i : best), 0);
    slide.addEventListener("input", () => { const x = declared.stops[+slide.value]; box.value = x; slide.setAttribute("aria-valuetext", grouped(x)); set(x, false); });
    // Dragged away and back, a slider tells of no change.
    for (const name of ["change", "pointerup", "pointercancel", "keyup", "blur"]) slide.addEventListener(name, () => { if (state.rough) ask(true); });
    box.addEventListener("change", () => {
      if (box.value === "") { box.value = state.values[declared.name]; return; }
      slide.value = nearest(+box.value);
      set(+box.value, true);
    });
    row.append(slide, box);
    row.show = (x) => {
      if (document.activeElement !== slide) slide.value = nearest(x);
      if (document.activeElement !== box) box.value = x;
      slide.setAttribute("aria-valuetext", grouped(x));
    };
  } else if (declared.kind === "switch") {
    const box = make("input", { type: "checkbox", disabled: frozen, onchange: () => set(box.checked, true) });
    row.prepend(box);
    row.show = (x) => (box.checked = x);
  } else {
    const list = make("select", { disabled: frozen, onchange: () => set(declared.stops[list.selectedIndex], true) }, ...declared.stops.map((s) => make("option", {}, s === null ? "none" : String(s))));
    row.append(list);
    row.show = (x) => (list.selectedIndex = declared.stops.indexOf(x));
  }
  row.follow = () => {
    const used = !declared.when.length || declared.when.some((each) => Object.entries(each).every(([n, some]) => some.includes(state.values[n])));
    row.classList.toggle("wb-unused", !used);
    for (const input of row.querySelectorAll("input, select")) input.disabled = frozen || !used;
  };
  return row;
}

function copied(text, what, name = what) {
  const button = make("button", { type: "button", class: "wb-copy", "aria-label": `Copy ${name}` }, "Copy");
  button.addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(text); } catch {
      const box = make("textarea", {});
      box.value = text;
      document.body.append(box);
      box.select();
      document.execCommand("copy");
      box.remove();
    }
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  return make("div", { class: "wb-code", "data-what": what }, make("pre", {}, make("code", {}, text)), button);
}

function render({ model, el }) {
  const spec = model.get("spec"), first = model.get("view"), fixed = !!spec.fixed;
  const state = { values: { ...first.values }, seed: first.seed, bands: first.bands, rough: false };
  let seq = 0, waiting = 0, slow = 0, queued = null, pinned = null;
  const shownLimits = new Map();

  function ask(rest) {
    follow();
    state.rough = !rest;
    const message = { kind: "set", seq: ++seq, values: { ...state.values }, seed: state.seed, bands: state.bands, rest };
    if (waiting && performance.now() - waiting < PATIENCE) { queued = message; return; }
    send(message);
  }

  function send(message) {
    waiting = performance.now();
    clearTimeout(slow);
    slow = setTimeout(() => { root.classList.add("wb-busy"); statusText.textContent = "working …"; }, SLOW);
    model.send(message);
  }

  const controls = spec.controls.map((c) => control(c, state, ask, fixed));
  const follow = () => controls.forEach((c) => c.follow());
  const again = make("button", { type: "button", onclick: () => { state.seed += state.bands ? spec.seeds : 1; ask(true); }, title: "Other noise, from another seed" }, "Draw again");
  const bands = make("input", { type: "checkbox", onchange: () => { state.bands = bands.checked; ask(true); } });
  const pin = make("button", { type: "button", "aria-pressed": "false", title: "Keep these curves, pale, to compare" }, "Pin");
  pin.addEventListener("click", () => {
    pinned = pinned ? null : model.get("view").charts;
    pin.setAttribute("aria-pressed", String(!!pinned));
    draw();
  });
  const stop = make("button", { type: "button", class: "wb-stop", disabled: true, onclick: () => model.send({ kind: "stop" }) }, "Stop");
  const save = make("button", { type: "button", title: "PDF, SVG and PNG, with rows and manifest", onclick: () => { if (!model.get("view").error) statusText.textContent = "saving …"; model.send({ kind: "export" }); } }, "Export");
  const bar = make("progress", { max: 1, value: 0, hidden: true, "aria-label": "seeds done" });
  const statusText = make("span", { class: "wb-message", role: "status" });
  const wrong = make("p", { class: "wb-error", role: "alert", hidden: true });
  const pictures = make("div", { class: "wb-charts" }), facts = make("div", { class: "wb-facts" });
  const chance = spec.noise_note ? [again, make("label", { class: "wb-bands" }, bands, `bands over ${spec.seeds} seeds`)] : [];
  const tools = fixed ? [pin] : [...chance, pin, stop, save];
  // On a page without a kernel controls come in groups, under what each group can do.
  const groupedControls = spec.controls.flatMap(({ group }, i) =>
    group && group !== spec.controls[i - 1]?.group ? [make("p", { class: "wb-group" }, group), controls[i]] : [controls[i]]);
  const form = make("form", { class: "wb-controls", "aria-label": `Controls of ${spec.title}`, onsubmit: (e) => e.preventDefault() }, ...groupedControls, make("div", { class: "wb-tools" }, ...tools));
  const status = make("div", { class: "wb-status" }, bar, statusText);
  const root = make("section", { class: "wb", "aria-label": spec.title, "data-panel": spec.name, "data-lm-suppress-shortcuts": "true" },
    make("header", {}, make("h3", {}, spec.title), make("p", {}, spec.words)),
    make("div", { class: "wb-body" }, form, make("div", { class: "wb-stage" }, wrong, pictures, status, facts)));
  for (const name of ["keydown", "keyup", "keypress"]) root.addEventListener(name, (e) => e.stopPropagation());

  function draw() {
    const view = model.get("view");
    wrong.hidden = !view.error;
    wrong.textContent = view.error;
    for (const part of [pictures, facts]) part.classList.toggle("wb-old", !!view.error);
    root.dataset.seq = view.seq;
    root.dataset.exact = view.exact;
    if (view.error) return;
    const active = root.getRootNode().activeElement;
    const focused = ["summary", ".wb-copy"].map((kind) => [kind, [...root.querySelectorAll(kind)].indexOf(active)]);
    const wide = pictures.clientWidth || 2 * 360 + GAP;
    const many = view.charts.length, fit = Math.max(1, Math.min(many, Math.floor((wide + GAP) / (LEAST + GAP))));
    const columns = many === 4 && fit === 3 ? 2 : fit;
    const W = Math.min(MOST, (wide - GAP * (columns - 1)) / columns), size = [W, Math.max(170, Math.round(0.64 * W))];
    pictures.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    const open = [...pictures.children].map((f) => f.querySelector("details")?.open);
    pictures.replaceChildren(...view.charts.map((chart, i) => {
      const limitsOfChart = shownLimits.get(chart.title) ?? shownLimits.set(chart.title, {}).get(chart.title);
      const drawn = chart.kind === "cells" ? cells(chart, size) : curves(chart, pinned?.[i]?.kind === "curves" ? pinned[i] : null, limitsOfChart, size);
      const figure = make("figure", {}, make("figcaption", {}, chart.title), drawn.node, make("div", { class: "wb-keys" }, ...drawn.legend.map(key)), numbers(chart));
      if (drawn.sx) figure.append(tip(figure, chart, drawn.sx, size[0]));
      if (open[i] && figure.querySelector("details")) figure.querySelector("details").open = true;
      return figure;
    }));
    const line = ([what, text]) => make("div", {}, make("dt", {}, what), make("dd", {}, text));
    const guarantee = make("dd", {}, make("b", {}, view.guarantee), make("br"), make("span", { class: "wb-simulated" }, view.simulated));
    const ledger = make("table", {}, make("caption", {}, "Ledger"), make("thead", {}, make("tr", {}, ...["look", "cost", "neighbours"].map((t) => make("th", { scope: "col" }, t)))), make("tbody", {}, ...view.ledger.map((r) => make("tr", {}, ...r.map((t) => make("td", {}, t))))));
    facts.replaceChildren(
      make("dl", {}, make("div", {}, make("dt", {}, "guarantee"), guarantee), ...view.facts.map(line)),
      ...(view.ledger.length ? [ledger] : []),
      make("p", { class: "wb-noise" }, spec.noise_note),
      copied(view.code, "the code"), ...view.commands.map((c) => copied(c, "the command", `the ${c.split(" ")[1]} command`)));
    for (const [kind, i] of focused) root.querySelectorAll(kind)[i]?.focus({ preventScroll: true });
    if (view.note) statusText.textContent = view.note;
    else if (!statusText.querySelector("a")) statusText.textContent = fixed ? "" : view.exact ? "exact" : "rough while you drag";
  }

  function answered() {
    const view = model.get("view");
    if (view.seq >= seq || view.error) statusText.replaceChildren();
    draw();
    if (view.seq < seq && !queued) return;
    waiting = 0;
    clearTimeout(slow);
    root.classList.remove("wb-busy");
    if (queued) { const message = queued; queued = null; send(message); return; }
    if ((fixed || !view.error) && view.seq === seq) {
      state.values = { ...view.values };
      controls.forEach((c) => c.show(view.values[c.dataset.name]));
      follow();
    }
  }

  function progressed() {
    const progress = model.get("progress") ?? {}, on = progress.of !== undefined;
    stop.disabled = !on;
    bar.hidden = !on;
    if (on) { bar.value = progress.done / progress.of; statusText.textContent = `exact: ${progress.done} of ${progress.of} seeds`; }
  }

  function saved(message, buffers) {
    if (message.kind !== "saved") return;
    const data = buffers?.[0], link = make("a", {}, "download");
    if (data) { link.href = URL.createObjectURL(new Blob([data], { type: "application/zip" })); link.download = `${message.name}.zip`; }
    statusText.replaceChildren(`saved in ${message.path} · `, link);
  }

  controls.forEach((c) => c.show(first.values[c.dataset.name]));
  bands.checked = state.bands;
  follow();
  el.append(root);
  draw();
  let width = pictures.clientWidth;
  const watch = new ResizeObserver(() => { if (Math.abs(pictures.clientWidth - width) > 8) { width = pictures.clientWidth; draw(); } });
  watch.observe(pictures);
  model.on("change:view", answered);
  model.on("change:progress", progressed);
  model.on("msg:custom", saved);
  if (!fixed) model.send({ kind: "ready" });
  return () => { clearTimeout(slow); watch.disconnect(); model.off("change:view", answered); model.off("change:progress", progressed); model.off("msg:custom", saved); };
}

export default { render };
