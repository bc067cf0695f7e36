// adaptive2009: histograms whose boxes split where people are.
"use strict";

const { depth, epsilons, splits: limits, discounts, prices, bits, thresholds } = DATA;
const side = 2 ** depth;
const cells = side * side;
const SIZES = [1, 2, 4, 8, 16, 32];
const questions = SIZES.map((size) => squares(size, side));
const REACH = 4; // cells from the middle of the brush to its edge
const DAB = 200; // people that one touch of the brush adds
const MOST = 1000; // touches that an address holds
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// Node `key` of a level, of 4^level, is number `first[level] + key`. Each digit of a key to base 4 is a bit of x and
// a bit of y, so the cells below a node are consecutive in `order`.
const first = Array.from({ length: depth + 2 }, (_, level) => (4 ** level - 1) / 3);
function corner(key) {
  let x = 0;
  let y = 0;
  for (let i = 0; i < depth; i++) {
    x |= ((key >> (2 * i + 1)) & 1) << i;
    y |= ((key >> (2 * i)) & 1) << i;
  }
  return [x, y];
}
const order = Array.from({ length: cells }, (_, key) => corner(key)[1] * side + corner(key)[0]);

// Both releases of a seed. Every cell, comparison and count has a word of its own, whatever the settings are.
// A node that splits sets its first `discount` people aside. The counts of the leaves include everyone.
function published(people, seed, e, b) {
  const next = words(seed);
  const word = Uint32Array.from({ length: cells + first[depth] + first[depth + 1] }, next);
  const draw = (use, place) => noise(word[place], thresholds[use][e], bits);
  const every = people.map((n, i) => n + draw("cells", i));
  const before = new Int32Array(cells + 1);
  order.forEach((cell, i) => (before[i + 1] = before[i] + people[cell]));
  const idea = new Float64Array(cells);
  const tree = { splits: [], leaves: [] };
  const visit = (level, key, from) => {
    const [start, stop] = [key, key + 1].map((k) => k * 4 ** (depth - level));
    const node = first[level] + key;
    const rest = Math.max(from, before[start]);
    const left = Math.max(0, before[stop] - rest);
    if (level < depth && left + draw("comparisons", cells + node) >= limits[b]) {
      tree.splits.push(node);
      for (let k = 0; k < 4; k++) visit(level + 1, 4 * key + k, rest + discounts[e][b]);
      return;
    }
    const count = before[stop] - before[start] + draw("leaves", cells + first[depth] + node);
    tree.leaves.push([level, key, count]);
    for (let i = start; i < stop; i++) idea[order[i]] = count / (stop - start);
  };
  visit(0, 0, 0);
  return { every, idea, ...tree };
}

// What the tree costs: basic pays for each level of comparisons, improved pays for two, however deep it is.
function costs(levels, e) {
  const price = prices.comparisons[e];
  return { basic: levels * price + prices.leaves[e], improved: 2 * price + prices.leaves[e] };
}

// The map: the town or nothing, then touches of the brush in their order, each two letters, with a dot to erase.
const TOUCH = /\.?[\w-]{2}/g;
const town = tableOf(DATA.town, side);
const inside = (v, most) => Math.max(0, Math.min(most, v));
const around = (x, y) => [x - REACH, y - REACH, x + REACH + 1, y + REACH + 1].map((v) => inside(v, side));

function touch(people, text, number) {
  const [y, x] = [...text.slice(-2)].map((letter) => LETTERS.indexOf(letter));
  if (text.length === 3) {
    const [x0, y0, x1, y1] = around(x, y);
    for (let row = y0; row < y1; row++) people.fill(0, row * side + x0, row * side + x1);
    return;
  }
  const next = words(number);
  const spread = () => (next() % (REACH + 1)) + (next() % (REACH + 1)) - REACH;
  for (let n = 0; n < DAB; n++) {
    const [column, row] = [x + spread(), y + spread()];
    if (column >= 0 && column < side && row >= 0 && row < side) people[row * side + column]++;
  }
}

