// Chen et al. 2012: noisy answers that were bought say something about questions that were not.
"use strict";

const { names, values, pairs, tables, people, pays, alphas, bits, laws } = DATA;
const CLOSE = 5; // % of people in a wrong cell
const pairOf = (i, j) => pairs.findIndex(([a, b]) => a === Math.min(i, j) && b === Math.max(i, j));
const sizes = values.map((of) => of.length);

// The cells of a table as its two answers, row by row.
const cells = pairs.map(([, j], p) => tables[p].map((_, c) => [Math.floor(c / sizes[j]), c % sizes[j]]));

// What is published for one seed: each pair bought, bought anew, and bought with an equal share of the budget.
function published(seed, e) {
  const next = words(seed);
  const noisy = (draw, law) => tables.map((table) => table.map((count) => count + noise(draw(), law, bits)));
  return { bought: noisy(next, laws[e]), anew: noisy(next, laws[e]), every: noisy(words(seed), laws.at(-1)) };
}

const variance = (epsilon) => (2 * Math.exp(-epsilon)) / (1 - Math.exp(-epsilon)) ** 2;

// The share of each value of an attribute, as the bought pairs with it say on average. Pairs that add up fewer noisy
// counts weigh more. An attribute that was never bought is uniform.
function priorOf(bought, noisy) {
  return sizes.map((size, k) => {
    const sums = Array(size).fill(0);
    let weights = 0;
    for (const p of bought) {
      const side = pairs[p].indexOf(k);
      if (side < 0) continue;
      const weight = 1 / sizes[pairs[p][1 - side]];
      cells[p].forEach((cell, c) => (sums[cell[side]] += weight * noisy[p][c]));
      weights += weight;
    }
    const shares = sums.map((sum) => (weights ? Math.max(1, sum / weights) : 1));
    return shares.map((share) => share / add(shares));
  });
}

// Solves a symmetric positive definite system in place: Cholesky, then both triangles.
function solve(matrix, right) {
  const m = right.length;
  for (let i = 0; i < m; i++)
    for (let j = 0; j <= i; j++) {
      let sum = matrix[i][j];
      for (let k = 0; k < j; k++) sum -= matrix[i][k] * matrix[j][k];
      matrix[i][j] = i === j ? Math.sqrt(sum) : sum / matrix[j][j];
    }
  for (let i = 0; i < m; i++) {
    for (let k = 0; k < i; k++) right[i] -= matrix[i][k] * right[k];
    right[i] /= matrix[i][i];
  }
  for (let i = m - 1; i >= 0; i--) {
    for (let k = i + 1; k < m; k++) right[i] -= matrix[k][i] * right[k];
    right[i] /= matrix[i][i];
  }
  return right;
}

// The tables of all pairs, inferred from the bought ones. A query counts the people in a cell. The kernel of two
// queries is their covariance under the prior, which is 0 unless they share an attribute.
function infer(bought, noisy, e, alpha) {
  const prior = priorOf(bought, noisy);
  const queries = (p) => cells[p].map((codes) => {
    const [i, j] = pairs[p];
    return { i, j, a: codes[0], b: codes[1], mean: prior[i][codes[0]] * prior[j][codes[1]] };
  });
  const past = bought.flatMap(queries);
  const kernel = (q, r) => {
    let given = 1;
    for (const [k, code] of [[q.i, q.a], [q.j, q.b]]) {
      if (k !== r.i && k !== r.j) continue;
      given *= code === (k === r.i ? r.a : r.b) ? 1 / prior[k][code] : 0;
    }
    return q.mean * r.mean * (given - 1);
  };
  const matrix = past.map((q, x) => Float64Array.from(past.slice(0, x + 1), (r) => kernel(q, r)));
  matrix.forEach((row, x) => (row[x] += variance(1 / pays[e]) / alpha ** 2));
  const answers = bought.flatMap((p) => noisy[p]);
  const weights = solve(matrix, answers.map((answer, x) => answer - people * past[x].mean));
  const of = (q) => people * q.mean + past.reduce((sum, r, x) => sum + weights[x] * kernel(q, r), 0);
  return pairs.map((_, p) => queries(p).map(of));
}

