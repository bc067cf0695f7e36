// Cormode et al. 2012: compact summaries of a sparse table.
"use strict";

const { side, runs, thresholds, epsilons } = DATA;
const SAMPLES = [100, 200, 500, 1000, 2000, 5000, Infinity];
const SIZES = [1, 2, 4, 8, 16, 32, 64];
const cells = side * side;

const truth = tableOf(runs, side);

// The noisy table of a seed, and its summary.
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
  // Priority sampling keeps the largest priorities |w|/r, with r uniform. Each counts at least the next priority.
  const priority = new Float64Array(cells);
  for (let i = 0; i < cells; i++) priority[i] = Math.abs(every[i]) / ((next() + 0.5) / 4294967296);
  kept.sort((a, b) => priority[b] - priority[a] || a - b);
  const least = priority[kept[SAMPLES[s]]];
  kept.length = SAMPLES[s];
  for (const i of kept) idea[i] = Math.sign(every[i]) * Math.max(Math.abs(every[i]), least);
  return { every, idea, kept };
}

const trueSum = corners(truth, side);
const SQUARES = SIZES.map((size) => squares(size, side));

const state = stateFromAddress({
  e: { low: 0, high: epsilons.length - 1, start: 10 },
  t: { low: 0, high: 60, start: 10 },
  s: { low: 0, high: SAMPLES.length - 1, start: SAMPLES.length - 1 },
  x: { low: 0, high: side - 1, start: 30 },
  y: { low: 0, high: side - 1, start: 30 },
  w: { low: 1, high: side, start: 28 },
  h: { low: 1, high: side, start: 20 },
  d: { low: 0, high: 4294967295, start: 7 },
});

function rectangle() {
  state.w = Math.min(state.w, side - state.x);
  state.h = Math.min(state.h, side - state.y);
  return [state.x, state.y, state.x + state.w, state.y + state.h];
}

function show() {
  const asked = rectangle();
  const epsilon = epsilons[state.e];
  const { every, idea, kept } = published(state.d, state.e, state.t, state.s);
  const sums = { true: trueSum, every: corners(every, side), idea: corners(idea, side) };
  const ghosts = kept.filter((i) => truth[i] === 0).length;
  for (const [id, values] of Object.entries({ truth, every, idea })) paint(id, values, side);
  showAsked(side, [state.x, state.y, state.w, state.h]);
  for (const id of ["e", "t", "s"]) $(id).value = state[id];
  $("e-out").textContent = epsilon;
  $("t-out").textContent = state.t;
  $("s-out").textContent = SAMPLES[state.s] === Infinity ? "all" : whole(SAMPLES[state.s]);
  for (const [name, sum] of Object.entries(sums)) $(`${name}-answer`).textContent = whole(sum(...asked));
  $("every-size").textContent = `${whole(cells)} numbers, ${whole(cells - DATA.occupied)} of them pure noise`;
  $("idea-size").textContent = `${whole(kept.length)} numbers, ${whole(ghosts)} of them pure noise`;
  const [all, some] = [sums.every, sums.idea].map((sum) => meanErrors(SQUARES, sum, trueSum));
  errorCurve(SIZES, all, some, state.t ? `filter, θ = ${state.t}` : "summary", 3000);
  const worse = SIZES.findIndex((_, k) => some[k] > all[k]);
  const where =
    worse < 0
      ? "has the smaller error at every size of question"
      : worse === 0
        ? "has the larger error even for single cells, because it drops or samples away too many people"
        : `has the smaller error up to squares of about <b>${whole(SIZES[worse - 1] ** 2)}</b> cells. ` +
          "In larger squares the dropped counts add up";
  $("says").innerHTML =
    `At ε = ${epsilon} the summary publishes <b>${whole(kept.length)}</b> numbers instead of ${whole(cells)}, ` +
    `<b>${whole(ghosts)}</b> of them pure noise. In this draw it ${where}.`;
  stateToAddress(state);
}

function fall() {
  const asked = rectangle();
  const answers = (seed) => {
    const { every, idea } = published(seed, state.e, state.t, state.s);
    return [every, idea].map((values) => corners(values, side)(...asked));
  };
  const labels = ["noise in every cell", "filter, then sample"];
  drawTwenty(state, answers, labels, trueSum(...asked), "answer to the rectangle");
}

const set = play({ state, sliders: ["e", "t", "s"], show, fall });

const map = $("truth");
let start = null;
map.onpointerdown = (event) => {
  start = cellAt(event, side);
  map.setPointerCapture(event.pointerId);
  map.onpointermove(event);
};
map.onpointermove = (event) => {
  if (!start) return;
  const end = cellAt(event, side);
  const [x, y] = [0, 1].map((k) => Math.min(start[k], end[k]));
  const [w, h] = [0, 1].map((k) => Math.abs(start[k] - end[k]) + 1);
  set({ x, y, w, h });
};
map.onpointerup = map.onpointercancel = () => (start = null);
map.onkeydown = (event) => {
  const step = ARROWS[event.key];
  if (!step) return;
  event.preventDefault();
  const [across, down] = event.shiftKey ? ["w", "h"] : ["x", "y"];
  const room = { x: side - state.w, y: side - state.h, w: side - state.x, h: side - state.y };
  const least = event.shiftKey ? 1 : 0;
  const moved = (name, by) => Math.max(least, Math.min(room[name], state[name] + by));
  set({ [across]: moved(across, step[0]), [down]: moved(down, step[1]) });
};