const state = stateFromAddress(
  {
    e: { low: 0, high: epsilons.length - 1, start: 2 },
    b: { low: 0, high: limits.length - 1, start: 9 },
    m: { low: 0, high: 1, start: 1 },
    x: { low: 0, high: side - 1, start: 20 },
    y: { low: 0, high: side - 1, start: 40 },
    d: { low: 0, high: 4294967295, start: 7 },
  },
  { p: { pattern: TOUCH, most: MOST } },
);
let touches = state.p.match(TOUCH) || [];
let people;
function fillMap() {
  people = state.m ? town.slice() : new Int32Array(cells);
  touches.forEach((text, i) => touch(people, text, i));
}

// At low thresholds empty boxes would split without end, so the package refuses them.
const least = () => discounts[state.e].findIndex((discount) => discount !== null);
const chosen = () => Math.max(state.b, least());

// Pictures
function drawSplits(nodes) {
  const svg = $("splits");
  const kept = new Set(nodes.map((node) => `n${node}`));
  for (const path of [...svg.children]) if (!kept.has(path.id)) path.remove();
  for (const node of nodes) {
    if ($(`n${node}`)) continue;
    const level = first.findIndex((start) => start > node) - 1;
    const half = side / 2 ** (level + 1);
    const [x, y] = corner((node - first[level]) * 4 ** (depth - level));
    const path = document.createElementNS(svg.namespaceURI, "path");
    path.id = `n${node}`;
    path.setAttribute("d", `M${x} ${y + half}h${2 * half}M${x + half} ${y}v${2 * half}`);
    path.style.setProperty("--level", level);
    svg.append(path);
  }
}

const epsilonText = (x) => Number(x.toPrecision(3));

function drawMeter(levels, e) {
  const { basic, improved } = costs(levels, e);
  const x = scale(0, costs(depth, e).basic, 0, 380, false);
  const [price, counts] = [prices.comparisons[e], { what: "counts", cost: prices.leaves[e] }];
  const bar = (y, colour, words, pieces) => {
    let drawn = text(0, y, words, "start", `style="fill:var(${colour})"`);
    let start = 0;
    for (const { what, cost } of pieces) {
      const [a, b] = [x(start), x((start += cost))];
      drawn +=
        `<rect x="${a}" y="${y + 6}" width="${b - a - 2}" height="16" fill="var(${colour})" fill-opacity="0.3"/>` +
        text((a + b) / 2, y + 18, what, "middle");
    }
    return drawn;
  };
  const each = Array.from({ length: levels }, (_, level) => ({ what: `level ${level + 1}`, cost: price }));
  $("meter").innerHTML =
    bar(11, "--lost", `basic tree of depth ${levels}: ε adds up to ${epsilonText(basic)}`, [...each, counts]) +
    bar(52, "--idea", `improved tree of any depth: ε = ${epsilonText(improved)}`, [
      { what: "all levels", cost: 2 * price },
      counts,
    ]);
}

