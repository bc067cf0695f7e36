// Hay et al. 2010: sorted counts, and sums in a tree, contradict each other once they are noisy.
"use strict";

const { peak, shapes, places, epsilons, bits, laws, factors } = DATA;
const n = places.length;
const LEVELS = Math.log2(n) + 1;
const DRAWS = 500; // for errors, from seeds that stay
const bars = Array.from({ length: n }, (_, i) => `c${i}`);

const state = stateFromAddress({
  t: { low: 0, high: 1, start: 0 },
  e: { low: 0, high: epsilons.length - 1, start: 2 },
  k: { low: 0, high: 1, start: 1 },
  i: { low: 0, high: n - 1, start: 19 },
  x: { low: 0, high: n - 1, start: 5 },
  w: { low: 1, high: n, start: 19 },
  d: { low: 0, high: 4294967295, start: 7 },
  ...Object.fromEntries(bars.map((c, i) => [c, { low: 0, high: peak, start: shapes[0][1][i] }])),
});
const counts = () => bars.map((c) => state[c]);
const leaves = (sorted) => places.map((i) => sorted[i]);

// Moves one count, and with it those that would leave the order.
function setCount(i, count) {
  state[bars[i]] = Math.max(0, Math.min(peak, Math.round(count)));
  for (let j = 0; j < n; j++) {
    if ((j < i && state[bars[j]] > state[bars[i]]) || (j > i && state[bars[j]] < state[bars[i]]))
      state[bars[j]] = state[bars[i]];
  }
}

// The ascending sequence nearest to noisy counts: neighbours that violate the order become their mean.
function isotonic(noisy) {
  const pools = [];
  for (const x of noisy) {
    pools.push([x, 1]);
    while (pools.length > 1 && pools.at(-2)[0] / pools.at(-2)[1] >= pools.at(-1)[0] / pools.at(-1)[1]) {
      const [sum, size] = pools.pop();
      pools.at(-1)[0] += sum;
      pools.at(-1)[1] += size;
    }
  }
  return pools.flatMap(([sum, size]) => Array(size).fill(sum / size));
}

// Trees, level by level from the root down: the children of node v are 2v + 1 and 2v + 2.
const depth = (v) => 31 - Math.clz32(v + 1);
const below = (tree, v) => tree[2 * v + 1] + tree[2 * v + 2];

function sums(counts) {
  const tree = Array(n - 1).concat(counts);
  for (let v = n - 2; v >= 0; v--) tree[v] = below(tree, v);
  return tree;
}

// The nearest tree in which each node is the sum of its children (the paper's Theorem 3).
function leastSquares(noisy) {
  const tree = noisy.slice();
  for (let v = n - 2; v >= 0; v--) {
    const size = 2 ** (LEVELS - depth(v));
    tree[v] = ((size / 2) * noisy[v] + (size / 2 - 1) * below(tree, v)) / (size - 1);
  }
  for (let v = 0; v < n - 1; v++) {
    const missing = tree[v] - below(tree, v);
    tree[2 * v + 1] += missing / 2;
    tree[2 * v + 2] += missing / 2;
  }
  return tree;
}

// The fewest nodes that make up the leaves from low to high, from left to right.
function nodesOf(low, high) {
  const [left, right] = [[], []];
  for (let [l, r] = [low + n, high + n]; l < r; [l, r] = [l >> 1, r >> 1]) {
    if (l & 1) left.push(l++ - 1);
    if (r & 1) right.unshift(--r - 1);
  }
  return left.concat(right);
}

// What is published for one seed. A person is in one count, but in one sum of each level of the tree.
const noisy = (next, values, law) => values.map((count) => count + noise(next(), law, bits));

function inOrder(next, e) {
  const sorted = noisy(next, counts(), laws[1][e]);
  return { sorted, isotonic: isotonic(sorted) };
}

function published(seed, e) {
  const next = words(seed);
  const ordered = inOrder(next, e);
  const flat = noisy(next, leaves(counts()), laws[1][e]);
  const tree = noisy(next, sums(leaves(counts())), laws[LEVELS][e]);
  return { ...ordered, flat, tree, consistent: leastSquares(tree) };
}

