// Shared by all stories: words of noise, the state in the address, axes, maps, and dots that fall.
"use strict";

const DATA = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const whole = (x) => (Math.round(x) + 0).toLocaleString("en").replace("-", "−");
const add = (values) => values.reduce((sum, x) => sum + x, 0);
const dark = matchMedia("(prefers-color-scheme: dark)");

// Words: a stream of 32-bit integers that depends on its seed alone, the same as in Python.
function words(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = state;
    x = Math.imul(x ^ (x >>> 15), x | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return (x ^ (x >>> 14)) >>> 0;
  };
}

// The noise of a word: the last bit is the sign, and the first `bits` are compared with the thresholds of a setting.
// A slider keeps the words, so a move shows the effect of the parameter alone.
function noise(word, thresholds, bits = 31) {
  const first = word >>> (32 - bits);
  let low = 0;
  let high = thresholds.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (first < thresholds[middle]) high = middle;
    else low = middle + 1;
  }
  return word & 1 ? -low : low;
}

// The state in the address: integers in their ranges, and texts of at most `most` pieces. Impossible settings are
// moved to the nearest possible ones, with a note.
function stateFromAddress(ranges, pieces = {}) {
  const given = new URLSearchParams(location.hash.slice(1));
  const state = {};
  const moved = [];
  for (const [name, { low, high, start }] of Object.entries(ranges)) {
    const text = given.get(name);
    const number = text === null || text.trim() === "" ? start : Math.round(Number(text));
    const inside = Number.isFinite(number) ? Math.min(high, Math.max(low, number)) : start;
    if (text !== null && String(inside) !== text) moved.push(`${name} = ${text}`);
    state[name] = inside;
  }
  for (const [name, { pattern, most }] of Object.entries(pieces)) {
    const text = given.get(name) || "";
    state[name] = (text.match(pattern) || []).slice(0, most).join("");
    if (state[name] !== text) moved.push(name);
  }
  if (moved.length) note(`The address asked for ${moved.join(", ")}. The nearest possible setting is shown.`);
  return state;
}

// A note stays until the next touch.
function note(words) {
  $("note").hidden = !words;
  $("note").textContent = words;
}
addEventListener("pointerdown", () => note(""));

function stateToAddress(state) {
  history.replaceState(null, "", `#${new URLSearchParams(state)}`);
  if (!lastDots) return;
  lastDots.address ??= location.hash;
  lastDots.svg.style.opacity = lastDots.address === location.hash ? 1 : 0.3;
}

// Axes
function scale(low, high, from, to, logarithmic) {
  const f = logarithmic ? Math.log : (x) => x;
  const clip = (x) => Math.min(high, Math.max(low, x));
  return (x) => from + ((f(clip(x)) - f(low)) / (f(high) - f(low))) * (to - from);
}

function text(x, y, words, anchor = "start", style = "") {
  return `<text x="${x}" y="${y}" text-anchor="${anchor}" ${style}>${words}</text>`;
}

function line(points, colour, dash = "") {
  const path = points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L");
  return `<path d="M${path}" fill="none" stroke="var(${colour})" stroke-width="2.2" stroke-dasharray="${dash}"/>`;
}

// Small grey words of an axis, numbers below it, and lines of a grid with numbers at their left.
const grey = (x, y, words, anchor) => text(x, y, words, anchor, 'class="axis"');
const numbers = (values, x, y) => values.map((v) => grey(x(v), y, v.toLocaleString("en"), "middle")).join("");
const grid = (values, y, left, right) =>
  values.map((v) => `<path class="grid" d="M${left} ${y(v)}H${right}"/>` +
    grey(left - 6, y(v) + 4, v.toLocaleString("en"), "end")).join("");

// Labels at line ends, kept at least 15 pixels apart: rows of [label, colour, height].
function lineEnds(x, rows) {
  let last = -Infinity;
  const lower = [...rows].sort((a, b) => a[2] - b[2]);
  return lower.map(([label, colour, y]) => {
    last = Math.max(y + 4, last + 15);
    return text(x, last, label, "start", `style="fill:var(${colour})"`);
  }).join("");
}

// Tables on a square map: their colours, sums over rectangles, and the mean error of square questions.
function tableOf(runs, side) {
  const table = new Int32Array(side * side);
  for (let i = 0, cell = -1; i < runs.length; i += 2) {
    cell += runs[i];
    table[cell] = runs[i + 1];
  }
  return table;
}

function paint(id, values, side) {
  const canvas = $(id).firstElementChild;
  canvas.width = canvas.height = side;
  const context = canvas.getContext("2d");
  const image = context.createImageData(side, side);
  const [ground, more, less] = dark.matches
    ? [[21, 24, 27], [140, 205, 255], [255, 155, 94]]
    : [[255, 255, 255], [0, 60, 120], [194, 74, 0]];
  values.forEach((value, i) => {
    const end = value < 0 ? less : more;
    const size = Math.abs(value);
    const share = 0.12 * Math.min(1, size) + 0.88 * Math.min(1, Math.log1p(size) / Math.log(150));
    for (let k = 0; k < 3; k++) image.data[4 * i + k] = ground[k] + share * (end[k] - ground[k]);
    image.data[4 * i + 3] = 255;
  });
  context.putImageData(image, 0, 0);
}

function showAsked(side, sizes) {
  const [left, top, width, height] = sizes.map((v) => `${(100 * v) / side}%`);
  for (const box of document.querySelectorAll(".asked")) Object.assign(box.style, { left, top, width, height });
}

