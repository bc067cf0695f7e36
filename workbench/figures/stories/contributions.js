// Fan & Jin 2015: sampling the records of each user before noise is added.
"use strict";

const { items, visits, limits, epsilons, bits, thresholds, mean_noise: meanNoise } = DATA;
const most = limits.length - 1;

const truth = new Int32Array(items);
for (const person of visits) for (const item of person) truth[item]++;

// The two releases of a seed. A person's visits are kept in the order of their words, so a lower limit keeps some of
// the visits that a higher one keeps. Noise hides l visits, or a single one if ε covers each by itself.
function published(seed, e, l, each) {
  const next = words(seed);
  const every = new Int32Array(items);
  const idea = new Int32Array(items);
  for (const person of visits) {
    const order = person.map((item) => [next(), item]).sort((a, b) => a[0] - b[0]);
    for (const [, item] of order.slice(0, limits[l])) idea[item]++;
  }
  for (let i = 0; i < items; i++) {
    const word = next();
    every[i] = truth[i] + noise(word, thresholds[e][each ? 0 : most], bits);
    idea[i] += noise(word, thresholds[e][each ? 0 : l], bits);
  }
  return { every, idea };
}

// Expected visits that a count loses to a limit: the mean over places.
const truncated = limits.map(
  (limit) => visits.reduce((lost, person) => lost + Math.max(0, person.length - limit), 0) / items,
);
const lossOf = (e, l, each) => ({ truncation: truncated[l], noise: meanNoise[e][each ? 0 : l] });

// Pictures
function bars(id, values, colour) {
  const top = Math.max(...truth) * 1.2;
  const low = -top * 0.12;
  const y = scale(low, top, 244, 6, false);
  const width = 420 / items;
  let drawn = `<path class="grid" d="M0 ${y(0)}H420"/>`;
  for (let i = 0; i < items; i++) {
    const [a, b] = [y(Math.max(0, values[i])), y(Math.min(0, values[i]))];
    drawn += `<rect x="${i * width + 2}" y="${a}" width="${width - 4}" height="${b - a}" fill="var(${colour})"/>`;
    drawn += `<path d="M${i * width} ${y(truth[i])}h${width}" stroke="var(--ink)" stroke-width="1.6"/>`;
  }
  $(id).innerHTML = drawn;
}

function drawUsers(l) {
  const y = scale(0, limits[most], 172, 8, false);
  const width = 446 / visits.length;
  let drawn = grid([0, 5, 10, 15, 20], y, 28, 474);
  visits.forEach((person, i) => {
    const kept = Math.min(person.length, limits[l]);
    const x = 28 + i * width;
    drawn += `<rect x="${x}" y="${y(kept)}" width="${width}" height="${172 - y(kept)}" fill="var(--idea)"/>`;
    drawn += `<rect x="${x}" y="${y(person.length)}" width="${width}" ` +
      `height="${y(kept) - y(person.length)}" fill="var(--lost)" fill-opacity="0.55"/>`;
  });
  drawn += `<path d="M28 ${y(limits[l])}H474" stroke="var(--ask)" stroke-width="2.5"/>`;
  drawn += text(472, y(limits[l]) - 5, `limit l = ${limits[l]}`, "end", 'style="fill:var(--ask)"');
  $("users").innerHTML = drawn + grey(28, 187, "visits of each person");
}

function drawCurve(e, l, each) {
  const losses = limits.map((_, k) => lossOf(e, k, each));
  const highest = Math.max(...losses.map((x) => x.truncation + x.noise));
  const x = scale(1, limits[most], 34, 368, true);
  const y = scale(0, highest * 1.05, 172, 8, false);
  const area = (upper, lower, colour) => {
    const there = upper.map((v, k) => `${x(limits[k])} ${y(v)}`);
    const back = lower.map((v, k) => `${x(limits[k])} ${y(v)}`).reverse();
    return `<path d="M${there.concat(back).join("L")}Z" fill="var(${colour})" fill-opacity="0.55"/>`;
  };
  const low = losses.map((v) => v.truncation);
  const both = losses.map((v) => v.truncation + v.noise);
  const none = losses.map(() => 0);
  const step = highest > 60 ? 50 : highest > 20 ? 10 : 5;
  const heights = Array.from({ length: Math.ceil(highest / step) }, (_, k) => k * step);
  const noisy = ["lost to noise", "--every", y(low[most] + losses[most].noise / 2)];
  $("curve").innerHTML =
    grid(heights, y, 34, 368) +
    area(low, none, "--lost") +
    area(both, low, "--every") +
    numbers([1, 2, 5, 10, 20], x, 187) +
    `<path d="M${x(limits[l])} 8V172" stroke="var(--ask)" stroke-width="2.5"/>` +
    lineEnds(374, [noisy, ["lost to truncation", "--lost", y(low[most]) - 6]]) +
    grey(474, 187, "limit l", "end");
}

const state = stateFromAddress({
  e: { low: 0, high: epsilons.length - 1, start: 0 },
  l: { low: 0, high: most, start: 4 },
  r: { low: 0, high: 1, start: 0 },
  d: { low: 0, high: 4294967295, start: 7 },
});

const meanError = (values) => add(values.map((v, i) => Math.abs(v - truth[i]))) / items;

function show() {
  const each = state.r === 1;
  const { every, idea } = published(state.d, state.e, state.l, each);
  bars("truth", truth, "--every");
  bars("every", every, "--every");
  bars("idea", idea, "--idea");
  drawUsers(state.l);
  drawCurve(state.e, state.l, each);
  for (const id of ["e", "l", "r"]) $(id).value = state[id];
  const epsilon = epsilons[state.e];
  $("e-out").textContent = epsilon;
  $("l-out").textContent = limits[state.l];
  for (const [name, values] of Object.entries({ every, idea }))
    $(`${name}-error`).textContent = `mean error of ${whole(meanError(values))} visits (lines: truth)`;
  const loss = (l) => truncated[l] + lossOf(state.e, l, each).noise;
  const best = limits.reduce((found, _, l) => (loss(l) < loss(found) ? l : found), 0);
  const now = lossOf(state.e, state.l, each);
  $("says").innerHTML =
    `At the limit l = <b>${limits[state.l]}</b> a count is expected to lose ${now.truncation.toFixed(1)} visits to ` +
    `truncation and ${now.noise.toFixed(1)} to noise. At ε = ${epsilon} ` +
    (each
      ? `for each single visit the best limit is <b>${limits[best]}</b>, because noise does not grow with it. ` +
        `But for all ${limits[state.l]} visits of a person, ε is ${Number((limits[state.l] * epsilon).toFixed(1))}.`
      : `the best limit is <b>${limits[best]}</b>. It falls as ε falls, because smaller limits need less noise.`);
  stateToAddress(state);
}

function fall() {
  const answers = (seed) => {
    const { every, idea } = published(seed, state.e, state.l, state.r === 1);
    return [every[0], idea[0]];
  };
  drawTwenty(state, answers, ["noise for everything", "truncation, then noise"], truth[0], "visits");
}

play({ state, sliders: ["e", "l", "r"], show, fall });
