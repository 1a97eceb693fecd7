"use strict";
// What ties the page together: charts as they come into view, the theme, printing, and links to a trial.

const CHARTS = [...document.querySelectorAll("[data-chart]")];
const started = new Map(); // a chart's element → the promise of its drawing

function drawOnce(element) {
  if (!started.has(element)) started.set(element, draw(element));
  return started.get(element);
}

// One after the other, so that the page stays alive; resolves when all are there.
async function drawAll() {
  for (const element of CHARTS) await drawOnce(element);
}

function redraw() {
  for (const element of started.keys()) started.set(element, started.get(element).then(() => draw(element)));
  return Promise.all(started.values());
}

const inView = new IntersectionObserver(
  (entries) => {
    const seen = entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target);
    seen.forEach((element) => inView.unobserve(element));
    Promise.all(seen.map(drawOnce)).then(() => {
      if (seen.length) performance.mark("charts-drawn");
      document.documentElement.dataset.charts = "drawn"; // all that is in view
    });
  },
  { rootMargin: "150px" },
);
if (!CHARTS.length) document.documentElement.dataset.charts = "none";
for (const element of CHARTS) {
  inView.observe(element);
  element.addEventListener("keydown", onKey);
}

document.getElementById("theme").addEventListener("change", (event) => {
  if (event.target.value) document.documentElement.dataset.theme = event.target.value;
  else delete document.documentElement.dataset.theme;
  redraw();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

const chosen = document.getElementById("metric");
if (chosen) {
  chosen.addEventListener("change", () => {
    for (const details of document.querySelectorAll("details.trials")) {
      details.querySelector(".scroll")?.remove();
      if (details.open) fillTrials(details);
    }
    redraw();
  });
}

for (const link of document.querySelectorAll(".to-trial")) {
  link.addEventListener("click", async () => {
    const element = document.querySelector(`[data-chart="course"][data-test="${link.hash.slice(1)}"]`);
    const [trial] = link.dataset.trials.split(",").filter(Boolean);
    await drawOnce(element);
    if (trial) pointAtTrial(element, Number(trial));
    element.focus({ preventScroll: true });
  });
}

// On paper everything is open and light; the button draws what was not looked at first.
const opened = [];
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details:not(.trials):not([open])")) {
    details.open = true;
    opened.push(details);
  }
  for (const element of drawn.keys()) putOnPaper(element);
});
addEventListener("afterprint", () => {
  for (const details of opened.splice(0)) details.open = false;
  for (const paper of document.querySelectorAll(".paper")) paper.remove();
});
document.getElementById("print").addEventListener("click", async () => {
  await drawAll();
  print();
});
