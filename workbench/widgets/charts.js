// Charts of a panel, which Vega draws in the look of the printed figures: what it is told, and the table and
// the tip that it lacks. `panel.js` follows in the same module.

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

// ---- Vega: one copy a page, which all panels use

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

async function vegaFrom(packed) {
  const vega = {};
  new Function("exports", "module", await unpacked(packed))(vega, {});
  vega.expressionFunction("number", number);
  vega.expressionFunction("percent", percent);
  return vega;
}

function sharedVega(model, host) {
  const script = async () => (await host.getModel(model.get("drawing"))).get("script");
  globalThis.workbenchVega ??= script().then(vegaFrom).catch((error) => {
    globalThis.workbenchVega = undefined; // the next panel asks again
    throw error;
  });
  return globalThis.workbenchVega;
}

// ---- axes

const FONT = "DejaVu Sans, system-ui, sans-serif", INK = "#333", THIN = 0.8;
const TEXT = { labelFont: FONT, labelFontSize: 10.5, labelColor: INK, titleFont: FONT, titleFontSize: 10.5,
  titleFontWeight: "normal", titleColor: INK };
const LOOK = {
  axis: { ...TEXT, grid: true, gridColor: "#e3e3e3", gridWidth: 0.7, domainColor: INK, domainWidth: THIN,
    ticks: false, labelPadding: 5, titlePadding: 5, labelOverlap: true },
  legend: { ...TEXT, labelFontSize: 11.5, orient: "bottom", symbolSize: 36, symbolOffset: 6, labelOffset: 12,
    columnPadding: 14, rowPadding: 3, offset: 4 },
};
const FITTED = { config: LOOK, autosize: { type: "fit-x", contains: "padding" },
  padding: { right: 6, top: 6, bottom: 2 } };

const kind = (axis) => (axis.log ? "log" : "linear");

// The next of 1, 2 and 5 times a power of ten that leaves a little room.
function step(x, up) {
  const power = 10 ** Math.floor(Math.log10(x)), steps = [0.5, 1, 2, 5, 10, 20].map((k) => k * power);
  return up ? steps.find((y) => y >= x * 1.05) : steps.findLast((y) => y <= x * 0.95);
}

// Limits that stay while what is drawn fits and fills them, so that moving a slider moves the curves.
function limits(vega, axis, values, before) {
  const drawn = values.filter((v) => v !== null && (!axis.log || v > 0));
  if (!drawn.length) return before ?? [1, 10];
  const length = ([low, high]) => (axis.log ? Math.log(high / low) : high - low);
  let low = Math.min(...drawn), high = Math.max(...drawn);
  const fits = before && low >= before[0] && high <= before[1];
  if (fits && length([low, high]) > 0.45 * length(before)) return before;
  if (axis.log) return [step(low, false), step(high, true)];
  if (low > 0 && low < high / 2) low = 0;
  return vega.scale("linear")().domain([low, high]).nice(5).domain();
}

function extent(axis, values) {
  const low = Math.min(...values), high = Math.max(...values);
  return low < high ? [low, high] : [low, axis.log ? low * 10 : low + 1];
}

// About how many ticks: of many decades the powers of ten alone.
function tickCount(axis, [low, high]) {
  const decades = axis.log ? Math.log10(high / low) : 0;
  return decades > 2 ? Math.min(6, Math.floor(decades)) : 6;
}

function axisOf(declared, scale, orient) {
  let text = declared.percent ? "percent(datum.value)" : "number(datum.value)";
  // Of the nine numbers of a decade, three have room.
  if (declared.log) text = `indexof([1, 2, 5], +format(datum.value, '.0e')[0]) < 0 ? '' : ${text}`;
  const labels = { update: { text: { signal: text } } };
  return { scale, orient, title: declared.label, tickCount: { signal: `${scale}ticks` }, encode: { labels } };
}

// ---- curves

const KEYED = ["shape", "fill", "stroke", "strokeWidth", "strokeDash", "opacity"]; // what tells series apart
const SIZE = 36; // px², of a mark

const constants = (values) => Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { value }]));

function stroke(line) {
  const width = line.name === "truth" ? 3.5 : line.marker === undefined ? 1 : 1.6;
  const dashes = line.dashed ? line.dashed.split(" ").map(Number) : [];
  return { stroke: line.color, strokeWidth: line.pale ? 1.1 : width, strokeDash: dashes,
    opacity: line.pale ? 0.45 : 1 };
}

// Dashed lines have hollow marks: two series of one look differ by them.
const filling = (line) => (line.dashed ? "#ffffff" : line.color);

