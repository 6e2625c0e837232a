// The life of a page: charts drawn when they are about to be seen, a legend that switches series on and off, values
// under a pointer or a finger, switches for the whole page, tables that sort and rows that open, light and dark.

const settings = JSON.parse(document.getElementById("settings").textContent);
const root = document.documentElement;
const hidden = new Set();
const figures = [...document.querySelectorAll("figure.chart")];
const drawn = new Map();

const systemDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemDark.matches);

// Colours of the style sheet as the charts need them: worked out for the theme in force.
function colour(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

const shade = (colourOfChart) => (isDark() && settings.dark[colourOfChart.toLowerCase()]) || colourOfChart;

function config() {
  const [ink, soft, line, paper] = ["ink", "soft", "line", "paper"].map(colour);
  const font = getComputedStyle(root).getPropertyValue("--sans");
  return {
    font,
    background: paper,
    view: { stroke: null },
    legend: { disable: true },
    axis: {
      labelColor: soft, titleColor: soft, gridColor: line, domainColor: line, tickColor: line,
      labelFontSize: 12, titleFontSize: 12, titleFontWeight: 400,
    },
    title: { color: ink, ...TITLE, anchor: "start" },
    text: { color: ink },
    header: { labelColor: ink, titleColor: ink },
  };
}

// Rows as they were, from columns (see _columns in page.py).
function valuesOf(column) {
  if (Array.isArray(column)) return column;
  const of = column.of ?? column.runs.flatMap(([level, n]) => Array(n).fill(level));
  return of.map((i) => column.levels[i]);
}
function rowsOf(columns) {
  const read = Object.entries(columns).map(([name, column]) => [name, valuesOf(column)]);
  const n = read.length ? read[0][1].length : 0;
  return Array.from({ length: n }, (_, i) => Object.fromEntries(read.map(([name, values]) => [name, values[i]])));
}

// --- switches ---------------------------------------------------------------------------------------------------

const ANY = "*"; // stands for every option of a switch
const SEPARATOR = "\n"; // between the options of a variant (see page.py)
const chosen = () =>
  [...document.querySelectorAll("[data-switch] :is(input:checked, select)")].map((input) => input.value);
const agrees = (option, i) => option === ANY || option === chosen()[i];
const holds = (key) => key === "" || key.split(SEPARATOR).every(agrees);

function variantOf(figure) {
  const data = (figure.data ??= JSON.parse(figure.querySelector("script").textContent));
  const wanted = Object.keys(data).find(holds);
  if (wanted !== undefined) return [wanted, data[wanted]];
  // What was not run with every choice is shown with the nearest one, and says so.
  const agreeing = (key) => key.split(SEPARATOR).filter(agrees).length;
  const nearest = Object.keys(data).sort((a, b) => agreeing(b) - agreeing(a))[0];
  return [nearest, data[nearest]];
}

function showWhen() {
  for (const element of document.querySelectorAll("[data-when]")) element.hidden = !holds(element.dataset.when);
}

// --- charts -----------------------------------------------------------------------------------------------------

const HEIGHT = 190;
const TITLE = { fontSize: 13, fontWeight: 600 };

const ruler = document.createElement("canvas").getContext("2d");

// A title in one line or, if it is wider than its panel, two: as many of its words in the first as there is room for.
function linesOf(text, width) {
  ruler.font = `${TITLE.fontWeight} ${TITLE.fontSize}px ${getComputedStyle(root).getPropertyValue("--sans")}`;
  const fits = (line) => ruler.measureText(line).width <= width;
  if (fits(text)) return text;
  const words = text.split(/(?<=[\s,])/);
  let n = words.length - 1;
  while (n > 1 && !fits(words.slice(0, n).join("").trim())) n -= 1;
  return [words.slice(0, n), words.slice(n)].map((line) => line.join("").trim()).filter((line) => line);
}

function fit(spec, width) {
  const meta = spec.usermeta ?? {};
  const panels = spec.concat ?? [spec];
  const left = meta.left ?? (meta.square ? 2 : 40);
  const gap = meta.square ? 28 : left + 14;
  const most = Math.min(meta.columns ?? panels.length, panels.length);
  const room = (columns) => Math.floor((width - left - 14 - gap * (columns - 1)) / columns);
  let columns = most;
  const least = meta.square ? 200 : 150; // letters in the cells of a map need room
  while (columns > 1 && room(columns) < least) columns = most % 2 === 0 && columns > 2 ? 2 : 1;
  const spacing = { column: gap, row: meta.square ? 50 : 78 };
  for (const panel of panels) {
    panel.width = Math.min(room(columns), meta.square ? 330 : 720);
    if (meta.square) panel.height = panel.width;
    if (typeof panel.title?.text === "string") {
      Object.assign(panel.title, { text: linesOf(panel.title.text, panel.width), limit: panel.width });
    }
  }
  if (spec.concat) Object.assign(spec, { columns, bounds: "flush", spacing });
  return Math.ceil(panels.length / columns) * ((panels[0].height ?? HEIGHT) + spacing.row);
}

// Room for a chart before it is drawn, so that nothing moves under a reader who followed a link.
function reserve(figure) {
  const drawing = figure.querySelector(".drawing");
  const [, spec] = variantOf(figure);
  const shape = { usermeta: spec.usermeta, concat: spec.concat?.map(({ height }) => ({ height })), height: spec.height };
  drawing.style.minHeight = `${fit(shape, drawing.clientWidth)}px`;
  entitle(figure, spec);
}

// What stands above a chart and below it.
function entitle(figure, spec) {
  if (spec.usermeta?.heading) figure.querySelector("h3").textContent = spec.usermeta.heading;
  figure.querySelector(".legend").replaceChildren(...legendOf(spec));
  figure.querySelector(".downloads").replaceChildren(...downloadsOf(figure, spec));
}

function specOf(figure, width) {
  const [key, compact] = variantOf(figure);
  const spec = JSON.parse(JSON.stringify(compact), (_, value) =>
    typeof value === "string" && value[0] === "#" ? shade(value) : value);
  spec.datasets = Object.fromEntries(Object.entries(compact.datasets).map(([name, data]) => [name, rowsOf(data)]));
  delete spec.config; // made for paper; the page has its own
  fit(spec, width);
  return [key, spec];
}

async function draw(figure) {
  const drawing = figure.querySelector(".drawing");
  const width = Math.floor(drawing.clientWidth);
  if (!width) return;
  const state = [width, isDark(), chosen().join(SEPARATOR)].join(" ");
  if (figure.state === state) return;
  figure.state = state;
  const [key, spec] = specOf(figure, width);
  const note = figure.querySelector(".note");
  note.hidden = holds(key);
  note.textContent = `Not run with this choice; shown: ${key.split(SEPARATOR).join(", ")}.`;
  const result = await vegaEmbed(drawing, spec, {
    mode: "vega-lite", renderer: "svg", actions: false, ast: true, config: config(),
    tooltip: { theme: isDark() ? "dark" : "light", formatTooltip: (value, sanitize) => tooltipOf(spec, value, sanitize) },
  });
  if (figure.state !== state) return result.finalize();
  drawn.get(figure)?.finalize();
  drawn.set(figure, result);
  entitle(figure, spec);
  applyChoices(result);
  drawing.style.minHeight = "";
  figure.querySelector(".finding").textContent = spec.description ?? "";
  figure.dataset.drawn = width;
}

// What readers choose for all charts: series that are off, and extras that a chart may have.
const extras = {
  lowest: "Close-up of high rewards", closer: "Close-up of high rewards", intervals: "Intervals", trials: "Trials",
};
// What a reader chose; until then each chart has its own way, which its parameters tell.
const pressed = new Map();

const has = (spec, name) => (spec.params ?? []).some((param) => param.name === name);
const given = (spec, name) => spec.params.find((param) => param.name === name).value;
const isPressed = (spec, name) => pressed.get(name) ?? (name === "lowest" ? false : given(spec, name));

function applyChoices({ view, spec }) {
  if (has(spec, "hidden")) view.signal("hidden", [...hidden]);
  for (const name of ["intervals", "trials", "closer"]) if (has(spec, name)) view.signal(name, isPressed(spec, name));
  if (has(spec, "lowest")) view.signal("lowest", isPressed(spec, "lowest") ? spec.usermeta.close_up : given(spec, "lowest"));
  view.run();
}

const SHAPES = {
  circle: "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0", square: "M-3.5,-3.5h7v7h-7z", diamond: "M0,-5L5,0L0,5L-5,0z",
  "triangle-up": "M0,-4.5L4.5,3.5L-4.5,3.5z", "triangle-down": "M0,4.5L4.5,-3.5L-4.5,-3.5z",
  "triangle-right": "M4.5,0L-3.5,4.5L-3.5,-4.5z", cross: "M-1.5,-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
};

function swatch({ colour: given, dash, shape }) {
  const of = shade(given);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "-14 -6 28 12");
  svg.setAttribute("width", 28);
  svg.setAttribute("height", 12);
  svg.setAttribute("aria-hidden", "true");
  const add = (name, attributes) => {
    const element = document.createElementNS(svg.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    svg.append(element);
  };
  if (shape === "fill") add("rect", { x: -8, y: -6, width: 16, height: 12, rx: 2, fill: of });
  else add("path", { d: "M-14,0H14", stroke: of, "stroke-width": 2.2, "stroke-dasharray": (dash ?? []).join(" ") });
  if (SHAPES[shape]) add("path", { d: SHAPES[shape], fill: of });
  return svg;
}

function legendOf(spec) {
  const entries = (spec.usermeta?.series ?? []).map((one) => {
    if (has(spec, "hidden")) return button("series", one.name, !hidden.has(one.name), swatch(one), one.name);
    const entry = document.createElement("span");
    entry.className = "entry";
    entry.append(swatch(one), one.name);
    return entry;
  });
  for (const [name, words] of Object.entries(extras)) {
    if (has(spec, name)) entries.push(button("extra", name, isPressed(spec, name), words));
  }
  return entries;
}

function button(kind, name, on, ...content) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = kind;
  made.dataset.name = name;
  made.setAttribute("aria-pressed", String(on));
  made.append(...content);
  made.addEventListener("click", () => toggle(kind, name, made.getAttribute("aria-pressed") === "true"));
  return made;
}