const range = () => [state.x, state.x + state.w];
const answers = ({ flat, tree, consistent }) => {
  const nodes = nodesOf(...range());
  const sum = (values) => add(nodes.map((v) => values[v]));
  return { flat: add(flat.slice(...range())), tree: sum(tree), consistent: sum(consistent) };
};

const variance = (e, moved) => {
  const ratio = Math.exp(-epsilons[e] / moved);
  return (2 * ratio) / (1 - ratio) ** 2;
};

// Pictures
const [LEFT, WIDTH] = [26, 394 / n];
const height = scale(-0.27 * peak, 1.27 * peak, 356, 4, false);
const place = (i) => LEFT + i * WIDTH;

const axis = () => grid([0, peak / 3, (2 * peak) / 3, peak], height, LEFT, 420);

function columns(id, values, truth, marked) {
  let drawn = axis();
  values.forEach((v, i) => {
    const [a, b] = [height(Math.max(0, v)), height(Math.min(0, v))];
    const fill = marked(i) ? "--ask" : "--every";
    drawn += `<rect x="${place(i) + 1}" y="${a}" width="${WIDTH - 2}" height="${b - a}" fill="var(${fill})"/>`;
  });
  $(id).innerHTML = drawn + (values === truth ? "" : steps(truth, "--ink", 1.4));
}

function steps(values, colour, width) {
  const path = values.map((v, i) => `${i ? "L" : "M"}${place(i)} ${height(v)}h${WIDTH}`).join("");
  return `<path d="${path}" fill="none" stroke="var(${colour})" stroke-width="${width}"/>`;
}

function points(id, noisy, truth, staircase) {
  let drawn = axis() + steps(truth, "--ink", 1.4);
  noisy.forEach((v, i) => {
    const x = place(i) + WIDTH / 2;
    if (!staircase)
      drawn += `<path d="M${x} ${height(truth[i])}V${height(v)}" stroke="var(--every)" stroke-opacity="0.5"/>`;
    drawn += `<circle cx="${x}" cy="${height(v)}" r="3.6" fill="var(--every)" fill-opacity="${staircase ? 0.4 : 1}"/>`;
  });
  $(id).innerHTML = drawn + (staircase ? steps(staircase, "--idea", 3.5) : "");
}

function drawTree(tree, lit) {
  const most = Math.max(...tree.map((v, node) => v * 2 ** depth(node)));
  let drawn = "";
  tree.forEach((v, node) => {
    const level = depth(node);
    const width = 420 / 2 ** level;
    const [x, y] = [(node + 1 - 2 ** level) * width, 3 + level * 59.5];
    const share = 0.08 + 0.5 * Math.max(0, (v * 2 ** level) / most);
    const fill = lit.includes(node) ? 'fill="var(--ask)"' : `fill="var(--idea)" fill-opacity="${share}"`;
    drawn += `<rect x="${x + 1}" y="${y}" width="${width - 2}" height="55" rx="2" ${fill} data-node="${node}"/>`;
    const [middle, base] = [x + width / 2 + 4, y + 31];
    const style = lit.includes(node) ? 'style="fill:var(--page);font-weight:700"' : "";
    const turned = level === LEVELS - 1 ? `transform="rotate(-90 ${middle} ${y + 27}) translate(0 -4)"` : "";
    drawn += text(middle - 4, base, whole(v), "middle", `pointer-events="none" ${style} ${turned}`);
  });
  $("idea").innerHTML = drawn;
}

function drawErrors(noisy, ordered, truth) {
  const x = scale(1, n, 40, 372, false);
  const highest = Math.max(noisy, ...ordered) * 1.15;
  const y = scale(0, highest, 186, 26, false);
  let drawn = grey(4, 12, "error of a count, by its position (people)");
  const step = highest > 10 ? 5 : highest > 4 ? 2 : highest > 2 ? 1 : 0.5;
  drawn += grid([0, 1, 2, 3, 4].map((k) => k * step).filter((v) => v < highest), y, 40, 372);
  truth.forEach((v, i) => {
    if (i && v !== truth[i - 1])
      drawn += `<path d="M${x(i + 0.5)} 26V186" stroke="var(--ask)" stroke-opacity="0.45" stroke-dasharray="2 4"/>`;
  });
  drawn += numbers([1, 8, 16, 24, 32], x, 203);
  drawn += line([[x(1), y(noisy)], [x(n), y(noisy)]], "--every", "5 3");
  drawn += line(ordered.map((error, i) => [x(i + 1), y(error)]), "--idea");
  drawn += lineEnds(378, [["noisy", "--every", y(noisy)], ["in order again", "--idea", y(ordered.at(-1))]]);
  $("curve").innerHTML = drawn + text(474, 12, "┆ step to a higher count", "end", 'style="fill:var(--ask)"');
}

