// What all stories share: words of noise, the state in the address, axes, and dots that fall.
"use strict";

const DATA = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const whole = (x) => Math.round(x).toLocaleString("en").replace("-", "−");

// Words. A stream is a function of its seed alone: 32 bits a call, in whole numbers, as Python draws them.
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

// The noise of a word: its last bit is the sign, the first `bits` are compared with the thresholds of a stop.
// The same word at another stop is the same luck, so that a slider moves the parameter and nothing else.
function noise(word, thresholds, bits = 31) {
  const chance = word >>> (32 - bits);
  let low = 0;
  let high = thresholds.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (chance < thresholds[middle]) high = middle;
    else low = middle + 1;
  }
  return word & 1 ? -low : low;
}

// The state in the address: whole numbers in their ranges; what is impossible is moved inside, with a note.
function stateFromAddress(ranges) {
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
  if (moved.length) {
    $("note").hidden = false;
    $("note").textContent = `The address asked for ${moved.join(", ")}; the nearest possible setting is shown.`;
  }
  return state;
}

function stateToAddress(state) {
  history.replaceState(null, "", `#${new URLSearchParams(state)}`);
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

// Labels at line ends, kept at least 15 pixels apart.
function apart(heights) {
  const order = heights.map((y, i) => [y, i]).sort((a, b) => a[0] - b[0]);
  for (let i = 1; i < order.length; i++) order[i][0] = Math.max(order[i][0], order[i - 1][0] + 15);
  const placed = [];
  for (const [y, i] of order) placed[i] = y;
  return placed;
}

// Dots that fall one after another: rows of {label, colour, values} along one axis, with the truth as a line.
function dots(svg, rows, truth, unit) {
  const all = rows.flatMap((row) => row.values).concat(truth);
  const spread = Math.max(...all) - Math.min(...all) || 1;
  const x = scale(Math.min(...all) - spread * 0.08, Math.max(...all) + spread * 0.08, 14, 466, false);
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let drawn = `<path d="M${x(truth)} 18V186" stroke="var(--ink)" stroke-dasharray="3 3"/>`;
  drawn += text(x(truth), 12, `truth ${whole(truth)}`, x(truth) > 240 ? "end" : "start");
  rows.forEach((row, k) => {
    const base = 96 + 90 * k;
    drawn +=
      `<path class="grid" d="M14 ${base}H466"/>` +
      text(14, base + 13, row.label, "start", `style="fill:var(${row.colour})"`);
    const taken = {};
    row.values.forEach((value, i) => {
      const place = Math.round(x(value) / 9);
      taken[place] = (taken[place] || 0) + 1;
      const end = base - 8 * taken[place] + 3;
      const fall = calm
        ? ""
        : `<animate attributeName="cy" from="20" to="${end}" begin="indefinite" dur="0.35s" ` +
          `fill="freeze" data-wait="${i * 60}"/>`;
      drawn += `<circle cx="${9 * place}" cy="${calm ? end : 20}" r="4" ` +
        `fill="var(${row.colour})" fill-opacity="0.75">${fall}</circle>`;
    });
  });
  svg.innerHTML = drawn + text(466, 200, unit, "end", 'class="axis"');
  for (const animation of svg.querySelectorAll("animate")) animation.beginElementAt(animation.dataset.wait / 1000);
}

// Asks for one picture a frame, however fast a slider moves.
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
