// Squares of the front, the picture of a figure, and Copy. Without it pages show everything.
"use strict";
document.documentElement.classList.add("scripted");

for (const button of document.querySelectorAll("[data-copy]"))
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
  });

addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});

// Front: the square in focus is read out; words and outcomes that are looked for fade the others.
const front = document.querySelector(".reproduces");
if (front) {
  const said = document.querySelector(".said");
  const usual = said?.textContent;
  const squares = [...front.querySelectorAll(".square")];
  const search = document.querySelector("#sought");
  const outcomes = [...document.querySelectorAll(".key [name=outcome]")];
  for (const event of ["mouseover", "focusin"])
    front.addEventListener(event, ({ target }) => {
      if (target.matches(".square")) said.textContent = target.ariaLabel;
    });
  const show = () => {
    const chosen = new Set(outcomes.filter((box) => box.checked).map((box) => box.value));
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const square of squares) {
      const text = `${square.ariaLabel} ${square.href}`.toLowerCase();
      const wanted = chosen.has(square.dataset.outcome) && words.every((word) => text.includes(word));
      square.classList.toggle("pale", !wanted);
      found += wanted;
    }
    said.textContent = found === squares.length ? usual : `${found} of ${squares.length} statements.`;
  };
  for (const input of [search, ...outcomes]) input?.addEventListener("input", show);
}

// A link to a statement or a section opens it.
function openTarget() {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const details = target && (target.matches("details") ? target : target.querySelector("details"));
  if (details) {
    details.open = true;
    point(details);
  }
}

// A picture: the statement in focus keeps the colour of its series, and the nearest mark is read out.
const picture = document.querySelector(".drawn svg");

function point(statement) {
  if (!picture) return;
  const marks = statement?.dataset.marks?.split(" ") ?? [];
  picture.classList.toggle("pointed", marks.length > 0);
  for (const mark of picture.querySelectorAll("g.on")) mark.classList.remove("on");
  for (const id of marks) picture.getElementById(id)?.classList.add("on");
}

const statements = document.querySelector(".statements");
if (statements) {
  for (const event of ["mouseover", "focusin"])
    statements.addEventListener(event, ({ target }) => point(target.closest(".statement")));
  statements.addEventListener("mouseleave", () => point(document.activeElement.closest(".statement")));
  addEventListener("hashchange", openTarget);
  openTarget();
}

if (picture) {
  const readout = document.querySelector(".readout");
  const usual = readout.textContent;
  const ring = document.createElementNS("http://www.w3.org/2000/svg", "circle");
  ring.setAttribute("class", "ring");
  ring.setAttribute("r", 5);
  const marks = [];
  for (const { letter, series } of JSON.parse(document.getElementById("aggregates").textContent))
    for (const { name, ids, places, points } of series)
      places.forEach(([x, y], i) => marks.push({ letter, name, ids, x, y, point: points[i] }));
  picture.addEventListener("pointermove", (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
    let nearest = null;
    let least = 12;
    for (const mark of marks) {
      const distance = Math.hypot(mark.x - at.x, mark.y - at.y);
      if (distance < least) [nearest, least] = [mark, distance];
    }
    ring.remove();
    if (!nearest) return (readout.textContent = usual);
    const [x, mean, low, high] = nearest.point;
    const interval = low && high && low !== high ? ` (${low} to ${high})` : "";
    const panel = nearest.letter ? `Panel ${nearest.letter}, ` : "";
    readout.textContent = `${panel}${nearest.name}, at ${x}: ${mean}${interval}`;
    ring.setAttribute("cx", nearest.x);
    ring.setAttribute("cy", nearest.y);
    picture.append(ring);
  });
}