// Half of the absolute differences: the share of people, in %, who are in a wrong cell.
const misplaced = (p, table) => (50 * add(table.map((count, c) => Math.abs(count - tables[p][c])))) / people;
const strengths = pairs.map((_, p) => {
  const sum = (side, code) => add(tables[p].filter((_, c) => cells[p][c][side] === code));
  return misplaced(p, cells[p].map(([a, b]) => (sum(0, a) * sum(1, b)) / people)); // if the pair were independent
});

const FIRST = [pairOf(1, 2), pairOf(4, 5), pairOf(1, 6)].map((p) => p + 1);
const state = stateFromAddress({
  e: { low: 0, high: pays.length - 1, start: 4 },
  a: { low: 0, high: alphas.length - 1, start: 5 },
  p: { low: 0, high: pairs.length - 1, start: pairOf(1, 3) },
  d: { low: 0, high: 4294967295, start: 7 },
  ...Object.fromEntries(pairs.map((_, k) => [`b${k}`, { low: 0, high: pairs.length, start: FIRST[k] ?? 0 }])),
});
let purchases = pairs.map((_, k) => state[`b${k}`] - 1).filter((p) => p >= 0);
if (new Set(purchases).size < purchases.length || purchases.length > pays[state.e]) {
  purchases = [...new Set(purchases)];
  note("The address buys a pair twice, or more than the budget pays for. The first are shown.");
}
const bought = () => purchases.slice(0, pays[state.e]); // a smaller budget drops the last ones

// Pictures
const CELL = 34;
const near = (x) => (x < 9.95 ? x.toFixed(1) : whole(x));

function map(id, errors, brightness, owned = []) {
  const svg = $(id);
  if (!svg.firstChild)
    svg.innerHTML = pairs.map(([i, j]) => `<g transform="translate(${i * CELL} ${j * CELL})" class="cell">` +
      `<rect x="2" y="2" width="30" height="30" rx="3"/>${text(17, 21, "", "middle")}</g>`).join("") +
      names.map((name, k) => text(k * CELL + 6, k * CELL + 22, name)).join("") +
      '<rect class="chosen" width="34" height="34" rx="4"/>';
  const flip = dark.matches ? 0.55 : 0.8;
  pairs.forEach((_, p) => {
    const cell = svg.children[p];
    const bright = brightness(errors[p]);
    cell.classList.toggle("bought", owned.includes(p));
    cell.firstChild.style.fillOpacity = bright;
    cell.lastChild.style.fill = `var(${bright > flip ? "--page" : "--ink"})`;
    cell.lastChild.textContent = near(errors[p]);
  });
  names.forEach((_, k) => svg.children[pairs.length + k].classList.toggle("own", pairs[state.p].includes(k)));
  const [i, j] = pairs[state.p];
  svg.lastChild.setAttribute("transform", `translate(${i * CELL} ${j * CELL})`);
}
const byError = (error) => 0.05 + 0.95 * Math.max(0, 1 - Math.log(Math.max(1, error)) / Math.log(30));

