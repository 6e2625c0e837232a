// --- downloads ------------------------------------------------------------------------------------------------------

// The rows of a chart as it is shown, without series that are switched off.
function csvOf(figure, dataset) {
  const [, spec] = variantOf(figure);
  const rows = rowsOf(spec.datasets[dataset]).filter((row) => !hidden.has(row.series));
  const names = Object.keys(spec.datasets[dataset]);
  const quoted = (value) => {
    // A text that begins like a formula would be run by a spreadsheet: see lacuna/spreadsheets.py.
    const text = typeof value === "string" ? value.replace(/^[=+\-@\t\r]/, "'$&") : String(value ?? "");
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [names, ...rows.map((row) => names.map((name) => row[name]))].map((row) => row.map(quoted).join(",") + "\n").join("");
}

// The chart by itself: light, with its own legend, and with what readers chose.
async function svgOf(figure) {
  const [, compact] = variantOf(figure);
  const spec = structuredClone({ ...compact, datasets: {} });
  spec.datasets = Object.fromEntries(Object.entries(compact.datasets).map(([name, data]) => [name, rowsOf(data)]));
  const result = await vegaEmbed(document.createElement("div"), spec, { mode: "vega-lite", renderer: "none", actions: false, ast: true });
  applyChoices(result);
  await result.view.runAsync();
  const svg = await result.view.toSVG();
  result.finalize();
  return svg;
}

function save(name, kind, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function downloadsOf(figure, spec) {
  const name = figure.id.replace("figure-", "");
  const datasets = Object.keys(spec.datasets ?? {});
  const made = [];
  const offer = (words, work) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "download";
    button.textContent = words;
    button.addEventListener("click", work);
    made.push(button);
  };
  if (datasets.includes("points")) offer("CSV", () => save(`${name}.csv`, "text/csv", csvOf(figure, "points")));
  if (datasets.includes("trials")) offer("CSV of trials", () => save(`${name}-trials.csv`, "text/csv", csvOf(figure, "trials")));
  if (!figure.querySelector(".files")) offer("SVG", async () => save(`${name}.svg`, "image/svg+xml", await svgOf(figure)));
  return made;
}