function marksOf(line, i, markers) {
  const from = { data: `line${i}` }, x = { scale: "x", field: "x" }, y = (field) => ({ scale: "y", field });
  const path = { x, y: y("y"), defined: { signal: "datum.y !== null" }, ...constants(stroke(line)) };
  const marks = [{ type: "line", from, clip: true, encode: { update: path } }];
  if (line.low) {
    const band = { x, y: y("low"), y2: y("high"), ...constants({ fill: line.color, opacity: 0.2 }) };
    marks.unshift({ type: "area", from, clip: true, encode: { update: band } });
  }
  if (line.marker && !line.pale) {
    const ink = { shape: markers[line.marker], fill: filling(line), stroke: line.color,
      strokeWidth: line.dashed ? 1.2 : 0 };
    const size = { signal: `datum.y === null ? 0 : ${SIZE}` };
    marks.push({ type: "symbol", from, encode: { update: { x, y: y("y"), size, ...constants(ink) } } });
  }
  return marks;
}

function curves(vega, chart, pinned, before, width, markers) {
  const ghosts = (pinned?.lines ?? []).filter((l) => !l.dashed || l.marker !== undefined).map((l) =>
    ({ ...l, pale: true }));
  const lines = [...ghosts, ...chart.lines], log = chart.y.log;
  const xs = extent(chart.x, chart.lines.flatMap((l) => l.x));
  const ys = limits(vega, chart.y, lines.flatMap((l) => [...l.y, ...(l.high ?? []), ...((!log && l.low) || [])]),
    before?.ys);
  const seen = (y) => (y === null || (log && !(y > 0)) ? null : y);
  const rows = (l) => l.x.map((x, i) => ({ x, y: seen(l.y[i]), low: seen(l.low?.[i] ?? null) ?? ys[0],
    high: l.high?.[i] }));
  const named = [...chart.lines, ...ghosts.slice(0, 1).map((l) => ({ ...l, name: "pinned" }))];
  const keys = named.map((l) => ({ ...stroke(l), fill: filling(l),
    shape: `M-4,0H4${(!l.pale && markers[l.marker]) || ""}` }));
  const longest = Math.max(...named.map((l) => l.name.length));
  const wide = chart.x.log || chart.lines.every((l) => l.marker) ? 6 : 0; // px, for marks at the ends
  const ends = chart.lines.map((l) => `${l.name}: ${number(l.y.findLast((y) => y !== null) ?? 0)} at the right end`);
  const spec = {
    ...FITTED, width, height: Math.max(130, Math.round(0.64 * width) - 40),
    data: lines.map((_, i) => ({ name: `line${i}` })),
    scales: [
      { name: "x", type: kind(chart.x), domain: { signal: "xs" }, range: "width", zero: false, padding: wide },
      { name: "y", type: kind(chart.y), domain: { signal: "ys" }, range: "height", zero: false },
      ...KEYED.map((name) => ({ name, type: "ordinal", domain: named.map((l) => l.name),
        range: keys.map((key) => key[name]) })),
    ],
    axes: [axisOf(chart.x, "x", "bottom"), axisOf(chart.y, "y", "left")],
    legends: [{
      ...Object.fromEntries(KEYED.map((name) => [name, name])),
      columns: Math.max(1, Math.floor((width - 40) / (36 + 6.6 * longest))), labelLimit: width - 90,
    }],
    marks: lines.flatMap((l, i) => marksOf(l, i, markers)).map((mark) => ({ ...mark, aria: false })),
  };
  return {
    spec, ys, renderer: "svg",
    signals: { xs, ys, xticks: tickCount(chart.x, xs), yticks: tickCount(chart.y, ys) },
    data: Object.fromEntries(lines.map((l, i) => [`line${i}`, rows(l)])),
    description: `${chart.title}. ${chart.y.label} over ${chart.x.label}. ${ends.join("; ")}`,
  };
}

// ---- maps

