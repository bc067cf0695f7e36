// Cormode et al. 2012: compact summaries of a sparse table.
"use strict";

const { side, runs, thresholds, epsilons } = DATA;
const SAMPLES = [100, 200, 500, 1000, 2000, 5000, Infinity];
const SIZES = [1, 2, 4, 8, 16, 32, 64];
const cells = side * side;

const truth = new Int32Array(cells);
for (let i = 0, cell = -1; i < runs.length; i += 2) {
  cell += runs[i];
  truth[cell] = runs[i + 1];
}

// What is published for one seed: the noisy table, and the summary of it.
function published(seed, e, t, s) {
  const next = words(seed);
  const every = new Int32Array(cells);
  for (let i = 0; i < cells; i++) every[i] = truth[i] + noise(next(), thresholds[e]);
  const kept = [];
  for (let i = 0; i < cells; i++) if (every[i] !== 0 && Math.abs(every[i]) >= t) kept.push(i);
  const idea = new Float64Array(cells);
  if (kept.length <= SAMPLES[s]) {
    for (const i of kept) idea[i] = every[i];
    return { every, idea, kept };
  }
  // Priority sampling: of weights |w| the largest |w|/r stay, r uniform; each counts at least the next priority.
  const priority = new Float64Array(cells);
  for (let i = 0; i < cells; i++) priority[i] = Math.abs(every[i]) / ((next() + 0.5) / 4294967296);
  kept.sort((a, b) => priority[b] - priority[a] || a - b);
  const least = priority[kept[SAMPLES[s]]];
  kept.length = SAMPLES[s];
  for (const i of kept) idea[i] = Math.sign(every[i]) * Math.max(Math.abs(every[i]), least);
  return { every, idea, kept };
}

// Sums over rectangles from sums over corners.
function corners(values) {
  const sums = new Float64Array((side + 1) * (side + 1));
  for (let y = 0; y < side; y++) {
    let row = 0;
    for (let x = 0; x < side; x++) {
      row += values[y * side + x];
      sums[(y + 1) * (side + 1) + x + 1] = sums[y * (side + 1) + x + 1] + row;
    }
  }
  return sums;
}

function sum(sums, [x0, y0, x1, y1]) {
  const at = (x, y) => sums[y * (side + 1) + x];
  return at(x1, y1) - at(x0, y1) - at(x1, y0) + at(x0, y0);
}

const trueSums = corners(truth);
const SQUARES = SIZES.map((size) => {
  const next = words(size);
  const place = () => next() % (side - size + 1);
  return Array.from({ length: 100 }, () => [place(), place()]).map(([x, y]) => [x, y, x + size, y + size]);
});
const errors = (sums) =>
  SQUARES.map((squares) => squares.reduce((e, q) => e + Math.abs(sum(sums, q) - sum(trueSums, q)), 0) / squares.length);