function toggle(kind, name, on) {
  if (kind === "extra") pressed.set(name, !on);
  else if (!hidden.delete(name)) hidden.add(name);
  showChoices();
}

function showChoices() {
  for (const each of document.querySelectorAll(".legend button")) {
    const [, spec] = variantOf(each.closest("figure"));
    const on = each.className === "extra" ? isPressed(spec, each.dataset.name) : !hidden.has(each.dataset.name);
    each.setAttribute("aria-pressed", String(on));
  }
  drawn.forEach(applyChoices);
  writeAddress();
}

// Charts show values under a mouse that moves over them. A finger does not move: a tap stands for the mouse, and the next
// tap, or scrolling, for its going away.
const REACH = 24; // pixels; marks are smaller than fingertips
let finger = false;
let told = null;

const tells = (element) => [element.__data__].flat()[0]?.tooltip != null;

function markNear(drawing, { target, clientX, clientY }) {
  if (tells(target)) return [target, clientX, clientY];
  let [nearest, least, at] = [null, REACH, []];
  for (const mark of [...drawing.querySelectorAll("svg path")].filter(tells)) {
    const { left, right, top, bottom } = mark.getBoundingClientRect();
    const [x, y] = [Math.min(Math.max(clientX, left), right), Math.min(Math.max(clientY, top), bottom)];
    const distance = Math.hypot(x - clientX, y - clientY);
    if (distance < least) [nearest, least, at] = [mark, distance, [x, y]];
  }
  return nearest && [nearest, ...at];
}