function cellAt(event, side) {
  const box = event.currentTarget.getBoundingClientRect();
  const inside = (v, size) => Math.max(0, Math.min(side - 1, Math.floor((side * v) / size)));
  return [inside(event.clientX - box.left, box.width), inside(event.clientY - box.top, box.height)];
}

// Sums over rectangles follow from sums over their corners.
function corners(values, side) {
  const sums = new Float64Array((side + 1) * (side + 1));
  for (let y = 0; y < side; y++) {
    let row = 0;
    for (let x = 0; x < side; x++) {
      row += values[y * side + x];
      sums[(y + 1) * (side + 1) + x + 1] = sums[y * (side + 1) + x + 1] + row;
    }
  }
  return (x0, y0, x1, y1) => {
    const at = (x, y) => sums[y * (side + 1) + x];
    return at(x1, y1) - at(x0, y1) - at(x1, y0) + at(x0, y0);
  };
}

function squares(size, side) {
  const next = words(size);
  const place = () => next() % (side - size + 1);
  return Array.from({ length: 100 }, () => [place(), place()]).map(([x, y]) => [x, y, x + size, y + size]);
}

const meanErrors = (questions, sum, truth) =>
  questions.map((some) => add(some.map((q) => Math.abs(sum(...q) - truth(...q)))) / some.length);

// Mean errors by the size of a square, up to `most` people: with noise in every cell, and with the paper's idea.
function errorCurve(sizes, every, idea, label, most) {
  const x = scale(1, sizes.at(-1) ** 2, 46, 352, true);
  const y = scale(0.1, most, 186, 26, true);
  const points = (errors) => errors.map((error, k) => [x(sizes[k] ** 2), y(error)]);
  $("curve").innerHTML =
    grey(4, 12, "mean error of a square question (people)") +
    grid([0.1, 1, 10, 100, 1000], y, 46, 352) +
    numbers(sizes.map((size) => size ** 2), x, 203) +
    grey(474, 203, "cells", "end") +
    line(points(every), "--every", "5 3") +
    line(points(idea), "--idea") +
    lineEnds(358, [["noise in every cell", "--every", y(every.at(-1))], [label, "--idea", y(idea.at(-1))]]);
}

// Dots that fall one after another: rows of {label, colour, values} along one axis, with the truth as a line.
// They fade when the settings are no longer those of the draws.
let lastDots = null;

function dots(svg, rows, truth, unit) {
  const all = rows.flatMap((row) => row.values).concat(truth);
  const spread = Math.max(...all) - Math.min(...all) || 1;
  const x = scale(Math.min(...all) - spread * 0.08, Math.max(...all) + spread * 0.08, 14, 466, false);
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let drawn = `<path d="M${x(truth)} 18V186" stroke="var(--ink)" stroke-dasharray="3 3"/>`;
  drawn += text(x(truth), 12, `truth ${whole(truth)}`, x(truth) > 240 ? "end" : "start");
  const pitch = 180 / rows.length;
  rows.forEach((row, k) => {
    const base = 6 + pitch * (k + 1);
    drawn +=
      `<path class="grid" d="M14 ${base}H466"/>` +
      text(14, base + 13, row.label, "start", `style="fill:var(${row.colour})"`);
    const taken = {};
    const places = row.values.map((value) => Math.round(x(value) / 9));
    const highest = Math.max(...places.map((place) => places.filter((other) => other === place).length));
    const step = Math.min(8, (pitch - 16) / highest);
    places.forEach((place, i) => {
      taken[place] = (taken[place] || 0) + 1;
      const end = base - step * taken[place] + 3;
      const fall = calm
        ? ""
        : `<animate attributeName="cy" from="20" to="${end}" begin="indefinite" dur="0.35s" ` +
          `fill="freeze" data-wait="${i * 60}"/>`;
      drawn += `<circle cx="${9 * place}" cy="${calm ? end : 20}" r="4" ` +
        `fill="var(${row.colour})" fill-opacity="0.75">${fall}</circle>`;
    });
  });
  svg.innerHTML = drawn + grey(466, 200, unit, "end");
  lastDots = { svg, address: null };
  for (const animation of svg.querySelectorAll("animate")) animation.beginElementAt(animation.dataset.wait / 1000);
}

// Twenty draws as dots that fall. `answers(seed)` has a value for each label.
function drawTwenty(state, answers, labels, truth, unit, colours = ["--every", "--idea"]) {
  const drawn = Array.from({ length: 20 }, (_, k) => answers((state.d + k) >>> 0));
  const rows = labels.map((label, k) => ({ label, colour: colours[k], values: drawn.map((each) => each[k]) }));
  dots($("dots"), rows, truth, `${unit}, 20 draws`);
}

// Shows a story, and again at most once per frame while its sliders move. "Draw again" takes other words. Returns
// what changes settings. With `rest`, dots fall again when nothing has changed for so long, otherwise they fade.
function play({ state, sliders, show, fall, rest }) {
  const soon = oncePerFrame(show);
  let waiting = 0;
  const set = (changes) => {
    Object.assign(state, changes);
    soon();
    clearTimeout(waiting);
    if (rest) waiting = setTimeout(fall, rest);
  };
  for (const id of sliders) $(id).oninput = () => set({ [id]: Number($(id).value) });
  $("again").onclick = () => {
    state.d = words(state.d + 1)();
    fall();
    show();
  };
  dark.addEventListener("change", soon);
  fall();
  show();
  return set;
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// Draws at most once per frame, however fast a slider moves.
function oncePerFrame(draw) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  };
}