// Pictures
function paint(id, values) {
  const canvas = $(id).firstElementChild;
  canvas.width = canvas.height = side;
  const context = canvas.getContext("2d");
  const image = context.createImageData(side, side);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const ground = dark ? [21, 24, 27] : [255, 255, 255];
  const more = dark ? [140, 205, 255] : [0, 60, 120];
  const less = dark ? [255, 155, 94] : [194, 74, 0];
  for (let i = 0; i < cells; i++) {
    const value = values[i];
    const end = value < 0 ? less : more;
    const share = value === 0 ? 0 : 0.12 + 0.88 * Math.min(1, Math.log1p(Math.abs(value)) / Math.log(150));
    for (let k = 0; k < 3; k++) image.data[4 * i + k] = ground[k] + share * (end[k] - ground[k]);
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

function drawCurve(every, idea, theta) {
  const x = scale(1, 4096, 46, 372, true);
  const y = scale(0.1, 3000, 186, 26, true);
  let drawn = text(4, 12, "mean error of a square question (people)", "start", 'class="axis"');
  for (const v of [0.1, 1, 10, 100, 1000])
    drawn += `<path class="grid" d="M46 ${y(v)}H372"/>` + text(40, y(v) + 4, v, "end", 'class="axis"');
  for (const v of [1, 16, 256, 4096]) drawn += text(x(v), 203, v, "middle", 'class="axis"');
  drawn += text(474, 203, "cells", "end", 'class="axis"');
  const points = (errors) => errors.map((error, k) => [x(SIZES[k] ** 2), y(error)]);
  const [a, b] = apart([y(every.at(-1)) + 4, y(idea.at(-1)) + 4]);
  drawn += line(points(every), "--every", "5 3") + line(points(idea), "--idea");
  drawn +=
    text(378, a, "every cell", "start", 'style="fill:var(--every)"') +
    text(378, b, theta ? `filter, θ = ${theta}` : "summary", "start", 'style="fill:var(--idea)"');
  $("curve").innerHTML = drawn;
}

const ranges = {
  e: { low: 0, high: epsilons.length - 1, start: 10 },
  t: { low: 0, high: 60, start: 10 },
  s: { low: 0, high: SAMPLES.length - 1, start: SAMPLES.length - 1 },
  x: { low: 0, high: side - 1, start: 30 },
  y: { low: 0, high: side - 1, start: 30 },
  w: { low: 1, high: side, start: 28 },
  h: { low: 1, high: side, start: 20 },
  d: { low: 0, high: 4294967295, start: 7 },
};
const state = stateFromAddress(ranges);

function rectangle() {
  state.w = Math.min(state.w, side - state.x);
  state.h = Math.min(state.h, side - state.y);
  return [state.x, state.y, state.x + state.w, state.y + state.h];
}

function show() {
  const asked = rectangle();
  const epsilon = epsilons[state.e];
  const { every, idea, kept } = published(state.d, state.e, state.t, state.s);
  const sums = { truth: trueSums, every: corners(every), idea: corners(idea) };
  const ghosts = kept.filter((i) => truth[i] === 0).length;
  paint("truth", truth);
  paint("every", every);
  paint("idea", idea);
  for (const box of document.querySelectorAll(".asked")) {
    const [x, y, w, h] = [state.x, state.y, state.w, state.h].map((v) => `${(100 * v) / side}%`);
    Object.assign(box.style, { left: x, top: y, width: w, height: h });
  }
  $("e").value = state.e;
  $("t").value = state.t;
  $("s").value = state.s;
  $("e-out").textContent = epsilon;
  $("t-out").textContent = state.t;
  $("s-out").textContent = SAMPLES[state.s] === Infinity ? "all" : whole(SAMPLES[state.s]);
  $("true-answer").textContent = whole(sum(sums.truth, asked));
  $("every-answer").textContent = whole(sum(sums.every, asked));
  $("idea-answer").textContent = whole(sum(sums.idea, asked));
  $("every-size").textContent = `${whole(cells)} numbers, ${whole(cells - DATA.occupied)} of them pure noise`;
  $("idea-size").textContent = `${whole(kept.length)} numbers, ${whole(ghosts)} of them pure noise`;
  const [all, some] = [errors(sums.every), errors(sums.idea)];
  drawCurve(all, some, state.t);
  const worse = SIZES.findIndex((_, k) => some[k] > all[k]);
  const where =
    worse < 0
      ? "answers better at every size of question"
      : worse === 0
        ? "answers worse already for single cells: it drops too much, or samples too little"
        : `answers better up to squares of about <b>${whole(SIZES[worse - 1] ** 2)}</b> cells; ` +
          "beyond, what it left out adds up";
  $("says").innerHTML =
    `At ε = ${epsilon} the summary publishes <b>${whole(kept.length)}</b> numbers instead of ${whole(cells)}, ` +
    `<b>${whole(ghosts)}</b> of them pure noise. In this draw it ${where}.`;
  stateToAddress(state);
}

function drawAgain() {
  state.d = words(state.d + 1)();
  const asked = rectangle();
  const answers = { every: [], idea: [] };
  for (let k = 0; k < 20; k++) {
    const { every, idea } = published((state.d + k) >>> 0, state.e, state.t, state.s);
    answers.every.push(sum(corners(every), asked));
    answers.idea.push(sum(corners(idea), asked));
  }
  dots(
    $("dots"),
    [
      { label: "noise in every cell", colour: "--every", values: answers.every },
      { label: "filter, then sample", colour: "--idea", values: answers.idea },
    ],
    sum(trueSums, asked),
    "answer to the rectangle, 20 draws",
  );
  show();
}

const soon = oncePerFrame(show);
for (const id of ["e", "t", "s"]) {
  $(id).oninput = () => {
    state[id] = Number($(id).value);
    soon();
  };
}
$("again").onclick = drawAgain;

const map = $("truth");
let start = null;
const cellAt = (event) => {
  const box = map.getBoundingClientRect();
  const inside = (v, size) => Math.max(0, Math.min(side - 1, Math.floor((side * v) / size)));
  return [inside(event.clientX - box.left, box.width), inside(event.clientY - box.top, box.height)];
};
map.onpointerdown = (event) => {
  start = cellAt(event);
  map.setPointerCapture(event.pointerId);
  map.onpointermove(event);
};
map.onpointermove = (event) => {
  if (!start) return;
  const end = cellAt(event);
  [state.x, state.y] = [0, 1].map((k) => Math.min(start[k], end[k]));
  [state.w, state.h] = [0, 1].map((k) => Math.abs(start[k] - end[k]) + 1);
  soon();
};
map.onpointerup = map.onpointercancel = () => (start = null);
map.onkeydown = (event) => {
  const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (!step) return;
  event.preventDefault();
  const [across, down] = event.shiftKey ? ["w", "h"] : ["x", "y"];
  const room = { x: side - state.w, y: side - state.h, w: side - state.x, h: side - state.y };
  const least = event.shiftKey ? 1 : 0;
  state[across] = Math.max(least, Math.min(room[across], state[across] + step[0]));
  state[down] = Math.max(least, Math.min(room[down], state[down] + step[1]));
  soon();
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", soon);
drawAgain();
