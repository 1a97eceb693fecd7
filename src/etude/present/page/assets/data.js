"use strict";
// The measurements in the page: read once, looked up by test, and handed out as files.

const DATA = JSON.parse(document.getElementById("measurements").textContent);
const TESTS = new Map();
for (const result of DATA.results) {
  for (const test of result.tests) TESTS.set(test.anchor, { ...test, result });
}

// One point a trial that has a value: `x` counts the trials where their numbers do not rise.
function pointsOf(test, metric) {
  const column = test.columns[metric];
  if (!column) return [];
  const rising = test.trials.every((trial, place) => place === 0 || trial > test.trials[place - 1]);
  const points = test.trials.map((trial, place) => ({
    x: rising ? trial : place + 1,
    trial,
    value: column.values[place],
    kept: test.kept[place],
    why: test.why ? test.why[place] : null,
    sitting: test.sittings ? test.sittings[place] : null,
    flags: test.flags[trial] || [],
  }));
  return points.filter((point) => point.value !== null);
}

function shownNumber(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e6 || size < 1e-3 ? value.toExponential(3) : String(Number(value.toPrecision(4)));
}

// The unit that the primary metric is read in; other metrics stay in their own.
function scaleOf(test, metric) {
  if (metric === test.result.primary) return test.scale;
  const unit = test.columns[metric] ? test.columns[metric].unit : "";
  return { divisor: 1, unit: unit === "1" ? "" : unit };
}

function inWords(point, scale) {
  const value = `${shownNumber(point.value / scale.divisor)} ${scale.unit}`.trim();
  const state = point.kept ? "kept" : `not kept${point.why ? `: ${point.why}` : ""}`;
  const flags = point.flags.length ? `; warned of: ${point.flags.join(", ")}` : "";
  return `trial ${point.trial}: ${value}, ${state}${flags}`;
}

function field(value) {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// One line a value, which any program can read.
function asCsv() {
  const lines = [["results", "test", "parameters", "trial", "block", "sitting", "kept", "why", "metric", "value", "unit"]];
  for (const result of DATA.results) {
    for (const test of [...result.tests, ...result.twins]) {
      const parameters = Object.entries(test.parameters).map(([name, value]) => `${name}=${value}`).join(" ");
      for (const [metric, column] of Object.entries(test.columns)) {
        column.values.forEach((value, place) => {
          const block = test.blocks ? test.blocks[place] : null;
          const sitting = test.sittings ? test.sittings[place] : null;
          const why = test.why ? test.why[place] : null;
          const row = [result.label, test.test, parameters, test.trials[place], block, sitting, test.kept[place], why];
          lines.push([...row, metric, value, column.unit]);
        });
      }
    }
  }
  return lines.map((line) => line.map(field).join(",")).join("\r\n") + "\r\n";
}

function asJson() {
  const results = DATA.results.map(({ label, primary, tests, twins, comparisons }) => ({ label, primary, tests, twins, comparisons }));
  return JSON.stringify(DATA.reports.length ? { results, reports: DATA.reports } : { results }, null, 1);
}

function asExperiments() {
  const found = DATA.results.map((result) => result.experiment).filter(Boolean);
  return JSON.stringify(found.length === 1 ? found[0] : found, null, 1);
}

const FILES = {
  csv: ["measurements.csv", "text/csv", asCsv],
  json: ["measurements.json", "application/json", asJson],
  experiment: ["experiment.json", "application/json", asExperiments],
};

function handOut(name, address) {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
}

function download(kind) {
  const [name, type, make] = FILES[kind];
  const address = URL.createObjectURL(new Blob([make()], { type }));
  handOut(name, address);
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

for (const button of document.querySelectorAll("[data-download]")) {
  const kind = button.dataset.download;
  button.hidden = kind !== "json" && !DATA.results.some((result) => kind === "csv" || result.experiment);
  button.addEventListener("click", () => download(kind));
}

// A test's trials as a table, made when it is opened: thousands of rows need not be there before.
function fillTrials(details) {
  if (details.querySelector("table")) return;
  const test = TESTS.get(details.dataset.test);
  const metric = document.getElementById("metric").value || test.result.primary;
  const scale = scaleOf(test, metric);
  const table = document.createElement("table");
  const row = (cells, tag, to) => {
    const line = to.insertRow();
    for (const text of cells) {
      const cell = line.appendChild(document.createElement(tag));
      cell.textContent = text;
      if (tag === "th") cell.scope = "col";
    }
  };
  row(["trial", `${metric} ${scale.unit && `(${scale.unit})`}`, "kept", "warned of"], "th", table.createTHead());
  const body = table.createTBody();
  for (const point of pointsOf(test, metric)) {
    const state = point.kept ? "yes" : `no: ${point.why || "no reason given"}`;
    row([point.trial, shownNumber(point.value / scale.divisor), state, point.flags.join(", ")], "td", body);
  }
  const scroll = document.createElement("div");
  scroll.className = "scroll";
  scroll.tabIndex = 0;
  scroll.role = "group";
  scroll.ariaLabel = `Trials of ${test.test}`;
  scroll.append(table);
  details.append(scroll);
}
for (const details of document.querySelectorAll("details.trials")) {
  details.addEventListener("toggle", () => details.open && fillTrials(details));
}
