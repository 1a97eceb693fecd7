"use strict";
// The flame graph: the library zooms and searches; this is what it lacks for keyboards and readers.

const graph = document.querySelector(".flame");
if (graph) {
  const bars = [...graph.querySelectorAll("#frames > g")].map((bar) => {
    const of = (name) => Number(bar.querySelector("rect").getAttribute(name));
    return { bar, y: of("y"), from: of("fg:x"), to: of("fg:x") + of("fg:w") };
  });
  const reading = document.getElementById("flame-reading");
  const matches = document.getElementById("flame-matches");
  const field = document.getElementById("flame-search");
  const shown = () => bars.filter(({ bar }) => !bar.classList.contains("hide"));
  let at = bars.reduce((low, each) => (each.y > low.y ? each : low), bars[0]);

  const read = (bar) => { reading.textContent = bar.querySelector("title").textContent; };
  const go = (to) => {
    if (!to) return;
    at.bar.classList.remove("at");
    (at = to).bar.classList.add("at");
    read(at.bar);
  };
  const find = () => {
    reset_search();
    searching = 0;
    const words = field.value.trim().replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    if (words) search(`${words}(?=.*\\([^(]*\\)$)`); // in the name, not in the times behind it
    matches.textContent = !words ? "" : searching ? document.getElementById("matched").textContent : "No function that is shown matches.";
  };
  // Neighbours of the same row, the caller below, the callee above that takes the most time.
  const near = {
    ArrowLeft: () => shown().filter((each) => each.y === at.y && each.to <= at.from).pop(),
    ArrowRight: () => shown().find((each) => each.y === at.y && each.from >= at.to),
    ArrowDown: () => shown().filter((each) => each.y > at.y && each.from <= at.from && each.to >= at.to).sort((a, b) => a.y - b.y)[0],
    ArrowUp: () => shown().filter((each) => each.y < at.y && each.from >= at.from && each.to <= at.to)
      .sort((a, b) => b.y - a.y || b.to - b.from - (a.to - a.from))[0],
  };
  bars.sort((a, b) => a.from - b.from);
  init();
  graph.addEventListener("keydown", (event) => {
    if (near[event.key]) go(near[event.key]());
    else if (event.key === "Enter") zoom(at.bar);
    else if (event.key === "Escape") { unzoom(); find(); }
    else return;
    event.preventDefault();
  });
  // The library opens a prompt for it, in place of the browser's own search of the page.
  window.addEventListener("keydown", (event) => {
    if (event.key === "F3" || (event.ctrlKey && event.key.toLowerCase() === "f")) event.stopImmediatePropagation();
  }, true);
  // The library lays it out for the window's width: on narrower paper it is scaled, not cut.
  const drawing = graph.querySelector("svg");
  const before = drawing.getAttribute("viewBox");
  addEventListener("beforeprint", () => {
    const { width, height } = drawing.getBoundingClientRect();
    drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
  });
  addEventListener("afterprint", () => {
    if (before) drawing.setAttribute("viewBox", before);
    else drawing.removeAttribute("viewBox");
  });
  graph.addEventListener("focus", () => go(at));
  graph.addEventListener("blur", () => at.bar.classList.remove("at"));
  graph.addEventListener("mouseover", (event) => {
    const bar = event.target.closest("#frames > g");
    if (bar) read(bar);
  });
  graph.addEventListener("click", (event) => {
    const found = bars.find(({ bar }) => bar === event.target.closest("#frames > g"));
    if (found) go(found);
  });
  field.addEventListener("input", find);
  document.getElementById("flame-reset").addEventListener("click", () => {
    unzoom();
    field.value = "";
    find();
  });
}
