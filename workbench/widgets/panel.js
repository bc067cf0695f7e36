// The panel on a page: controls, pictures, and what reproduces them. It shows what it is sent and computes
// nothing. Charts are drawn by `charts.js`, which comes before it in the same module.

const LEAST = 235, MOST = 560, GAP = 18; // px, of a chart's width and between charts
const PATIENCE = 4000; // ms in which an unanswered question holds back the next, but not those about figures
const BAND = 20; // releases behind a band
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
  if (typeof x !== "number") return String(x ?? "auto");
  return Number.isInteger(x) && Math.abs(x) < 1e15 ? x.toLocaleString("en") : String(x);
}

// ---- controls

function control(declared, state, ask) {
  const name = declared.unit ? `${declared.label} (${declared.unit})` : declared.label;
  const group = declared.kind === "several"; // whose boxes have labels of their own
  const row = make(group ? "fieldset" : "label", { class: `wb-control wb-${declared.kind}`, title: declared.doc,
    "data-name": declared.name }, make(group ? "legend" : "span", { class: "wb-name" }, name));
  const set = (x, rest) => { state.values[declared.name] = x; ask(declared, rest); };
  if (declared.kind === "slider") {
    const slide = make("input", { type: "range", min: 0, max: declared.stops.length - 1, step: 1,
      "aria-label": name });
    const box = make("input", { type: "number", step: "any", "aria-label": `${name}, any number`, class: "wb-box",
      placeholder: declared.optional ? "auto" : "" });
    const nearest = (x) => declared.stops.reduce((best, s, i) =>
      (Math.abs(s - x) < Math.abs(declared.stops[best] - x) ? i : best), 0);
    slide.addEventListener("input", () => {
      const x = declared.stops[+slide.value];
      box.value = x;
      slide.setAttribute("aria-valuetext", grouped(x));
      set(x, false);
    });
    // Dragged away and back, a slider tells of no change.
    for (const event of ["change", "pointerup", "pointercancel", "keyup", "blur"])
      slide.addEventListener(event, () => { if (state.rough) ask(declared, true); });
    box.addEventListener("change", () => {
      if (box.value === "" && !declared.optional) { box.value = state.values[declared.name]; return; }
      if (box.value !== "") slide.value = nearest(+box.value);
      set(box.value === "" ? null : +box.value, true);
    });
    row.append(slide, box);
    row.show = (x) => {
      if (document.activeElement !== slide) slide.value = nearest(x ?? declared.stops[declared.stops.length >> 1]);
      if (document.activeElement !== box) box.value = x ?? "";
      row.classList.toggle("wb-auto", x === null);
      slide.setAttribute("aria-valuetext", grouped(x));
    };
  } else if (declared.kind === "switch") {
    const box = make("input", { type: "checkbox", onchange: () => set(box.checked, true) });
    row.prepend(box);
    row.show = (x) => (box.checked = x);
  } else if (group) {
    const boxes = declared.stops.map((s) => make("input", { type: "checkbox", value: s,
      onchange: () => set(boxes.filter((b) => b.checked).map((b) => b.value), true) }));
    row.append(...boxes.map((b, i) => make("label", {}, b, declared.shown[i])));
    row.show = (x) => boxes.forEach((b) => (b.checked = x.includes(b.value)));
  } else if (declared.kind === "text") {
    const box = make("input", { type: "text", class: "wb-box", onchange: () => set(box.value, true) });
    row.append(box);
    row.show = (x) => { if (document.activeElement !== box) box.value = x; };
  } else {
    const list = make("select", { onchange: () => set(declared.stops[list.selectedIndex], true) },
      ...declared.shown.map((text) => make("option", {}, text)));
    row.append(list);
    row.show = (x) => (list.selectedIndex = declared.stops.indexOf(x));
  }
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

// ---- links: a fragment names the panel and its settings; the token of a server stays out of it

function linkTo(name, words) {
  const place = new URL(location.href);
  place.searchParams.delete("token");
  place.hash = words.length ? `${name}?${words.map((w) => encodeURIComponent(w).replace("%3D", "=")).join("&")}` : name;
  return place.href;
}

function linked(name) {
  const [panel, settings] = location.hash.slice(1).split("?");
  return panel === name && settings ? settings.split("&").map(decodeURIComponent) : null;
}

function isDark(root) {
  const probe = make("i", { style: "color: var(--jp-layout-color0, #fff)" });
  root.append(probe);
  // there is none off the page
  const [r, g, b] = (getComputedStyle(probe).color.match(/[\d.]+/g) ?? [255, 255, 255]).map(Number);
  probe.remove();
  return r + g + b < 384;
}

// ---- the panel

async function render({ model, el, host }) {
  const vega = await sharedVega(model, host);
  const first = JSON.parse(model.get("view"));
  const state = { values: { ...first.values }, rough: false };
  let spec = model.get("spec"), view = first, controls = [];
  let gone = false, seq = 0, waiting = 0, slow = 0, queued = null, pinned = null, shownCharts = [];

  function ask(declared, rest) {
    state.rough = !rest;
    if (spec.slow && !rest) return;
    const values = { ...state.values };
    if (declared) { // the one that moved comes last: it wins, and errors are its own
      delete values[declared.name];
      values[declared.name] = state.values[declared.name];
    }
    const message = { kind: "set", seq: ++seq, values, rest };
    if (!spec.slow && waiting && performance.now() - waiting < PATIENCE) { queued = message; return; }
    send(message);
  }

  function send(message) {
    if (gone) return;
    waiting = performance.now();
    clearTimeout(slow);
    slow = setTimeout(working, SLOW);
    model.send(message);
  }

  function working() {
    wrong.remove(); // of the setting before
    root.classList.add("wb-busy");
    statusText.textContent = "working …";
  }

  const button = (text, title, onclick, more = {}) => make("button", { type: "button", title, onclick, ...more }, text);
  const again = button("Draw again", "Other noise, from another seed",
    () => { state.values.seed += state.values.seeds; ask(null, true); });
  const bands = make("input", { type: "checkbox",
    onchange: () => { state.values.seeds = bands.checked ? BAND : 1; ask(null, true); } });
  const pin = button("Pin", "Keep these curves, pale, to compare", () => {
    pinned = pinned ? null : view.charts;
    pin.setAttribute("aria-pressed", String(!!pinned));
    draw();
  }, { "aria-pressed": "false" });
  const reset = button("Reset", "Every setting at its start", () => {
    spec.controls.filter((c) => !c.resets).forEach((c) => (state.values[c.name] = c.value));
    ask(null, true);
  });
  const stop = button("Stop", "End what is being drawn", () => model.send({ kind: "stop" }),
    { class: "wb-stop", disabled: true });
  const save = button("Export", "PDF, SVG and PNG, with rows and manifest", () => {
    if (!view.error) statusText.textContent = "saving …";
    model.send({ kind: "export" });
  });
  const bar = make("progress", { max: 1, value: 0, hidden: true, "aria-label": "done" });
  const statusText = make("span", { class: "wb-message", role: "status" });
  const wrong = make("p", { class: "wb-error", role: "alert" });
  const pictures = make("div", { class: "wb-charts" }), facts = make("div", { class: "wb-facts" });
  const lead = make("p", { class: "wb-lead" }), title = make("h3", {}), words = make("p", {});
  const top = make("div", { class: "wb-top" }), compared = make("span", { class: "wb-compared" });
  const rest = make("div", { class: "wb-rest" }), count = make("span", {});
  const more = make("details", { class: "wb-more" }, make("summary", {}, "More settings ", count), rest);
  const chance = make("span", { class: "wb-chance" }, again, make("label", {}, bands,
    `bands over ${BAND} seeds`), pin);
  const tools = make("div", { class: "wb-tools" }, compared, chance, reset, stop, save);
  const stage = make("div", { class: "wb-stage" }, lead, pictures,
    make("div", { class: "wb-status" }, bar, statusText));
  const form = make("form", { onsubmit: (e) => e.preventDefault() }, top, tools,
    make("div", { class: "wb-body" }, stage, more));
  const root = make("section", { class: "wb", "data-lm-suppress-shortcuts": "true" },
    make("header", {}, title, words), form, facts);
  for (const name of ["keydown", "keyup", "keypress"]) root.addEventListener(name, (e) => e.stopPropagation());

  // The controls of the subject as it is now; the focus stays where it was.
  function build() {
    spec = model.get("spec");
    const active = root.getRootNode().activeElement, at = active?.closest?.("[data-name]")?.dataset.name;
    const inputs = (name) => [...root.querySelectorAll(`[data-name="${name}"] :is(input, select)`)];
    const place = at ? inputs(at).indexOf(active) : -1;
    controls = spec.controls.map((c) => control(c, state, ask));
    const of = (kind) => controls.filter((_, i) => spec.controls[i].place === kind);
    top.replaceChildren(...of("top"));
    compared.replaceChildren(...of("tools"));
    rest.replaceChildren(...of("more"));
    count.textContent = `(${of("more").length})`;
    more.hidden = !of("more").length;
    chance.hidden = !spec.noise_note;
    title.textContent = spec.title;
    words.textContent = spec.words;
    root.dataset.panel = spec.name;
    root.setAttribute("aria-label", spec.title);
    form.setAttribute("aria-label", `Controls of ${spec.title}`);
    if (place >= 0) inputs(at)[place]?.focus({ preventScroll: true });
    follow();
  }

  function follow() {
    controls.forEach((c) => c.show(state.values[c.dataset.name]));
    bands.checked = state.values.seeds > 1;
  }

  function draw() {
    wrong.remove();
    wrong.textContent = view.error;
    if (view.error) (controls.find((c) => c.dataset.name === view.at) ?? stage).append(wrong);
    for (const part of [pictures, facts]) part.classList.toggle("wb-old", !!view.error);
    root.dataset.seq = view.seq;
    root.dataset.exact = view.exact;
    if (view.error) return;
    lead.textContent = view.lead;
    drawPictures();
    drawFacts();
    if (view.note) statusText.textContent = view.note;
    else if (!statusText.querySelector("a")) statusText.textContent = view.exact ? "exact" : !spec.slow
      ? "rough while you drag" : view.image || view.table ? "rough" : "";
    if (view.old) working();
  }

  function drawPictures() {
    if (view.image || view.table) {
      shownCharts.forEach((shown) => shown.view.finalize());
      shownCharts = [];
      const box = make("div", { class: "wb-scroll wb-table" });
      box.innerHTML = view.table; // written by pandas, which escapes
      const image = make("img", { alt: spec.title, src: `data:image/png;base64,${view.image}` });
      pictures.style.gridTemplateColumns = "minmax(0, 1fr)";
      pictures.replaceChildren(make("figure", { class: "wb-image" }, view.image ? image : box));
      return;
    }
    const wide = pictures.clientWidth || 2 * 360 + GAP;
    const many = view.charts.length, fit = Math.max(1, Math.min(many, Math.floor((wide + GAP) / (LEAST + GAP))));
    const columns = Math.ceil(many / Math.ceil(many / fit)); // rows of like length
    const W = Math.floor(Math.min(MOST, (wide - GAP * (columns - 1)) / columns));
    pictures.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    const before = shownCharts;
    shownCharts = view.charts.map((chart, i) => {
      const ghost = pinned?.[i]?.kind === "curves" ? pinned[i] : null;
      const same = before.find((shown) => shown.chart.title === chart.title);
      return figureOf(vega, chart, ghost, same, W, spec.markers);
    });
    before.filter((shown) => !shownCharts.includes(shown)).forEach((shown) => shown.view.finalize());
    const figures = shownCharts.map((shown) => shown.figure);
    if (figures.length !== pictures.children.length || figures.some((f, i) => f !== pictures.children[i]))
      pictures.replaceChildren(...figures);
  }

  function drawFacts() {
    const active = root.getRootNode().activeElement;
    const place = [...facts.querySelectorAll(".wb-copy")].indexOf(active);
    const line = ([what, text]) => make("div", { class: what.startsWith("Caution") ? "wb-caution" : "" },
      make("dt", {}, what), make("dd", {}, text));
    facts.replaceChildren(
      make("dl", {}, ...view.facts.map(line)),
      make("p", { class: "wb-noise" }, spec.noise_note),
      ...(view.code ? [copied(view.code, "the code")] : []),
      ...view.commands.map((c) => copied(c, "the command", `the ${c.split(" ")[1]} command`)),
      copied(linkTo(spec.name, view.words), "the link"));
    facts.querySelectorAll(".wb-copy")[place]?.focus({ preventScroll: true });
  }

  function answered() {
    view = JSON.parse(model.get("view"));
    if (view.seq >= seq || view.error) statusText.replaceChildren();
    if (view.seq < seq && !queued) { draw(); return; }
    waiting = 0;
    clearTimeout(slow);
    root.classList.remove("wb-busy");
    if (queued) { const message = queued; queued = null; draw(); send(message); return; }
    if (!view.error) {
      state.values = { ...view.values };
      follow();
    }
    draw();
  }

  function progressed() {
    const progress = model.get("progress") ?? {}, on = progress.of !== undefined;
    stop.disabled = !on;
    bar.hidden = !on;
    if (on) {
      bar.value = progress.done / progress.of;
      statusText.textContent = spec.slow ? `${progress.done} of ${progress.of} trials`
        : `exact: ${progress.done} of ${progress.of} seeds`;
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

  function ended() {
    gone = true;
    clearTimeout(slow);
    root.classList.remove("wb-busy");
    stop.disabled = bar.hidden = true;
    statusText.textContent = "The kernel has ended. Run the cell again, or load the page again.";
  }

  const themed = () => root.classList.toggle("wb-dark", isDark(root));
  el.append(root);
  build();
  themed();
  draw();
  let width = pictures.clientWidth;
  const watch = new ResizeObserver(() => {
    if (Math.abs(pictures.clientWidth - width) > 8) { width = pictures.clientWidth; themed(); draw(); }
  });
  watch.observe(pictures);
  const scheme = matchMedia("(prefers-color-scheme: dark)"), theme = new MutationObserver(themed);
  scheme.addEventListener("change", themed);
  theme.observe(document.body, { attributes: true });
  const heard = { "change:spec": build, "change:view": answered, "change:progress": progressed,
    "msg:custom": saved, comm_live_update: ended };
  for (const [event, handle] of Object.entries(heard)) model.on(event, handle);
  const words0 = linked(spec.name);
  model.send(words0 ? { kind: "link", words: words0 } : { kind: "ready" });
  return () => {
    clearTimeout(slow);
    shownCharts.forEach((shown) => shown.view.finalize());
    watch.disconnect();
    theme.disconnect();
    scheme.removeEventListener("change", themed);
    for (const [event, handle] of Object.entries(heard)) model.off(event, handle);
  };
}

export default { render };