function drawPair(inferred, anew) {
  const [i, j] = pairs[state.p];
  const truth = tables[state.p];
  const width = 440 / truth.length;
  const y = scale(Math.min(0, ...inferred, ...anew), Math.max(...truth, ...inferred, ...anew) * 1.05, 164, 26, false);
  let drawn = grey(4, 12, `${names[i]} by ${names[j]}: people`) +
    grey(476, 12, "bar: truth", "end") +
    text(410, 12, "● inferred", "end", 'style="fill:var(--idea)"') +
    text(334, 12, "○ bought anew", "end", 'style="fill:var(--lost)"');
  drawn += grid([0, 200, 400, 600, 800, 1000].filter((v) => v <= Math.max(...truth)), y, 36, 476);
  truth.forEach((count, c) => {
    const x = 36 + c * width;
    const [a, b] = cells[state.p][c];
    drawn += `<rect x="${x + 4}" y="${y(count)}" width="${width - 8}" height="${y(0) - y(count)}" ` +
      'fill="var(--every)" fill-opacity="0.45"/>' +
      `<circle cx="${x + width * 0.36}" cy="${y(inferred[c])}" r="5" fill="var(--idea)"/>` +
      `<circle cx="${x + width * 0.64}" cy="${y(anew[c])}" r="4.5" fill="none" stroke="var(--lost)" stroke-width="2"/>`;
    drawn += grey(x + width / 2, 180, values[i][a], "middle") + grey(x + width / 2, 194, values[j][b], "middle");
  });
  $("pair").innerHTML = drawn;
}

// Expected error in % if the same budget is split over all pairs.
function splitError(spent) {
  const ratio = Math.exp(-spent / pairs.length);
  const size = (2 * ratio) / (1 - ratio ** 2);
  return add(cells.map((of) => (50 * of.length * size) / people)) / pairs.length;
}

function drawCurve(errors, e) {
  const x = scale(0, pays[e], 36, 372, false);
  const y = scale(1, 40, 176, 26, true);
  const step = pays[e] > 20 ? 6 : pays[e] > 10 ? 3 : pays[e] > 6 ? 2 : 1;
  const counts = Array.from({ length: Math.floor(pays[e] / step) + 1 }, (_, k) => k * step);
  const split = Array.from({ length: pays[e] }, (_, k) => [k + 1, splitError((k + 1) / pays[e])])
    .filter(([, error]) => error < 40)
    .map(([k, error]) => [x(k), y(error)]);
  const k = errors.length - 1;
  const level = y(errors[k]) + (k && errors[k] < splitError(k / pays[e]) ? 18 : -10);
  $("curve").innerHTML =
    grey(4, 12, "% of people in a wrong cell, mean of all pairs") +
    grid([1, 2, 5, 10, 20, 40], y, 36, 372) +
    numbers(counts, x, 193) +
    line(split, "--every", "5 3") +
    line(errors.map((error, k) => [x(k), y(error)]), "--idea") +
    `<circle cx="${x(k)}" cy="${y(errors[k])}" r="5" fill="var(--idea)"/>` +
    text(x(k), level, "inferred", k < pays[e] / 2 ? "start" : "end", 'style="fill:var(--idea)"') +
    lineEnds(378, [["all pairs bought", "--every", split.at(-1)[1]]]) +
    grey(474, 193, "pairs bought", "end");
}

let fits = {}; // after each purchase, until a setting changes