function pointAt(mark, clientX, clientY) {
  mark.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX, clientY }));
  told = mark;
}

function stopTelling() {
  // Lines at the nearest place go by the first, values by the second.
  for (const type of ["pointerout", "mouseout"]) told?.dispatchEvent(new PointerEvent(type, { bubbles: true }));
  told = null;
}

addEventListener("pointerdown", ({ pointerType }) => (finger = pointerType !== "mouse"), { capture: true });
addEventListener("scroll", stopTelling, { passive: true });
addEventListener("click", (event) => {
  stopTelling();
  const drawing = finger && event.target.closest(".drawing");
  const found = drawing && markNear(drawing, event);
  if (!found) return;
  // On a narrow screen values stand at the edge that is farther from the finger.
  root.dataset.told = event.clientY > innerHeight / 2 ? "above" : "below";
  pointAt(...found);
});

const redraw = () => figures.filter((figure) => figure.dataset.drawn).forEach(draw);

const near = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
}, { rootMargin: "600px" });
figures.forEach((figure) => {
  reserve(figure);
  near.observe(figure);
});

// The rest while nothing else happens, so that a printed page is complete.
const idle = window.requestIdleCallback ?? ((work) => setTimeout(work, 200));
async function drawNext() {
  const next = figures.find((figure) => !figure.state && figure.querySelector(".drawing").clientWidth);
  if (!next) return;
  await draw(next);
  idle(drawNext);
}
idle(drawNext);

