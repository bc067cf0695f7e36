// One panel on a page: controls, charts, and what reproduces them. It shows what it is sent and computes
// nothing. Charts are drawn by `charts.js`, which stands before it.

const LEAST = 235, MOST = 560, GAP = 18; // px, of a chart's width and between charts
const PATIENCE = 4000; // ms after which an unanswered question no longer holds back the next
const SLOW = 400; // ms after which a panel says that it works

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, x] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), x);
    else if (x !== false && x !== null && x !== undefined) node.setAttribute(name, x === true ? "" : x);
  }
  node.append(...children.filter((c) => c !== null && c !== undefined));
  return node;
}

function grouped(x) {
  if (typeof x !== "number") return String(x ?? "none");
  return Number.isInteger(x) && Math.abs(x) < 1e15 ? x.toLocaleString("en") : String(x);
}

// ---- controls

function control(declared, state, ask) {
  const name = declared.unit ? `${declared.label} (${declared.unit})` : declared.label;
  const head = make("span", { class: "wb-name" }, name);
  const row = make("label", { class: `wb-control wb-${declared.kind}`,
    title: declared.doc, "data-name": declared.name }, head);
  const set = (x, rest) => { state.values[declared.name] = x; ask(rest); };
  if (declared.kind === "slider") {
    const slide = make("input", { type: "range", min: 0, max: declared.stops.length - 1, step: 1,
      "aria-label": name });
    const box = make("input", { type: "number", step: "any", "aria-label": `${name}, any number`, class: "wb-box" });
    const nearest = (x) => declared.stops.reduce((best, s, i) =>
      (Math.abs(s - x) < Math.abs(declared.stops[best] - x) ? i : best), 0);
    slide.addEventListener("input", () => {
      const x = declared.stops[+slide.value]; box.value = x;
      slide.setAttribute("aria-valuetext", grouped(x)); set(x, false);
    });
    // Dragged away and back, a slider tells of no change.
    for (const name of ["change", "pointerup", "pointercancel", "keyup", "blur"])
      slide.addEventListener(name, () => { if (state.rough) ask(true); });
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
    const box = make("input", { type: "checkbox", onchange: () => set(box.checked, true) });
    row.prepend(box);
    row.show = (x) => (box.checked = x);
  } else {
    const list = make("select", { onchange: () => set(declared.stops[list.selectedIndex], true) },
      ...declared.stops.map((s, i) => make("option", {}, declared.shown[i] ?? String(s ?? "none"))));
    row.append(list);
    row.show = (x) => (list.selectedIndex = declared.stops.indexOf(x));
  }
  row.follow = () => {
    const used = !declared.when.length || declared.when.some((each) =>
      Object.entries(each).every(([n, some]) => some.includes(state.values[n])));
    row.classList.toggle("wb-unused", !used);
    for (const input of row.querySelectorAll("input, select")) input.disabled = !used;
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

async function render({ model, el, host }) {
  const vega = await sharedVega(model, host);
  const spec = model.get("spec"), first = JSON.parse(model.get("view"));
  const state = { values: { ...first.values }, seed: first.seed, bands: first.bands, rough: false };
  let view = first, seq = 0, waiting = 0, slow = 0, queued = null, pinned = null, charts = [];

  function ask(rest) {
    follow();
    state.rough = !rest;
    const message = { kind: "set", seq: ++seq, values: { ...state.values }, seed: state.seed, bands: state.bands,
      rest };
    if (waiting && performance.now() - waiting < PATIENCE) { queued = message; return; }
    send(message);
  }

  function send(message) {
    waiting = performance.now();
    clearTimeout(slow);
    slow = setTimeout(() => { root.classList.add("wb-busy"); statusText.textContent = "working …"; }, SLOW);
    model.send(message);
  }

  const controls = spec.controls.map((c) => control(c, state, ask));
  const follow = () => controls.forEach((c) => c.follow());
  const again = make("button", { type: "button",
    onclick: () => { state.seed += state.bands ? spec.seeds : 1; ask(true); },
    title: "Other noise, from another seed" }, "Draw again");
  const bands = make("input", { type: "checkbox", onchange: () => { state.bands = bands.checked; ask(true); } });
  const pin = make("button", { type: "button", "aria-pressed": "false",
    title: "Keep these curves, pale, to compare" }, "Pin");
  pin.addEventListener("click", () => {
    pinned = pinned ? null : view.charts;
    pin.setAttribute("aria-pressed", String(!!pinned));
    draw();
  });
  const stop = make("button", { type: "button", class: "wb-stop", disabled: true,
    onclick: () => model.send({ kind: "stop" }) }, "Stop");
  const save = make("button", { type: "button", title: "PDF, SVG and PNG, with rows and manifest",
    onclick: () => { if (!view.error) statusText.textContent = "saving …"; model.send({ kind: "export" }); } },
    "Export");
  const bar = make("progress", { max: 1, value: 0, hidden: true, "aria-label": "seeds done" });
  const statusText = make("span", { class: "wb-message", role: "status" });
  const wrong = make("p", { class: "wb-error", role: "alert", hidden: true });
  const pictures = make("div", { class: "wb-charts" }), facts = make("div", { class: "wb-facts" });
  const chance = spec.noise_note ? [again, make("label", { class: "wb-bands" }, bands,
    `bands over ${spec.seeds} seeds`)] : [];
  const form = make("form", { class: "wb-controls", "aria-label": `Controls of ${spec.title}`,
    onsubmit: (e) => e.preventDefault() }, ...controls,
    make("div", { class: "wb-tools" }, ...chance, pin, stop, save));
  const status = make("div", { class: "wb-status" }, bar, statusText);
  const root = make("section", { class: "wb", "aria-label": spec.title, "data-panel": spec.name,
    "data-lm-suppress-shortcuts": "true" },
    make("header", {}, make("h3", {}, spec.title), make("p", {}, spec.words)),
    make("div", { class: "wb-body" }, form, make("div", { class: "wb-stage" }, wrong, pictures, status, facts)));
  for (const name of ["keydown", "keyup", "keypress"]) root.addEventListener(name, (e) => e.stopPropagation());

  function draw() {
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
    const W = Math.floor(Math.min(MOST, (wide - GAP * (columns - 1)) / columns));
    pictures.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    const before = charts;
    charts = view.charts.map((chart, i) => {
      const compared = pinned?.[i]?.kind === "curves" ? pinned[i] : null;
      const same = before.find((shown) => shown.chart.title === chart.title);
      return figureOf(vega, chart, compared, same, W, spec.markers);
    });
    before.filter((shown) => !charts.includes(shown)).forEach((shown) => shown.view.finalize());
    const figures = charts.map((shown) => shown.figure);
    if (figures.length !== pictures.children.length || figures.some((f, i) => f !== pictures.children[i]))
      pictures.replaceChildren(...figures);
    const line = ([what, text]) => make("div", {}, make("dt", {}, what), make("dd", {}, text));
    const guarantee = make("dd", {}, make("b", {}, view.guarantee), make("br"),
      make("span", { class: "wb-simulated" }, view.simulated));
    const ledger = make("table", {}, make("caption", {}, "Ledger"),
      make("thead", {}, make("tr", {},
        ...["look", "cost", "neighbours"].map((t) => make("th", { scope: "col" }, t)))),
      make("tbody", {}, ...view.ledger.map((r) => make("tr", {}, ...r.map((t) => make("td", {}, t))))));
    facts.replaceChildren(
      make("dl", {}, make("div", {}, make("dt", {}, "guarantee"), guarantee), ...view.facts.map(line)),
      ...(view.ledger.length ? [ledger] : []),
      make("p", { class: "wb-noise" }, spec.noise_note),
      copied(view.code, "the code"), ...view.commands.map((c) =>
        copied(c, "the command", `the ${c.split(" ")[1]} command`)));
    for (const [kind, i] of focused) root.querySelectorAll(kind)[i]?.focus({ preventScroll: true });
    if (view.note) statusText.textContent = view.note;
    else if (!statusText.querySelector("a")) statusText.textContent = view.exact ? "exact"
      : "rough while you drag";
  }

  function answered() {
    view = JSON.parse(model.get("view"));
    if (view.seq >= seq || view.error) statusText.replaceChildren();
    draw();
    if (view.seq < seq && !queued) return;
    waiting = 0;
    clearTimeout(slow);
    root.classList.remove("wb-busy");
    if (queued) { const message = queued; queued = null; send(message); return; }
    if (!view.error && view.seq === seq) {
      state.values = { ...view.values };
      controls.forEach((c) => c.show(view.values[c.dataset.name]));
      follow();
    }
  }

  function progressed() {
    const progress = model.get("progress") ?? {}, on = progress.of !== undefined;
    stop.disabled = !on;
    bar.hidden = !on;
    if (on) {
      bar.value = progress.done / progress.of;
      statusText.textContent = `exact: ${progress.done} of ${progress.of} seeds`;
    }
  }

  function saved(message, buffers) {
    if (message.kind !== "saved") return;
    const data = buffers?.[0], link = make("a", {}, "download");
    if (data) {
      link.href = URL.createObjectURL(new Blob([data], { type: "application/zip" }));
      link.download = `${message.name}.zip`;
    }
    statusText.replaceChildren(`saved in ${message.path} · `, link);
  }

  controls.forEach((c) => c.show(first.values[c.dataset.name]));
  bands.checked = state.bands;
  follow();
  el.append(root);
  draw();
  let width = pictures.clientWidth;
  const watch = new ResizeObserver(() => {
    if (Math.abs(pictures.clientWidth - width) > 8) { width = pictures.clientWidth; draw(); }
  });
  watch.observe(pictures);
  model.on("change:view", answered);
  model.on("change:progress", progressed);
  model.on("msg:custom", saved);
  model.send({ kind: "ready" });
  return () => {
    clearTimeout(slow); charts.forEach((shown) => shown.view.finalize()); watch.disconnect();
    model.off("change:view", answered); model.off("change:progress", progressed); model.off("msg:custom", saved);
  };
}

export default { render };