function show() {
  const { e, p } = state;
  const { bought: noisy, anew, every } = published(state.d, e);
  const owned = bought();
  const key = [e, state.a, state.d, ...owned].join();
  if (fits.key !== key)
    fits = { key, all: [...owned, 0].map((_, k) => infer(owned.slice(0, k), noisy, e, alphas[state.a])) };
  const errors = fits.all.map((fit) => fit.map((table, k) => misplaced(k, table)));
  const now = errors.at(-1);
  const split = every.map((table, k) => misplaced(k, table));
  map("truth", strengths, (strength) => Math.min(1, 0.05 + strength / 30));
  map("every", split, byError);
  map("idea", now, byError, owned);
  drawPair(fits.all.at(-1)[p], anew[p]);
  drawCurve(errors.map((of) => add(of) / of.length), e);
  const close = (of) => of.filter((error) => error <= CLOSE).length;
  const free = now.filter((error, k) => error <= CLOSE && !owned.includes(k)).length;
  $("every-says").textContent = `% of people in a wrong cell. ${close(split)} pairs within ${CLOSE} %`;
  $("idea-says").textContent = `% of people in a wrong cell. ${close(now)} pairs within ${CLOSE} %`;
  $("e").value = e;
  $("a").value = state.a;
  $("e-out").textContent = `${pays[e]} pairs`;
  $("a-out").textContent = whole(alphas[state.a]);
  const part = 200 / pays[e];
  $("budget").innerHTML = Array.from({ length: pays[e] }, (_, k) =>
    `<rect x="${k * part + 1}" y="3" width="${part - 2}" height="18" rx="2" stroke="var(--lost)" ` +
    `fill="var(--lost)" fill-opacity="${k < owned.length ? 0.9 : 0.08}"/>`).join("");
  const [i, j] = pairs[p].map((k) => names[k]);
  const isOwned = owned.includes(p);
  $("buy").disabled = isOwned || owned.length >= pays[e];
  const cost = (k) => `ε = ${Number((k / pays[e]).toFixed(2))}`;
  const [inferred, again] = [now[p], misplaced(p, anew[p])].map((error) => `${near(error)} %`);
  $("says").innerHTML =
    `You spent ${cost(owned.length)} of 1 on <b>${owned.length}</b> pairs (framed). <b>${close(now)}</b> of ` +
    `${pairs.length} pairs are answered with at most ${CLOSE} % of people in a wrong cell, <b>${free}</b> of them ` +
    `without being bought. Separate answers to these would cost ${free} more purchases, ${cost(free)}. ` +
    (isOwned
      ? `The pair ${i} by ${j} was bought. With what the other purchases say, its answer has an error of ` +
        `<b>${inferred}</b>. If it were bought anew and used alone, its error would be ${again}.`
      : `The pair ${i} by ${j} was not bought. Its inferred answer has an error of <b>${inferred}</b>. If you buy it ` +
        `for ${cost(1)} and use that answer alone, its error is ${again}.`);
  const kept = pairs.map((_, k) => [`b${k}`, (purchases[k] ?? -1) + 1]);
  const named = Object.fromEntries(kept.filter(([, pair], k) => pair || k < FIRST.length));
  stateToAddress({ e, a: state.a, p, d: state.d, ...named });
}

function fall() {
  const { e, p } = state;
  const largest = tables[p].indexOf(Math.max(...tables[p]));
  const answers = (seed) => {
    const { bought: noisy, anew } = published(seed, e);
    return [anew, infer(bought(), noisy, e, alphas[state.a])].map((all) => all[p][largest]);
  };
  const [a, b] = cells[p][largest].map((code, side) => values[pairs[p][side]][code]);
  const labels = ["bought anew", "inferred"];
  drawTwenty(state, answers, labels, tables[p][largest], `${a}, ${b}: people`, ["--lost", "--idea"]);
}

const set = play({ state, sliders: ["e", "a"], show, fall, rest: 400 });
function buy() {
  if (bought().includes(state.p) || bought().length >= pays[state.e]) return;
  purchases = [...bought(), state.p];
  set({});
}
$("buy").onclick = buy;
$("over").onclick = () => {
  purchases = [];
  set({});
};

// A mouse chooses the pair under it and buys with a click. A finger chooses first, and buys with a second tap.
for (const svg of [$("truth"), $("every"), $("idea")]) {
  const under = (event) => [...svg.children].indexOf(event.target.closest(".cell"));
  svg.onpointermove = (event) => {
    const p = under(event);
    if (event.pointerType === "mouse" && p >= 0 && p !== state.p) set({ p });
  };
  svg.onclick = (event) => {
    const p = under(event);
    if (p < 0) return;
    if (p === state.p) buy();
    else set({ p });
  };
}
$("idea").onkeydown = (event) => {
  const step = ARROWS[event.key];
  if (event.key === "Enter" || event.key === " ") buy();
  else if (!step) return;
  event.preventDefault();
  if (!step) return;
  const [i, j] = pairs[state.p].map((k, side) => k + step[side]);
  if (i >= 0 && i < j && j < names.length) set({ p: pairOf(i, j) });
};