let waiting;
new ResizeObserver(() => {
  clearTimeout(waiting);
  waiting = setTimeout(redraw, 150);
}).observe(document.getElementById("main"));

// --- tables -----------------------------------------------------------------------------------------------------

function compare(a, b) {
  if (a === "" || b === "") return (a === "") - (b === "");
  const [x, y] = [Number(a), Number(b)];
  return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
}

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  for (const body of table.tBodies) {
    [...body.rows[0].cells].forEach((cell, i) => i && (cell.dataset.column = heads[i].textContent));
  }
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const down = head.ariaSort === "ascending";
      heads.forEach((other) => (other.ariaSort = "none"));
      head.ariaSort = down ? "descending" : "ascending";
      const key = (body) => body.rows[0].cells[column].dataset.sort;
      const bodies = [...table.tBodies].sort((a, b) => (down ? -1 : 1) * compare(key(a), key(b)));
      table.append(...bodies);
    });
  });
}

function open(opener, wanted = opener.ariaExpanded !== "true") {
  opener.ariaExpanded = String(wanted);
  document.getElementById(opener.getAttribute("aria-controls")).hidden = !wanted;
}
document.querySelectorAll(".opener").forEach((opener) => opener.addEventListener("click", () => open(opener)));

// A link to a row opens it.
function openTarget() {
  const target = place() && document.getElementById(place());
  if (!target) return;
  const opener = target.querySelector?.(":scope > tr > td > .opener");
  if (opener) open(opener, true);
  target.closest("details")?.setAttribute("open", "");
}

// --- light and dark ---------------------------------------------------------------------------------------------

function themed() {
  root.dataset.drawn = isDark() ? "dark" : "light";
  redraw();
}
// What a reader chose is kept where the browser lets a page keep anything; the page's head takes it up again.
function keep(theme) {
  try {
    localStorage.setItem("lacuna-theme", theme);
  } catch {
    return; // not allowed here: it holds until the page is left
  }
}
document.getElementById("theme").addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  keep(root.dataset.theme);
  themed();
});
systemDark.addEventListener("change", themed);
document.querySelector("form.switches")?.addEventListener("change", () => {
  showWhen();
  redraw();
  writeAddress();
});

// --- where we are -----------------------------------------------------------------------------------------------

// Whatever a link leads to stands below the navigation, on however many lines that is.
const nav = document.querySelector("nav");
const makeRoom = () => (root.style.scrollPaddingTop = `${nav.offsetHeight + 20}px`);
makeRoom();
new ResizeObserver(makeRoom).observe(nav);

const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
const places = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (isIntersecting) for (const [id, link] of links) {
      if (id === target.id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }
}, { rootMargin: "-30% 0px -60% 0px" });
document.querySelectorAll("main > section").forEach((section) => places.observe(section));