function show() {
  const [e, b] = [state.e, chosen()];
  const { every, idea, splits, leaves } = published(people, state.d, e, b);
  const sums = { true: corners(people, side), every: corners(every, side), idea: corners(idea, side) };
  const asked = around(state.x, state.y);
  for (const [id, values] of Object.entries({ truth: people, every, idea })) paint(id, values, side);
  showAsked(side, [asked[0], asked[1], asked[2] - asked[0], asked[3] - asked[1]]);
  drawSplits(splits);
  const levels = Math.max(1, ...leaves.map(([level]) => level));
  drawMeter(levels, e);
  for (const [name, sum] of Object.entries(sums)) $(`${name}-answer`).textContent = whole(sum(...asked));
  $("e").value = e;
  $("b").value = b;
  $("e-out").textContent = epsilons[e];
  $("b-out").textContent = whole(limits[b]);
  $("true-size").textContent = `${whole(sums.true(0, 0, side, side))} people, never published`;
  const empty = people.filter((n) => n === 0).length;
  $("every-size").textContent = `${whole(cells)} counts, ${whole(empty)} of them pure noise`;
  $("idea-size").textContent = `${whole(leaves.length)} counts, ${whole(splits.length)} splits`;
  $("clear").textContent = state.m || touches.length ? "Clear map" : "Show the town";
  const [everyErrors, ideaErrors] = [sums.every, sums.idea].map((sum) => meanErrors(questions, sum, sums.true));
  errorCurve(SIZES, everyErrors, ideaErrors, "adaptive tree", 1000);
  const better = SIZES.filter((_, k) => ideaErrors[k] < everyErrors[k]).length;
  $("says").innerHTML =
    `At ε = ${epsilons[e]} and a threshold of ${whole(limits[b])} the tree publishes <b>${whole(leaves.length)}</b> ` +
    `counts instead of ${whole(cells)}. In this draw its error is smaller at ${better} of ${SIZES.length} sizes of ` +
    `squares. Each split sets <b>${whole(discounts[e][b])}</b> people aside, so the cost does not grow with the depth.`;
  state.p = touches.join("");
  stateToAddress(state);
}

function fall() {
  const total = (values) => corners(values, side)(...around(state.x, state.y));
  const answers = (seed) => {
    const { every, idea } = published(people, seed, state.e, chosen());
    return [total(every), total(idea)];
  };
  drawTwenty(state, answers, ["noise in every cell", "adaptive tree"], total(people), "answer to the square");
}

function warn() {
  if (state.b >= least()) return;
  const limit = `At ε = ${epsilons[state.e]} the least threshold is ${limits[least()]}`;
  note(`${limit}, because below it empty boxes could split without end.`);
}

fillMap();
warn();
const set = play({ state, sliders: ["e", "b"], show, fall });
let playing = 0;
for (const id of ["e", "b"])
  $(id).addEventListener("input", () => {
    clearInterval(playing);
    note("");
    warn();
  });
$("play").onclick = () => {
  clearInterval(playing);
  const end = chosen();
  set({ b: limits.length - 1 });
  playing = setInterval(() => {
    if (state.b <= end) clearInterval(playing);
    else set({ b: state.b - 1 });
  }, 300);
};
$("erase").onclick = () => $("erase").setAttribute("aria-pressed", !erasing());
const erasing = () => $("erase").getAttribute("aria-pressed") === "true";
$("clear").onclick = () => {
  set({ m: state.m || touches.length ? 0 : 1 });
  touches = [];
  fillMap();
};

function paintAt([x, y], erase) {
  set({ x, y });
  if (touches.length === MOST) return note(`The map is full after ${whole(MOST)} touches. Clear it to paint again.`);
  const text = (erase ? "." : "") + LETTERS[y] + LETTERS[x];
  touch(people, text, touches.length);
  touches.push(text);
}

const map = $("truth");
let painting = false;
map.onpointerdown = (event) => {
  painting = true;
  map.setPointerCapture(event.pointerId);
  paintAt(cellAt(event, side), erasing() || event.shiftKey);
};
map.onpointermove = (event) => {
  const [x, y] = cellAt(event, side);
  if (painting && (x !== state.x || y !== state.y)) paintAt([x, y], erasing() || event.shiftKey);
};
map.onpointerup = map.onpointercancel = () => (painting = false);
map.onkeydown = (event) => {
  const step = ARROWS[event.key];
  if (!step && ![" ", "Delete", "Backspace"].includes(event.key)) return;
  event.preventDefault();
  if (!step) return paintAt([state.x, state.y], erasing() || event.key !== " ");
  const far = event.shiftKey ? 8 : 1;
  const [x, y] = [state.x + far * step[0], state.y + far * step[1]].map((v) => inside(v, side - 1));
  set({ x, y });
};
for (const id of ["every", "idea"])
  $(id).onclick = (event) => {
    const [x, y] = cellAt(event, side);
    set({ x, y });
  };