function cells(chart, width) {
  const [x0, y0, x1, y1] = chart.boxes, xs = [Math.min(...x0), Math.max(...x1)],
    ys = [Math.min(...y0), Math.max(...y1)];
  const least = (4 * (xs[1] - xs[0])) / width, [from, to] = chart.limits.map(end); // 4 px
  const outlined = (i) => chart.outlines && Math.min(x1[i] - x0[i], y1[i] - y0[i]) >= least;
  const color = (shade) => (shade === null ? null : chart.colors[Math.round(shade * (chart.colors.length - 1))]);
  const boxes = x0.map((x, i) => ({ x, y: y0[i], x2: x1[i], y2: y1[i], fill: color(chart.shade[i]),
    stroke: outlined(i) ? "#999" : null }));
  const side = (scale, field, offset = 0) => ({ scale, field, offset }); // neighbours overlap: no seams
  const corners = { x: side("x", "x"), x2: side("x", "x2", 0.6), y: side("y", "y", 0.6), y2: side("y", "y2") };
  const ink = { fill: { field: "fill" }, stroke: { field: "stroke" }, strokeWidth: { value: 0.5 } };
  const named = (scale, orient, i) => ({ scale, orient, title: chart.axes[i], labels: false, grid: false });
  const spec = {
    ...FITTED, width, height: Math.round(chart.high * width),
    data: [{ name: "boxes" }],
    scales: [
      { name: "x", domain: { signal: "xs" }, range: "width", zero: false },
      { name: "y", domain: { signal: "ys" }, range: "height", zero: false },
      { name: "shade", domain: [0, 1], range: { scheme: chart.colors } },
    ],
    axes: chart.axes.some(Boolean) ? [named("x", "bottom", 0), named("y", "left", 1)] : [],
    legends: [{
      fill: "shade", type: "gradient", direction: "horizontal", title: chart.label, values: [0, 1],
      gradientThickness: 8, gradientLength: Math.min(160, width - 60),
      encode: { labels: { update: { text: { signal: "ends[datum.value]" } } } },
    }],
    marks: [{ type: "rect", from: { data: "boxes" }, aria: false, encode: { update: { ...corners, ...ink } } }],
  };
  const description = `${chart.title}. ${x0.length} boxes, shaded by ${chart.label}, from ${from} to ${to}`;
  return { spec, renderer: "canvas", signals: { ends: [from, to], xs, ys }, data: { boxes }, description };
}

// ---- figures

// A figure of the chart. Where it differs from the one before in numbers alone, that one stays and is told
// them; where it does not differ, nothing is done.
function figureOf(vega, chart, pinned, before, width, markers) {
  const asked = JSON.stringify([chart, pinned, width]), flat = chart.kind === "cells";
  if (before?.asked === asked) return before;
  const told = flat ? cells(chart, width) : curves(vega, chart, pinned, before, width, markers);
  const key = JSON.stringify(told.spec);
  const shown = before ?? {};
  if (shown.key !== key) {
    const box = make("div", {}), signals = Object.entries(told.signals).map(([name, value]) => ({ name, value }));
    shown.view?.finalize();
    shown.view = new vega.View(vega.parse({ ...told.spec, signals }), { renderer: told.renderer, container: box });
    const beside = flat ? [] : [(shown.numbers ??= numbers(shown)), tip(box, shown)];
    shown.figure = make("figure", {}, make("figcaption", {}, chart.title), box, ...beside);
  }
  Object.assign(shown, { asked, key, chart, ys: told.ys });
  for (const [name, x] of Object.entries(told.signals)) shown.view.signal(name, x);
  for (const [name, rows] of Object.entries(told.data)) shown.view.data(name, rows);
  shown.view.description(told.description).run();
  shown.numbers?.dispatchEvent(new Event("toggle"));
  return shown;
}

function numbers(shown) {
  const box = make("details", {}, make("summary", {}, "Numbers"));
  box.addEventListener("toggle", () => {
    if (!box.open) return;
    const { lines, x, y } = shown.chart;
    const row = (...texts) => make("tr", {}, ...texts.map((text) => make("td", {}, text)));
    const rows = lines.flatMap((l) => l.x.map((at, i) =>
      row(l.name, number(at), l.y[i] === null ? "" : number(l.y[i]))));
    const head = ["series", x.label, y.label].map((text) => make("th", { scope: "col" }, text));
    const table = make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
    box.replaceChildren(box.firstChild, make("div", { class: "wb-scroll" }, table));
  });
  return box;
}

function tip(node, shown) {
  const box = make("div", { class: "wb-tip", "aria-hidden": "true", hidden: true });
  node.addEventListener("pointermove", (event) => {
    const { left, width } = node.getBoundingClientRect(), place = shown.view.scale("x");
    const far = (x) => Math.abs(place(x) - (event.clientX - left - shown.view.origin()[0]));
    const near = shown.chart.lines.filter((l) => l.marker !== undefined).map((l) => {
      const i = l.x.reduce((best, x, j) => (far(x) < far(l.x[best]) ? j : best), 0);
      return [l.name, l.x[i], l.y[i]];
    });
    if (!near.length) return;
    const lines = near.map(([name, , y]) => make("div", {}, `${name}: ${y === null ? "none" : number(y)}`));
    box.replaceChildren(make("b", {}, number(near[0][1])), ...lines);
    box.hidden = false;
    box.style.left = `${Math.min(event.clientX - left + 12, width - 130)}px`;
  });
  node.addEventListener("pointerleave", () => (box.hidden = true));
  return box;
}
