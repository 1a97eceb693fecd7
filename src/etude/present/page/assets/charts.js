"use strict";
// The charts, drawn by Bokeh when they come into view.

const HEIGHT = 260;
const drawn = new Map(); // a chart's element → { view, points, ring, figure, home }

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// Bokeh takes what stands between these for formulas, for which it wants another library: names are shown as they are.
function plain(text) {
  return String(text).replaceAll("$$", "$\u200b$").replace(/\\(?=[([])/g, "\\\u200b");
}

function shortened(text, most = 36) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function emptyFigure(height, x, y) {
  const figure = Bokeh.Plotting.figure({
    height, sizing_mode: "stretch_width", tools: "box_zoom,pan,reset,save", active_drag: "box_zoom", min_width: 200,
    background_fill_color: colour("paper"), border_fill_color: colour("paper"), outline_line_color: colour("line"),
  });
  figure.toolbar.logo = null;
  figure.toolbar.autohide = true;
  const ink = { axis_label: [x, y] };
  [figure.below[0], figure.left[0]].forEach((axis, place) => {
    axis.axis_label = plain(ink.axis_label[place]);
    axis.axis_label_text_font_style = "normal";
    axis.axis_label_text_font_size = axis.major_label_text_font_size = "13px";
    axis.axis_label_text_color = axis.major_label_text_color = colour("ink");
    axis.axis_line_color = axis.major_tick_line_color = axis.minor_tick_line_color = colour("quiet");
  });
  for (const grid of figure.center) grid.grid_line_color = colour("line");
  return figure;
}

function sourceOf(points, x, y, scale) {
  return new Bokeh.ColumnDataSource({
    data: { x: points.map(x), y: points.map(y), words: points.map((point) => inWords(point, scale)) },
  });
}

// Kept, named by a warning, not kept: told apart by shape as well as by colour.
function addPoints(figure, points, x, y, scale) {
  const looks = [
    [(p) => p.kept && !p.flags.length, { marker: "circle", size: 6, fill_color: colour("kept"), line_color: null, fill_alpha: 0.75 }],
    [(p) => p.kept && p.flags.length, { marker: "triangle", size: 11, fill_color: colour("flagged"), line_color: colour("ink") }],
    [(p) => !p.kept, { marker: "circle", size: 8, fill_color: null, line_color: colour("aside"), line_width: 2 }],
  ];
  const renderers = [];
  for (const [wanted, look] of looks) {
    const chosen = points.filter(wanted);
    if (!chosen.length) continue;
    const source = sourceOf(chosen, x, y, scale);
    renderers.push(figure.scatter({ field: "x" }, { field: "y" }, { source, ...look }));
  }
  figure.add_tools(new Bokeh.HoverTool({ renderers, tooltips: [["", "@words"]] }));
}

function addRing(figure) {
  const source = new Bokeh.ColumnDataSource({ data: { x: [], y: [] } });
  figure.scatter({ field: "x" }, { field: "y" }, {
    source, marker: "circle", size: 18, fill_color: null, line_color: colour("ink"), line_width: 3,
  });
  return source;
}

function course(test, metric) {
  const scale = scaleOf(test, metric);
  const points = pointsOf(test, metric);
  const figure = emptyFigure(HEIGHT, "trial", `${metric} ${scale.unit && `(${scale.unit})`}`.trim());
  figure.below[0].ticker = new Bokeh.BasicTicker({ min_interval: 1, num_minor_ticks: 0 });
  const y = (point) => point.value / scale.divisor;
  if (metric === test.result.primary && test.interval) {
    const [low, high] = test.interval.map((end) => end / scale.divisor);
    figure.add_layout(new Bokeh.BoxAnnotation({ bottom: low, top: high, fill_color: colour("kept"), fill_alpha: 0.14, line_color: null }));
    figure.add_layout(new Bokeh.Span({ location: test.mean / scale.divisor, dimension: "width", line_color: colour("kept") }));
  }
  points.forEach((point, place) => {
    if (place && point.sitting !== points[place - 1].sitting) {
      const between = (point.x + points[place - 1].x) / 2;
      figure.add_layout(new Bokeh.Span({ location: between, dimension: "height", line_color: colour("quiet"), line_dash: "dashed" }));
    }
  });
  addPoints(figure, points, (point) => point.x, y, scale);
  return { figure, points: points.map((p) => ({ x: p.x, y: y(p), trial: p.trial, words: inWords(p, scale) })) };
}

function distribution(test, metric) {
  const scale = scaleOf(test, metric);
  const points = pointsOf(test, metric).filter((point) => point.kept).sort((a, b) => a.value - b.value);
  const figure = emptyFigure(HEIGHT, `${metric} ${scale.unit && `(${scale.unit})`}`.trim(), "share of trials");
  const share = new Map(points.map((point, place) => [point, (place + 1) / points.length]));
  const x = (point) => point.value / scale.divisor;
  const source = sourceOf(points, x, (point) => share.get(point), scale);
  figure.step({ field: "x" }, { field: "y" }, "after", { source, line_color: colour("kept"), line_width: 2 });
  addPoints(figure, points, x, (point) => share.get(point), scale);
  return { figure, points: points.map((p) => ({ x: x(p), y: share.get(p), trial: p.trial, words: inWords(p, scale) })) };
}

const MOST_RATIOS = 60;

function forest() {
  const all = DATA.results.flatMap((result) => result.comparisons).concat(DATA.across);
  const ratios = all.filter((c) => c.low !== null && c.high !== null).slice(0, MOST_RATIOS);
  const height = Math.max(140, 70 + 26 * ratios.length);
  const figure = emptyFigure(height, "ratio", "");
  const axis = figure.left[0];
  axis.ticker = new Bokeh.FixedTicker({ ticks: ratios.map((_, place) => -place) });
  figure.center[1].ticker = axis.ticker; // a line for each ratio, none between
  axis.major_label_overrides = new Map(ratios.map((c, place) => [-place, plain(shortened(`${c.other} / ${c.base}`))]));
  figure.y_range = new Bokeh.Range1d({ start: 0.6 - ratios.length, end: 0.6 });
  const noise = (c) => (c.floor ? `, A/A noise ± ${shownNumber(100 * c.floor)} %` : "");
  const words = (c) => `${c.other} against ${c.base}: ${shownNumber(c.ratio)} (${shownNumber(c.low)} to ${shownNumber(c.high)})${noise(c)}`;
  const source = new Bokeh.ColumnDataSource({ data: {
    x: ratios.map((c) => c.ratio), y: ratios.map((_, place) => -place), low: ratios.map((c) => c.low),
    high: ratios.map((c) => c.high), words: ratios.map(words),
  } });
  // Each row's A/A noise: a ratio within it is not told from identical commands.
  const noisy = ratios.map((c, place) => ({ floor: c.floor, y: -place })).filter((row) => row.floor);
  const bands = new Bokeh.ColumnDataSource({ data: {
    left: noisy.map((row) => 1 / (1 + row.floor)), right: noisy.map((row) => 1 + row.floor),
    bottom: noisy.map((row) => row.y - 0.45), top: noisy.map((row) => row.y + 0.45),
  } });
  figure.quad({ field: "left" }, { field: "right" }, { field: "bottom" }, { field: "top" }, {
    source: bands, fill_color: colour("aside"), fill_alpha: 0.25, line_color: null,
  });
  figure.add_layout(new Bokeh.Span({ location: 1, dimension: "height", line_color: colour("ink"), line_dash: "dashed" }));
  figure.segment({ field: "low" }, { field: "y" }, { field: "high" }, { field: "y" }, { source, line_color: colour("kept"), line_width: 3 });
  const dots = figure.scatter({ field: "x" }, { field: "y" }, { source, marker: "square", size: 9, fill_color: colour("kept"), line_color: colour("paper") });
  figure.scatter([1], [0], { size: 0, fill_alpha: 0, line_alpha: 0 }); // 1 is always in view
  figure.add_tools(new Bokeh.HoverTool({ renderers: [dots], tooltips: [["", "@words"]] }));
  return { figure, height, points: ratios.map((c, place) => ({ x: c.ratio, y: -place, words: words(c) })) };
}

async function draw(element) {
  const test = TESTS.get(element.dataset.test);
  const metric = test && (document.getElementById("metric").value || test.result.primary);
  const kind = element.dataset.chart;
  const made = kind === "forest" ? forest() : kind === "course" ? course(test, metric) : distribution(test, metric);
  const before = drawn.get(element);
  if (!made.points.length) {
    if (before) before.view.remove();
    drawn.delete(element);
    element.textContent = "Nothing to draw: no trial has a value.";
    return;
  }
  const ring = addRing(made.figure);
  element.style.height = `${made.height || HEIGHT}px`;
  if (before) before.view.remove();
  element.replaceChildren();
  const view = await Bokeh.Plotting.show(made.figure, element);
  view.canvas_view.events_el.tabIndex = -1; // the chart itself takes the focus and has a name
  drawn.set(element, { view, ring, figure: made.figure, points: made.points, place: -1, home: null });
}

// On paper a chart is a picture: Bokeh would draw it anew for its width only after the page is printed.
function putOnPaper(element) {
  const paper = drawn.get(element).view.export().canvas;
  paper.removeAttribute("style");
  paper.classList.add("paper");
  paper.classList.toggle("dark", drawn.get(element).figure.background_fill_color !== "#ffffff");
  element.after(paper);
}

// Reading a chart by keyboard: a ring goes from point to point, and its words are said.
function pointAt(element, place) {
  const chart = drawn.get(element);
  if (!chart) return;
  chart.place = Math.min(Math.max(place, 0), chart.points.length - 1);
  const point = chart.points[chart.place];
  chart.ring.data = { x: [point.x], y: [point.y] };
  element.closest("figure").querySelector(".reading").textContent = point.words;
}

function pointAtTrial(element, trial) {
  const chart = drawn.get(element);
  const place = chart ? chart.points.findIndex((point) => point.trial === trial) : -1;
  if (place >= 0) pointAt(element, place);
}

function zoom(chart, factor) {
  const ranges = [chart.figure.x_range, chart.figure.y_range];
  chart.home = chart.home || ranges.map(({ start, end }) => ({ start, end }));
  ranges.forEach((range, axis) => {
    const { start, end } = factor ? range : chart.home[axis];
    const ringed = chart.points[chart.place];
    const middle = factor && ringed ? (axis ? ringed.y : ringed.x) : (start + end) / 2;
    const half = ((end - start) / 2) * (factor || 1);
    range.have_updated_interactively = true; // or a range that follows its data would go back
    range.setv(factor ? { start: middle - half, end: middle + half } : { start, end });
  });
}

function onKey(event) {
  const chart = drawn.get(event.currentTarget);
  if (!chart || event.ctrlKey || event.metaKey || event.altKey) return;
  const steps = {
    ArrowRight: chart.place + 1, ArrowDown: chart.place + 1, ArrowLeft: chart.place - 1, ArrowUp: chart.place - 1,
    Home: 0, End: chart.points.length - 1,
  };
  if (event.key in steps) pointAt(event.currentTarget, steps[event.key]);
  else if (event.key === "+" || event.key === "-") zoom(chart, event.key === "+" ? 0.5 : 2);
  else if (event.key === "0") zoom(chart, 0);
  else if (event.key === "s") handOut("chart.png", chart.view.export().canvas.toDataURL());
  else return;
  event.preventDefault();
}