// Expected errors of ranges over a tree with so many levels, by their size.
function rangeErrors(e, levels) {
  const { sizes, tree, consistent } = factors[levels];
  const root = (part, moved) => part.map((v) => Math.sqrt(v * variance(e, moved)));
  return { sizes, flat: root(sizes, 1), tree: root(tree, levels), consistent: root(consistent, levels) };
}

function drawRanges(e) {
  const [small, large] = Object.keys(factors).map((levels) => rangeErrors(e, Number(levels)));
  const x = scale(1, 32768, 40, 360, true);
  const all = [...large.flat, ...large.tree];
  const y = scale(Math.min(...all), Math.max(...all) * 1.1, 186, 26, true);
  let drawn = grey(4, 12, "error of a range, by its size (people)");
  drawn += grid([1, 10, 100, 1000].filter((v) => v >= Math.min(...all) && v <= Math.max(...all)), y, 40, 360);
  drawn += numbers([1, 32, 1024, 32768], x, 203);
  drawn += `<path d="M${x(state.w)} 26V186" stroke="var(--ask)" stroke-width="2"/>`;
  const curve = (errors, kind, colour, dash = "") =>
    line(errors[kind].map((error, i) => [x(errors.sizes[i]), y(error)]), colour, dash);
  drawn += curve(large, "flat", "--every", "5 3");
  for (const errors of [small, large])
    drawn += curve(errors, "tree", "--lost") + curve(errors, "consistent", "--idea");
  const end = (kind) => y(large[kind].at(-1));
  drawn += lineEnds(366, [
    ["every count", "--every", end("flat")],
    ["noisy tree", "--lost", end("tree")],
    ["consistent tree", "--idea", end("consistent")],
  ]);
  drawn += grey(x(1), y(small.consistent[0]) + 15, "32 leaves") +
    grey(x(400), y(large.tree[9]) - 8, "32,768 leaves", "middle");
  $("curve").innerHTML = drawn;
}

const near = (x) => (Math.abs(x) < 10 ? x.toFixed(1) : whole(x));

function showOrder(now) {
  const truth = counts();
  const error = (values) => near(Math.sqrt(add(values.map((v, i) => (v - truth[i]) ** 2)) / n));
  columns("truth", truth, truth, (i) => i === state.i);
  const [x, y] = [place(state.i) + WIDTH / 2, height(truth[state.i])];
  $("truth").innerHTML +=
    `<circle cx="${x}" cy="${y}" r="7" fill="var(--page)" stroke="var(--ask)" stroke-width="3"/>` +
    text(x, y - 14, truth[state.i], "middle", 'style="fill:var(--ask);font-weight:700"');
  points("every", now.sorted, truth);
  points("idea", now.sorted, truth, now.isotonic);
  $("truth-says").textContent = `count ${state.i + 1} of ${n}: ${truth[state.i]} people`;
  $("every-says").textContent = `error ${error(now.sorted)} in this draw, the line is the truth`;
  $("idea-says").textContent = `error ${error(now.isotonic)} in this draw, blue is published`;
  const all = Array.from({ length: DRAWS }, (_, k) => inOrder(words(k + 1), state.e));
  const squares = (kind) => truth.map((v, i) => add(all.map((draw) => (draw[kind][i] - v) ** 2)) / DRAWS);
  const [noisy, consistent] = [squares("sorted"), squares("isotonic")];
  const [before, after] = [Math.sqrt(variance(state.e, 1)), Math.sqrt(add(consistent) / n)];
  drawErrors(before, consistent.map(Math.sqrt), truth);
  const runs = [];
  truth.forEach((v, i) => {
    if (!i || v !== truth[i - 1]) runs.push({ count: v, size: 0, gain: 0 });
    runs.at(-1).size++;
    runs.at(-1).gain += noisy[i] - consistent[i];
  });
  const gain = add(runs.map((run) => run.gain));
  const best = runs.filter((run) => run.size > 1).sort((a, b) => b.gain - a.gain)[0];
  $("says").innerHTML =
    `The ${n} counts have <b>${runs.length}</b> different values. At ε = ${epsilons[state.e]} a noisy count has an ` +
    `error of ${near(before)} and an ordered one of <b>${near(after)}</b> (root mean square, over ${DRAWS} draws), ` +
    `so its squared error is <b>${((before / after) ** 2).toFixed(1)}</b> times smaller. ` +
    (best
      ? `The run of ${best.size} counts of ${best.count} brings ${whole((100 * best.gain) / gain)} % of the gain, ` +
        "because the order averages the noise within a run. "
      : "No count equals its neighbour, so only counts that are close compared with the noise gain. ") +
    "At a step to a higher count, less noise is removed.";
}

function showTree(now) {
  const truth = leaves(counts());
  const lit = nodesOf(...range());
  const inRange = (i) => i >= state.x && i < state.x + state.w;
  const tree = state.k ? now.consistent : now.tree;
  columns("truth", truth, truth, inRange);
  columns("every", now.flat, truth, inRange);
  drawTree(tree, lit);
  const exact = add(truth.filter((_, i) => inRange(i)));
  const total = (values) => add(lit.map((v) => values[v]));
  $("truth-says").textContent = `${exact} people in the range of ${state.w} counts`;
  $("every-says").textContent = `answer ${whole(answers(now).flat)}: the sum of ${state.w} noisy counts`;
  const parts = lit.length > 6 ? "" : ` = ${lit.map((v) => whole(tree[v])).join(" + ").replaceAll("+ −", "− ")}`;
  $("idea-says").textContent = `answer ${whole(total(tree))}${parts}`;
  // A consistent answer is a weighted sum of all nodes: the answers to trees with a 1 in one node are the weights.
  const weights = tree.map((_, node) => total(leastSquares(tree.map((_, v) => Number(v === node)))));
  const flat = Math.sqrt(state.w * variance(state.e, 1));
  const root = (squares) => Math.sqrt(squares * variance(state.e, LEVELS));
  const [noisy, consistent] = [root(lit.length), root(add(weights.map((x) => x * x)))];
  drawRanges(state.e);
  const large = rangeErrors(state.e, 16);
  const cross = (kind) => {
    const at = large.sizes.findIndex((_, i) => large[kind][i] < large.flat[i]);
    const lead = (i) => Math.log(large[kind][i] / large.flat[i]);
    return whole(Number((large.sizes[at - 1] * 2 ** (lead(at - 1) / (lead(at - 1) - lead(at)))).toPrecision(2)));
  };
  $("says").innerHTML =
    `At ε = ${epsilons[state.e]} this range has an error of ${near(flat)} as a sum of ${state.w} counts, ` +
    `${near(noisy)} as a sum of ${lit.length} ${lit.length > 1 ? "nodes" : "node"} and <b>${near(consistent)}</b> if ` +
    `the tree is consistent (root mean square). ` +
    `${flat < consistent ? "In so small a tree, plain counts are" : "The tree is"} better here. ` +
    `With 32,768 leaves, as in the paper, the noisy tree is better beyond ranges of about ${cross("tree")} counts ` +
    `and the consistent tree already beyond about <b>${cross("consistent")}</b>.`;
}

function show() {
  for (const t of [0, 1]) {
    $(`tab-${t}`).setAttribute("aria-selected", String(state.t === t));
    $(`tab-${t}`).tabIndex = state.t === t ? 0 : -1;
    for (const part of document.querySelectorAll(`.tab-${t}`)) part.hidden = state.t !== t;
  }
  state.w = Math.min(state.w, n - state.x);
  $("truth").setAttribute("aria-label", $(`keys-${state.t}`).textContent);
  $("e").value = state.e;
  $("e-out").textContent = epsilons[state.e];
  $("k").checked = state.k === 1;
  const own = shapes.findIndex(([, shape]) => shape.every((count, i) => count === state[bars[i]]));
  $("shape").value = own < 0 ? "" : own;
  (state.t ? showTree : showOrder)(published(state.d, state.e));
  const changed = Object.entries(state).filter(([name, v]) => !(name in starts && starts[name] === v));
  stateToAddress(Object.fromEntries(changed));
}

function fall() {
  if (state.t) {
    const ofRange = (seed) => Object.values(answers(published(seed, state.e)));
    const labels = ["sum of noisy counts", "noisy tree", "consistent tree"];
    const truth = add(leaves(counts()).slice(...range()));
    drawTwenty(state, ofRange, labels, truth, "people in the range", ["--every", "--lost", "--idea"]);
    return;
  }
  const ofCount = (seed) => {
    const { sorted, isotonic } = published(seed, state.e);
    return [sorted[state.i], isotonic[state.i]];
  };
  drawTwenty(state, ofCount, ["noisy", "in order again"], state[bars[state.i]], `count ${state.i + 1}`);
}

const starts = Object.fromEntries(bars.map((c, i) => [c, shapes[0][1][i]]));
const unsorted = bars.filter((c, i) => i && state[c] < state[bars[i - 1]]);
if (unsorted.length) {
  bars.forEach((c, i) => (state[c] = Math.max(state[c], i ? state[bars[i - 1]] : 0)));
  note("The counts in the address are not in order. Those that were too low have been raised.");
}
$("shape").innerHTML = shapes.map(([name], i) => `<option value="${i}">${name}</option>`).join("") +
  '<option value="" disabled>your own</option>';

const set = play({ state, sliders: ["e"], show, fall, rest: 400 });
$("k").onchange = () => set({ k: Number($("k").checked) });
$("shape").onchange = () => {
  const [, shape] = shapes[$("shape").value];
  set(Object.fromEntries(bars.map((c, i) => [c, shape[i]])));
};
for (const t of [0, 1]) {
  $(`tab-${t}`).onclick = () => set({ t });
  $(`tab-${t}`).onkeydown = (event) => {
    if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    set({ t: 1 - t });
    $(`tab-${1 - t}`).focus();
  };
}

// The leaves under the pointer: one, or those below a node of the tree.
function under(event, svg) {
  const box = svg.getBoundingClientRect();
  const inside = (v, most) => Math.max(0, Math.min(most, Math.floor(v)));
  const [x, y] = [(event.clientX - box.left) * (420 / box.width), (event.clientY - box.top) * (360 / box.height)];
  const tree = svg === $("idea");
  const size = tree ? n / 2 ** inside((y - 3) / 59.5, LEVELS - 1) : 1;
  const leaf = tree ? inside(x / (420 / n), n - 1) : inside((x - LEFT) / WIDTH, n - 1);
  const low = leaf - (leaf % size);
  const count = ((height(0) - y) / (height(0) - height(peak))) * peak;
  return { low, high: low + size, count };
}
for (const svg of [$("truth"), $("every"), $("idea")]) {
  let start = null;
  svg.onpointerdown = (event) => {
    if (!state.t && svg !== $("truth")) return;
    start = under(event, svg);
    if (!state.t) state.i = start.low;
    svg.setPointerCapture(event.pointerId);
    svg.onpointermove(event);
  };
  svg.onpointermove = (event) => {
    if (!start) return;
    const now = under(event, svg);
    if (!state.t) setCount(state.i, now.count);
    const low = Math.min(start.low, now.low);
    set(state.t ? { x: low, w: Math.max(start.high, now.high) - low } : {});
  };
  svg.onpointerup = svg.onpointercancel = () => (start = null);
}
$("truth").onkeydown = (event) => {
  if (!ARROWS[event.key]) return;
  const [across, down] = ARROWS[event.key];
  event.preventDefault();
  const inside = (v, low, high) => Math.max(low, Math.min(high, v));
  if (!state.t && across) state.i = inside(state.i + across, 0, n - 1);
  else if (!state.t) setCount(state.i, state[bars[state.i]] - down * (event.shiftKey ? 5 : 1));
  else if (event.shiftKey) state.w = inside(state.w + across - down, 1, n - state.x);
  else state.x = inside(state.x + across - down, 0, n - state.w);
  set({});
};
